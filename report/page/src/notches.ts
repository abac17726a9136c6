// The notches of the scrub: the steps of all runs, and what each run has at one of them.

import { stepsOf } from "./curve_lines";
import type { Curve, Graph, GraphSnapshot, Run } from "./data";

/** Steps of a log, which has curves alone: 0, 1, 2, 5, 10, 20, 50, ... of its steps, and the first and the last of them. */
function notchesOf(curves: Curve[]): number[] {
  const ends = curves.map(stepsOf).flatMap((steps) => [...steps.slice(0, 1), ...steps.slice(-1)]);
  const [first, last] = [Math.min(...ends), Math.max(...ends)];
  const notches = [...new Set(ends)];
  for (let power = 1; power < last; power *= 10) notches.push(...[1, 2, 5].map((digit) => digit * power));
  return notches.filter((step) => step >= first && step <= last);
}

export function allSteps(runs: Run[]): number[] {
  const notches = runs.flatMap(({ steps, curves }) => (steps.length > 0 ? steps : notchesOf(curves)));
  return [...new Set(notches)].sort((a, b) => a - b);
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
