// Attention: every head as a picture with its gradient beside it, and one head to walk through.

import { useCallback, useMemo, useState } from "preact/hooks";
import { numbersOf } from "./arrays";
import { AttentionHead } from "./attention_head";
import { AttentionLayer } from "./attention_layer";
import { layersAt, namedLayers } from "./attention_layers";
import type { Attention, Run } from "./data";
import { OfStep } from "./elsewhere";
import type { Place } from "./matrix";
import { memo } from "./memo";
import { Runs } from "./runs";

interface Props {
  runs: Run[];
  step: number;
}

/** The chosen head of the layer of a name, and a place in it. */
interface Choice {
  example: string;
  name: string;
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

/** The first head of an example, unless it has `old` as well. */
function choiceIn(runs: Run[], example: string, old?: Choice): Choice {
  const layers = runs.flatMap((run) => namedLayers(run, example));
  const [{ name, attention }] = layers;
  const stays = old && layers.some((layer) => layer.name === old.name && old.head < layer.attention.heads);
  return stays ? { ...old, example } : { example, name, head: 0, place: firstPlace(attention) };
}

export const AttentionSection = memo(function AttentionSection({ runs, step }: Props) {
  const examples = [...new Set(runs.flatMap((run) => run.attention.map(({ example }) => example)))];
  const [choice, setChoice] = useState(() => choiceIn(runs, examples[0]));
  // The same each time, so that layers need not draw again.
  const layers = useMemo(() => layersAt(runs, choice.example, step), [runs, choice.example, step]);
  const choose = useCallback((name: string, head: number) => setChoice((old) => ({ ...old, name, head })), []);
  const chosen = layers.find(({ name }) => name === choice.name);
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
          <select value={choice.example} onChange={(event) => setChoice(choiceIn(runs, event.currentTarget.value, choice))}>
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
        {(_, index) => {
          const parts = layers.flatMap((layer) => {
            const shown = layer.shown[index];
            return shown ? [{ layer, shown }] : [];
          });
          if (parts.length === 0) return <p class="quiet">This run has no attention of this example at this step.</p>;
          return (
            <div class="layers" tabIndex={0} role="group" aria-label="The heads of all layers">
              {parts.map(({ layer, shown }) => (
                <AttentionLayer
                  key={layer.name}
                  layer={layer}
                  shown={shown}
                  step={step}
                  chosen={layer === chosen ? choice.head : null}
                  choose={choose}
                />
              ))}
            </div>
          );
        }}
      </Runs>
      <h3>
        Head {choice.head} of {choice.name}
      </h3>
      <Runs runs={runs}>
        {(run, index) => {
          const shown = chosen?.shown[index];
          if (!chosen || !shown || choice.head >= shown.attention.heads) return <p class="quiet">This run has nothing of this head at this step.</p>;
          return (
            <>
              <OfStep of={shown.step} step={step} />
              {shown.attention.masked && <p class="quiet">Striped cells are masked: those queries may not look there.</p>}
              <AttentionHead
                run={run}
                step={step}
                layer={chosen}
                shown={shown}
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
