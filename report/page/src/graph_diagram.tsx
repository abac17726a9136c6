// A graph as boxes and lines. Boxes of modules open, boxes of values can be looked into.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Graph, GraphSnapshot } from "./data";
import { type Box, type Boxes, resultOf } from "./graph_boxes";
import { boxHeight, boxWidth, placed } from "./graph_layout";
import { statistic } from "./numbers";
import { type Point, roundedPath } from "./scales";
import { shapeText } from "./shapes";
import { counted } from "./text";

interface Props {
  graph: Graph;
  snapshot: GraphSnapshot | null;
  boxes: Boxes;
  selected: number | null;
  /** The box that gets the focus: of the first value of what was opened, or of the module that was closed. */
  goal: number | string | null;
  openModule: (name: string, firstValue: number) => void;
  select: (id: number) => void;
}

function opCount(graph: Graph, { ids }: Box): number {
  return ids.filter((id) => graph.values[id].kind === "op").length;
}

function BoxButton({ graph, snapshot, box, place, selected, openModule, select }: Omit<Props, "boxes" | "goal"> & { box: Box; place: Point }) {
  const result = resultOf(graph, box);
  const value = snapshot?.value[result];
  const gradient = snapshot?.gradient[result];
  const isModule = box.opens !== null;
  return (
    <button
      type="button"
      class={`box ${isModule ? "module" : box.type}${!isModule && selected === result ? " selected" : ""}${box.repeated > 1 ? " repeated" : ""}`}
      aria-expanded={isModule ? false : undefined}
      aria-pressed={isModule ? undefined : selected === result}
      title={box.name}
      data-first={box.ids[0]}
      style={{ left: `${place.x - boxWidth / 2}px`, top: `${place.y - boxHeight / 2}px`, width: `${boxWidth}px`, height: `${boxHeight}px` }}
      onClick={() => (box.opens === null ? select(result) : openModule(box.opens, box.ids[0]))}
    >
      <span class="title">
        {box.title}
        {box.repeated > 1 && <b> × {box.repeated}</b>}
      </span>
      <span class="what">
        {isModule && `${box.type && `${box.type}, `}${counted(opCount(graph, box), "op")}`}
        {isModule ? " → " : ""}
        {shapeText(graph.values[result].shape)}
      </span>
      <span class="what number">
        {value ? `rms ${statistic(value, "rms", 3)}` : ""}
        {gradient ? `, grad ${statistic(gradient, "rms", 3)}` : ""}
      </span>
    </button>
  );
}

export function Diagram(props: Props) {
  const { boxes, goal } = props;
  const layout = useMemo(() => placed(boxes), [boxes]);
  const space = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const first = typeof goal === "string" ? boxes.boxes.find(({ opens }) => opens === goal)?.ids[0] : goal;
    space.current?.querySelector<HTMLElement>(`[data-first="${first}"]`)?.focus();
  }, [goal, boxes]);
  return (
    <div class="diagram" tabIndex={0} role="group" aria-label="The graph as boxes">
      <div class="space" ref={space} style={{ width: `${layout.width}px`, height: `${layout.height}px` }}>
        <svg width={layout.width} height={layout.height} aria-hidden="true">
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 1l7 3-7 3z" />
            </marker>
          </defs>
          {layout.edges.map((points, i) => (
            <path key={i} d={roundedPath(points)} marker-end="url(#arrow)" />
          ))}
        </svg>
        {boxes.boxes.map((box, i) => (
          <BoxButton {...props} key={box.key} box={box} place={layout.places[i]} />
        ))}
      </div>
    </div>
  );
}
