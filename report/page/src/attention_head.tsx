// One head to walk through: its weights and their gradient as matrices, and the formula of the chosen weight.

import { useHeads } from "./attention_heads";
import type { Layer, Shown } from "./attention_layers";
import type { Graph, Run } from "./data";
import { Elsewhere } from "./elsewhere";
import { FormulaPanel } from "./formula_panel";
import { Legend } from "./legend";
import { Matrix, type Place, isMasked, valueAt } from "./matrix";
import { snapshotAt } from "./notches";
import { exact } from "./numbers";
import { Rounded } from "./rounded";
import type { TensorSource } from "./tensor_view";

interface Props {
  run: Run;
  step: number;
  layer: Layer;
  shown: Shown;
  head: number;
  cursor: Place;
  setCursor: (place: Place) => void;
}

export function AttentionHead({ run, step, layer, shown, head, cursor, setCursor }: Props) {
  const heads = useHeads(shown, layer);
  if (heads === null) return null;
  const { attention, snapshot } = shown;
  const { queries, keys } = attention;
  const place: Place = [Math.min(cursor[0], queries.length - 1), Math.min(cursor[1], keys.length - 1)];
  const weights = heads.weightsOf(head);
  const gradient = heads.gradientOf(head);
  const matrices = [
    { title: "weights", picture: weights, array: snapshot.weights },
    ...(gradient && snapshot.gradient ? [{ title: "gradient", picture: gradient, array: snapshot.gradient }] : []),
  ];
  const graph = attention.graph === null ? undefined : run.graphs[attention.graph];
  const source = sourceOf(run, step, graph, attention.value);
  const flat = ((attention.row ?? 0) * attention.heads + head) * heads.size + place[0] * keys.length + place[1];
  return (
    <div class="one-head">
      <div class="beside">
        {matrices.map(({ title, picture }) => (
          <figure key={title}>
            <figcaption>
              {title === "weights" ? "weights A" : "gradient dL/dA"} <Legend scale={picture.scale} />
            </figcaption>
            <Matrix
              name={`${title} of head ${head} of ${layer.name}: rows are queries, columns are keys`}
              picture={picture}
              rowNames={queries}
              columnNames={keys}
              cursor={place}
              setCursor={setCursor}
            />
          </figure>
        ))}
      </div>
      {heads.size > 0 && (
        <p class="readout" aria-live="polite">
          <q>{queries[place[0]]}</q> looks at <q>{keys[place[1]]}</q>:{" "}
          {isMasked(weights, place) && <span>masked, </span>}
          {matrices.map(({ title, picture, array }, i) => (
            <span key={title}>
              {i > 0 && ", "}
              {title} <b data-exact={title}>{exact(valueAt(picture, place), array.dtype)}</b>
            </span>
          ))}
          <Rounded array={snapshot.weights} />
        </p>
      )}
      {source && <FormulaPanel {...source} cell={{ id: source.id, flat }} />}
      {!source && graph && attention.value !== null && <Elsewhere run={run} graph={graph} id={attention.value} />}
      {!graph && <p class="quiet">The file holds no graph of this attention, so there is no formula to show.</p>}
    </div>
  );
}

/** The value of the graph that the weights are, if its numbers at this step are in the file. */
function sourceOf(run: Run, step: number, graph: Graph | undefined, id: number | null): TensorSource | null {
  const found = graph && snapshotAt(run, step, graph.snapshots);
  return graph && id !== null && found?.snapshot.values[id] ? { graph, snapshot: found.snapshot, id } : null;
}
