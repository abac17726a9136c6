// Attention: every head as a picture with its gradient beside it, and one head to walk through.

import { useState } from "preact/hooks";
import { type Numbers, largestSize, numbersOf } from "./arrays";
import { Canvas, type Picture } from "./canvas";
import { type Scale, shareScale, signScale } from "./colors";
import type { Attention, AttentionSnapshot, Graph, Run } from "./data";
import { Elsewhere } from "./elsewhere";
import { FormulaPanel } from "./formula_panel";
import { Legend } from "./legend";
import { Matrix, type Place, isMasked, valueAt } from "./matrix";
import { useDark } from "./media";
import { memo } from "./memo";
import { useNear } from "./near";
import { snapshotAt } from "./notches";
import { exact } from "./numbers";
import { Rounded } from "./rounded";
import { Runs } from "./runs";
import type { TensorSource } from "./tensor_view";

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

/** The matrices of the heads of one layer. */
class Heads {
  readonly size: number;
  private readonly weights: Numbers;
  private readonly gradient: Numbers | null;
  private readonly masked: Numbers | null;
  private readonly weightScale: Scale;
  private readonly gradientScale: Scale | null;

  constructor(
    readonly attention: Attention,
    readonly snapshot: AttentionSnapshot,
    dark: boolean,
  ) {
    this.size = attention.queries.length * attention.keys.length;
    this.weights = numbersOf(snapshot.weights);
    this.gradient = snapshot.gradient && numbersOf(snapshot.gradient);
    this.masked = attention.masked && numbersOf(attention.masked);
    // With few keys the scale is the same at all steps; with many all weights are small.
    this.weightScale = shareScale(attention.keys.length <= 32 ? 1 : largestSize(this.weights) || 1);
    this.gradientScale = this.gradient && signScale(largestSize(this.gradient), dark);
  }

  private picture(head: number, numbers: Numbers, scale: Scale): Picture {
    const { queries, keys, masked } = this.attention;
    return {
      rows: queries.length,
      columns: keys.length,
      numbers,
      offset: head * this.size,
      scale,
      masked: this.masked,
      maskedOffset: masked?.shape.length === 3 ? head * this.size : 0,
    };
  }

  weightsOf(head: number): Picture {
    return this.picture(head, this.weights, this.weightScale);
  }

  gradientOf(head: number): Picture | null {
    return this.gradient && this.gradientScale && this.picture(head, this.gradient, this.gradientScale);
  }
}

interface LayerProps {
  attention: Attention;
  snapshot: AttentionSnapshot;
  chosen: number | null;
  choose: (attention: Attention, head: number) => void;
}

/** The heads of a layer as pictures: the weights, and beside them the gradient. */
const Layer = memo(function Layer({ attention, snapshot, chosen, choose }: LayerProps) {
  const dark = useDark();
  const { near, place } = useNear();
  const heads = near ? new Heads(attention, snapshot, dark) : null;
  return (
    <div class="layer" ref={place}>
      <h4>{attention.module || "attention"}</h4>
      <div class={`heads${attention.heads > 6 ? " many" : ""}`}>
        {Array.from({ length: attention.heads }, (_, head) => {
          const gradient = heads?.gradientOf(head);
          return (
            <button
              key={head}
              type="button"
              class="head"
              aria-pressed={chosen === head}
              aria-label={`Head ${head} of ${attention.module}`}
              onClick={() => choose(attention, head)}
            >
              <span class="pictures">
                {heads && <Canvas picture={heads.weightsOf(head)} name={`weights of head ${head}`} />}
                {gradient && <Canvas picture={gradient} name={`gradient of head ${head}`} />}
              </span>
              <span class="label">head {head}</span>
            </button>
          );
        })}
      </div>
    </div>
  );
});

interface OneHeadProps {
  run: Run;
  step: number;
  attention: Attention;
  snapshot: AttentionSnapshot;
  choice: Choice;
  setPlace: (place: Place) => void;
}

function OneHead({ run, step, attention, snapshot, choice, setPlace }: OneHeadProps) {
  const heads = new Heads(attention, snapshot, useDark());
  const { queries, keys } = attention;
  const head = Math.min(choice.head, attention.heads - 1);
  const place: Place = [Math.min(choice.place[0], queries.length - 1), Math.min(choice.place[1], keys.length - 1)];
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
              {title === "weights" ? "weights A" : "gradient dL/dA"} <Legend scale={picture.scale} name="" />
            </figcaption>
            <Matrix
              name={`${title} of head ${head} of ${attention.module}: rows are queries, columns are keys`}
              picture={picture}
              rowNames={queries}
              columnNames={keys}
              cursor={place}
              setCursor={setPlace}
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
      {!source && graph && <Elsewhere run={run} graph={graph} />}
      {!graph && <p class="quiet">The file holds no graph of this attention, so there is no formula to show.</p>}
    </div>
  );
}

/** The value of the graph that the weights are, if its numbers at this step are in the file. */
function sourceOf(run: Run, step: number, graph: Graph | undefined, id: number | null): TensorSource | null {
  const found = graph && snapshotAt(run, step, graph.snapshots);
  return graph && id !== null && found?.snapshot.values[id] ? { graph, snapshot: found.snapshot, id } : null;
}

export const AttentionSection = memo(function AttentionSection({ runs, step }: Props) {
  const first = runs.flatMap((run) => run.attention)[0];
  const [choice, setChoice] = useState<Choice>(() => ({ module: first.module, example: first.example, head: 0, place: firstPlace(first) }));
  const examples = [...new Set(runs.flatMap((run) => run.attention.map(({ example }) => example)))];
  const choose = (attention: Attention, head: number): void => setChoice((old) => ({ ...old, module: attention.module, head }));
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
      {examples.length === 1 && examples[0] !== "" && <p>Read: <q class="example">{examples[0]}</q></p>}
      <Runs runs={runs}>
        {(run) => {
          const layers = run.attention.filter(({ example }) => example === choice.example);
          const shown = layers.flatMap((attention) => {
            const found = snapshotAt(run, step, attention.snapshots);
            return found ? [{ attention, snapshot: found.snapshot }] : [];
          });
          if (shown.length === 0) return <p class="quiet">Nothing was taken at this step.</p>;
          return (
            <div class="layers" tabIndex={0} role="region" aria-label="The heads of all layers">
              {shown.map(({ attention, snapshot }) => (
                <Layer
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
          if (!attention || !found) return <p class="quiet">This run has nothing of this head at this step.</p>;
          return (
            <>
              {attention.masked && <p class="quiet">Striped cells are masked: those queries may not look there.</p>}
              <OneHead
                run={run}
                step={step}
                attention={attention}
                snapshot={found.snapshot}
                choice={choice}
                setPlace={(place) => setChoice({ ...choice, place })}
              />
            </>
          );
        }}
      </Runs>
    </>
  );
});
