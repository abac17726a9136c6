// The notches of the scrub: the steps of all runs, and what each run has at one of them.

import type { Graph, GraphSnapshot, Run } from "./data";

export function allSteps(runs: Run[]): number[] {
  return [...new Set(runs.flatMap((run) => run.steps))].sort((a, b) => a - b);
}

/** The notch of a run at a step, or the last before it, that has a snapshot. */
export function snapshotAt<S>(run: Run, step: number, snapshots: readonly (S | null)[]): { snapshot: S; step: number } | null {
  for (let notch = run.steps.length - 1; notch >= 0; --notch) {
    const snapshot = snapshots[notch];
    if (run.steps[notch] <= step && snapshot != null) return { snapshot, step: run.steps[notch] };
  }
  return null;
}

/** Where the numbers of a value are in the file, not only their statistics: often at the last step alone. */
export function stepsWithValue(run: Run, { snapshots }: Graph, id: number): { snapshot: GraphSnapshot; step: number }[] {
  return snapshots.flatMap((snapshot, notch) => (snapshot?.values[id] ? [{ snapshot, step: run.steps[notch] }] : []));
}
