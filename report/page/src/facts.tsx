// How a run was made: options, seed and versions, and where runs differ.

import type { Run } from "./data";
import { RunName } from "./runs";

interface Group {
  title: string;
  of: (run: Run) => Map<string, string>;
}

const groups: Group[] = [
  {
    title: "Run",
    of: (run) =>
      new Map(
        Object.entries({ program: run.program, seed: run.seed, threads: run.threads === null ? "" : String(run.threads) }).filter(
          ([, value]) => value !== "",
        ),
      ),
  },
  { title: "Options", of: (run) => run.options },
  { title: "Versions", of: (run) => run.versions },
];

export function FactsSection({ runs }: { runs: Run[] }) {
  return (
    <>
      {runs.length > 1 && <p class="lead">Lines where the runs differ are marked with ≠.</p>}
      <div class="scroll" tabIndex={0} role="group" aria-label="Options, seeds and versions">
        <table class="facts wide">
          {runs.length > 1 && (
            <thead>
              <tr>
                <td />
                {runs.map((run, index) => (
                  <th key={index} scope="col">
                    <RunName run={run} index={index} />
                  </th>
                ))}
              </tr>
            </thead>
          )}
          {groups.map(({ title, of }) => {
            const maps = runs.map(of);
            const names = [...new Set(maps.flatMap((map) => [...map.keys()]))];
            if (names.length === 0) return null;
            return (
              <tbody key={title}>
                <tr>
                  <th scope="rowgroup" colSpan={1 + runs.length} class="group">
                    {title}
                  </th>
                </tr>
                {names.map((name) => {
                  const values = maps.map((map) => map.get(name));
                  const differ = values.some((value) => value !== values[0]);
                  return (
                    <tr key={name} class={differ ? "differs" : ""}>
                      <th scope="row">
                        {differ && "≠ "}
                        {name}
                      </th>
                      {values.map((value, i) => (
                        <td key={i}>{value ?? <span class="quiet">not given</span>}</td>
                      ))}
                    </tr>
                  );
                })}
              </tbody>
            );
          })}
        </table>
      </div>
    </>
  );
}
