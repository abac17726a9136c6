// All that is known of one value of the graph.

import type { Attribute, Graph, GraphSnapshot, Run, Statistics } from "./data";
import { Elsewhere } from "./elsewhere";
import { consumersOf } from "./formulas";
import { valueName } from "./formula_panel";
import { exact, statistic } from "./numbers";
import { shapeText } from "./shapes";
import { TensorView } from "./tensor_view";

interface Props {
  run: Run;
  graph: Graph;
  snapshot: GraphSnapshot | null;
  id: number;
  select: (id: number) => void;
}

function attributeText(value: Attribute): string {
  if (typeof value === "number") return exact(value, "f64");
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `(${value.map((item) => exact(item, "f64")).join(", ")})`;
  return `an array ${shapeText(value.shape)}`;
}

function Links({ title, ids, graph, select }: { title: string; ids: number[]; graph: Graph; select: (id: number) => void }) {
  if (ids.length === 0) return null;
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        {ids.map((id, i) => (
          <button key={i} type="button" class="link" onClick={() => select(id)}>
            {valueName(graph, id)}
          </button>
        ))}
      </dd>
    </div>
  );
}

function StatisticsTable({ value, gradient }: { value: Statistics | null; gradient: Statistics | null }) {
  const rows: [string, Statistics | null][] = [["value", value], ["gradient", gradient]];
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Statistics">
      <table class="facts">
        <thead>
          <tr>
            <td />
            {["least", "largest", "mean", "rms", "not finite"].map((name) => (
              <th key={name} scope="col" class="number">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, item]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {item ? (
                <>
                  {(["min", "max", "mean", "rms"] as const).map((statisticName) => (
                    <td key={statisticName} class="number">{statistic(item, statisticName, 5)}</td>
                  ))}
                  <td class="number">{item.nonfinite}</td>
                </>
              ) : (
                <td colSpan={5} class="quiet">
                  {name === "gradient" ? "none: the loss does not depend on it, or it was not taken" : "not taken"}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function ValuePanel({ run, graph, snapshot, id, select }: Props) {
  const value = graph.values[id];
  const stored = snapshot?.values[id] ?? null;
  return (
    <section class="value" aria-label={`The value ${valueName(graph, id)}`}>
      <h3>{valueName(graph, id)}</h3>
      <dl class="details">
        <div>
          <dt>kind</dt>
          <dd>{id === graph.loss ? "the loss" : value.kind}</dd>
        </div>
        {value.module && (
          <div>
            <dt>module</dt>
            <dd>
              {value.module} <span class="quiet">{graph.modules.get(value.module)}</span>
            </dd>
          </div>
        )}
        <div>
          <dt>shape</dt>
          <dd>{shapeText(value.shape)}</dd>
        </div>
        {[...value.attributes].map(([name, attribute]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{attributeText(attribute)}</dd>
          </div>
        ))}
        <Links title="reads" ids={value.inputs.filter((input) => input !== null)} graph={graph} select={select} />
        <Links title="read by" ids={consumersOf(graph, id).map(({ consumer }) => consumer)} graph={graph} select={select} />
      </dl>
      <StatisticsTable value={snapshot?.value[id] ?? null} gradient={snapshot?.gradient[id] ?? null} />
      {stored ? (
        <TensorView
          name={valueName(graph, id)}
          value={stored}
          gradient={snapshot?.gradients[id] ?? null}
          source={snapshot && { graph, snapshot, id }}
        />
      ) : (
        <Elsewhere run={run} graph={graph} id={id} />
      )}
    </section>
  );
}
