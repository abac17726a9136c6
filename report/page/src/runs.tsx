// The same of each run, beside each other if there are several.

import type { ComponentChildren } from "preact";
import type { Run } from "./data";

interface Props {
  runs: Run[];
  children: (run: Run, index: number) => ComponentChildren;
}

/** The class of a run's colour and dashes, of which there are six. */
export function runStyle(index: number): string {
  return `run-${index % 6}`;
}

export function Runs({ runs, children }: Props) {
  if (runs.length === 1) return <>{children(runs[0], 0)}</>;
  return (
    <div class="runs">
      {runs.map((run, index) => (
        <div key={index} class="run">
          <RunName run={run} index={index} />
          {children(run, index)}
        </div>
      ))}
    </div>
  );
}

export function RunName({ run, index }: { run: Run; index: number }) {
  return (
    <p class="run-name">
      <svg class={`key ${runStyle(index)}`} viewBox="0 0 24 4" width="24" height="4" aria-hidden="true">
        <line x1="0" y1="2" x2="24" y2="2" />
      </svg>{" "}
      {run.title}
    </p>
  );
}
