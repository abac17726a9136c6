// Says at which steps the numbers of a graph are in the file, if not here.

import type { Graph, Run } from "./data";
import { stepsWithValues } from "./notches";

export function Elsewhere({ run, graph }: { run: Run; graph: Graph }) {
  const steps = stepsWithValues(run, graph).map(({ step }) => step.toLocaleString("en"));
  if (steps.length === 0) return <p class="quiet">The file holds statistics of this graph, but no single numbers.</p>;
  return (
    <p class="quiet">
      The file holds the single numbers of this graph, and so the formulas, for step {steps.join(", ")} alone: move the scrub there.
    </p>
  );
}
