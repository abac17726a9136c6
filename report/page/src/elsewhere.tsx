// Says at which steps the numbers of a value are in the file, if not here.

import type { Graph, Run } from "./data";
import { stepsWithValue } from "./notches";

export function Elsewhere({ run, graph, id }: { run: Run; graph: Graph; id: number }) {
  const steps = stepsWithValue(run, graph, id).map(({ step }) => step.toLocaleString("en"));
  if (steps.length === 0) return <p class="quiet">The file holds statistics of this value, but no single numbers.</p>;
  return (
    <p class="quiet">
      The file holds the single numbers of this value, and so the formulas, for step {steps.join(", ")} alone: move the scrub there.
    </p>
  );
}
