// Says of which steps the file has something, where that is not the step of the scrub.

import type { Graph, Run } from "./data";
import { stepsWithValue } from "./notches";

/** Of which step what is shown is. */
export function OfStep({ of, step }: { of: number; step: number }) {
  if (of === step) return null;
  return <p class="quiet of-step">Of step {of.toLocaleString("en")}, the last that is in the file up to here.</p>;
}

/** Where the numbers of a value are. */
export function Elsewhere({ run, graph, id }: { run: Run; graph: Graph; id: number }) {
  const steps = stepsWithValue(run, graph, id).map(({ step }) => step.toLocaleString("en"));
  if (steps.length === 0) return <p class="quiet">The file holds statistics of this value, but no single numbers.</p>;
  return (
    <p class="quiet">
      The file holds the single numbers of this value, and so the formulas, for step {steps.join(", ")} alone: move the scrub there.
    </p>
  );
}
