// The values of a graph as a list, which a search narrows.

import { useState } from "preact/hooks";
import type { Graph, GraphSnapshot } from "./data";
import { statistic } from "./numbers";
import { shapeText } from "./shapes";
import { counted } from "./text";

interface Props {
  graph: Graph;
  snapshot: GraphSnapshot | null;
  search: string;
  selected: number | null;
  select: (id: number) => void;
}

const page = 100;

function matching(graph: Graph, search: string): number[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return graph.values.flatMap(({ kind, name, module, shape }, id) => {
    const text = `${kind} ${name} ${module ?? ""} ${shape.join("x")} #${id}`.toLowerCase();
    return words.every((word) => text.includes(word)) ? [id] : [];
  });
}

export function Outline({ graph, snapshot, search, selected, select }: Props) {
  const [most, setMost] = useState(page);
  const ids = matching(graph, search);
  return (
    <div class="outline">
      <p class="quiet" role="status">
        {counted(ids.length, "value")} {search.trim() === "" ? "in the order of their computation" : "found"}.
      </p>
      <div class="scroll tall" tabIndex={0} role="group" aria-label="Values of the graph">
        <table class="facts">
          <thead>
            <tr>
              <th scope="col">value</th>
              <th scope="col">module</th>
              <th scope="col">shape</th>
              <th scope="col" class="number">rms</th>
              <th scope="col" class="number">rms of gradient</th>
            </tr>
          </thead>
          <tbody>
            {ids.slice(0, most).map((id) => {
              const { name, kind, module, shape } = graph.values[id];
              const [value, gradient] = [snapshot?.value[id], snapshot?.gradient[id]];
              return (
                <tr key={id} class={id === selected ? "chosen" : ""}>
                  <th scope="row">
                    <button type="button" class="link" aria-pressed={id === selected} onClick={() => select(id)}>
                      {name || kind} #{id}
                    </button>
                  </th>
                  <td>{module ?? ""}</td>
                  <td class="quiet">{shapeText(shape)}</td>
                  <td class="number">{value ? statistic(value, "rms") : ""}</td>
                  <td class="number">{gradient ? statistic(gradient, "rms") : ""}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {ids.length > most && (
        <button type="button" onClick={() => setMost(most + 10 * page)}>
          Show more of the {(ids.length - most).toLocaleString("en")} others
        </button>
      )}
    </div>
  );
}
