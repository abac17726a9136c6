// Attention: every head as a picture with its gradient beside it, and one head to walk through.

import { useCallback, useState } from "preact/hooks";
import { numbersOf } from "./arrays";
import { AttentionHead } from "./attention_head";
import { AttentionLayer } from "./attention_layer";
import type { Attention, Run } from "./data";
import type { Place } from "./matrix";
import { memo } from "./memo";
import { snapshotAt } from "./notches";
import { Runs } from "./runs";

interface Props {
  runs: Run[];
  step: number;
}

/** The chosen head of the chosen layer, and a place in it. */
interface Choice {
  module: string;
  example: string;
  head: number;
  place: Place;
}

/** Where the loss depends most on a weight of the first head, or the largest weight is. */
function firstPlace({ queries, keys, snapshots }: Attention): Place {
  const snapshot = snapshots.findLast((candidate) => candidate !== null);
  if (!snapshot) return [0, 0];
  const head = numbersOf(snapshot.gradient ?? snapshot.weights).subarray(0, queries.length * keys.length);
  let most = 0;
  for (let i = 1; i < head.length; ++i) if (Math.abs(head[i]) > Math.abs(head[most])) most = i;
  return [Math.floor(most / keys.length), most % keys.length];
}

function find(run: Run, choice: Choice): Attention | undefined {
  return run.attention.find(({ module, example }) => module === choice.module && example === choice.example);
}

export const AttentionSection = memo(function AttentionSection({ runs, step }: Props) {
  const first = runs.flatMap((run) => run.attention)[0];
  const [choice, setChoice] = useState<Choice>(() => ({
    module: first.module,
    example: first.example,
    head: 0,
    place: firstPlace(first),
  }));
  const examples = [...new Set(runs.flatMap((run) => run.attention.map(({ example }) => example)))];
  // The same function each time, so that layers need not draw again.
  const choose = useCallback((attention: Attention, head: number) => setChoice((old) => ({ ...old, module: attention.module, head })), []);
  return (
    <>
      <p class="lead">
        Each row of a matrix is a token that asks, each column one that it can look at; the weights of a row add up to 1, the larger the
        more yellow. Beside them is how the loss would change with each weight: purple where more weight would lower it, orange where it
        would raise it. Choose a head, then a cell: its formula follows.
      </p>
      {examples.length > 1 && (
        <label>
          Example{" "}
          <select value={choice.example} onChange={(event) => setChoice({ ...choice, example: event.currentTarget.value })}>
            {examples.map((example) => (
              <option key={example}>{example}</option>
            ))}
          </select>
        </label>
      )}
      {examples.length === 1 && examples[0] !== "" && (
        <p>
          Read: <q class="example">{examples[0]}</q>
        </p>
      )}
      <Runs runs={runs}>
        {(run) => {
          const layers = run.attention.filter(({ example }) => example === choice.example);
          const shown = layers.flatMap((attention) => {
            const found = snapshotAt(run, step, attention.snapshots);
            return found ? [{ attention, snapshot: found.snapshot }] : [];
          });
          if (shown.length === 0) return <p class="quiet">This run has no attention of this example at this step.</p>;
          return (
            <div class="layers" tabIndex={0} role="region" aria-label="The heads of all layers">
              {shown.map(({ attention, snapshot }) => (
                <AttentionLayer
                  key={attention.module}
                  attention={attention}
                  snapshot={snapshot}
                  chosen={attention.module === choice.module ? choice.head : null}
                  choose={choose}
                />
              ))}
            </div>
          );
        }}
      </Runs>
      <h3>
        Head {choice.head} of {choice.module || "attention"}
      </h3>
      <Runs runs={runs}>
        {(run) => {
          const attention = find(run, choice);
          const found = attention && snapshotAt(run, step, attention.snapshots);
          if (!attention || !found || choice.head >= attention.heads) return <p class="quiet">This run has nothing of this head at this step.</p>;
          return (
            <>
              {attention.masked && <p class="quiet">Striped cells are masked: those queries may not look there.</p>}
              <AttentionHead
                run={run}
                step={step}
                attention={attention}
                snapshot={found.snapshot}
                head={choice.head}
                cursor={choice.place}
                setCursor={(place) => setChoice({ ...choice, place })}
              />
            </>
          );
        }}
      </Runs>
    </>
  );
});
