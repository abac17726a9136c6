// What a run came to, at a glance.

import { numbersOf } from "./arrays";
import type { Run } from "./data";
import { brief, bytes, duration } from "./numbers";
import { Runs } from "./runs";

/** The curve that the headline quotes: the loss, or else the first. */
function lossOf(run: Run): { name: string; value: number } | null {
  const curve = run.curves.find(({ name }) => name === "loss") ?? run.curves[0];
  if (curve === undefined) return null;
  const values = numbersOf(curve.values);
  return values.length === 0 ? null : { name: curve.name, value: values[values.length - 1] };
}

function factsOf(run: Run): [string, string][] {
  const loss = lossOf(run);
  const facts: [string, string | null][] = [
    [`final ${loss?.name ?? ""}`, loss && brief(loss.value, 4)],
    ["parameters", run.parameter_count === null ? null : run.parameter_count.toLocaleString("en")],
    ["steps", run.steps.length > 1 ? run.steps[run.steps.length - 1].toLocaleString("en") : null],
    ["time", run.seconds === null ? null : duration(run.seconds)],
    ["memory", run.memory_bytes === null ? null : bytes(run.memory_bytes)],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}

export function Headline({ runs }: { runs: Run[] }) {
  return (
    <header class="headline">
      <p class="kind">{runs.length === 1 ? "Report of a run" : `Comparison of ${runs.length} runs`}</p>
      <h1>{runs.length === 1 ? runs[0].title : runs.map(({ title }) => title).join(" and ")}</h1>
      <Runs runs={runs}>
        {(run) => (
          <>
            <dl class="summary">
              {factsOf(run).map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
            {run.notes.map((note, i) => (
              <p key={i} class="note">
                {note}
              </p>
            ))}
          </>
        )}
      </Runs>
    </header>
  );
}
