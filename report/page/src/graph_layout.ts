// Where the boxes of a graph are drawn.

import { Graph as Layout, layout } from "@dagrejs/dagre";
import type { Boxes } from "./graph_boxes";
import type { Point } from "./scales";

interface Placed {
  width: number;
  height: number;
  /** The middles of the boxes. */
  places: Point[];
  edges: Point[][];
}

export const boxWidth = 188;
export const boxHeight = 66;

export function placed({ boxes, edges }: Boxes): Placed {
  const graph = new Layout();
  graph.setGraph({ rankdir: "TB", ranksep: 34, nodesep: 18, marginx: 12, marginy: 12, ranker: "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  boxes.forEach((_, box) => graph.setNode(String(box), { width: boxWidth, height: boxHeight }));
  for (const [from, to] of edges) graph.setEdge(String(from), String(to));
  layout(graph);
  const { width, height } = graph.graph() as { width: number; height: number };
  return {
    width,
    height,
    places: boxes.map((_, box) => graph.node(String(box)) as Point),
    edges: edges.map(([from, to]) => (graph.edge(String(from), String(to)) as { points: Point[] }).points),
  };
}
