// The boxes that a graph is drawn with while some of its modules are open, and the edges between them.

import type { Graph } from "./data";
import { consumersOf } from "./formulas";
import { type Module, groupsOf, parentOf, shortName } from "./graph_modules";

export interface Box {
  key: string;
  /** The name of what opens, or null for a single value. */
  opens: string | null;
  title: string;
  /** The whole name, where the title is the end of it. */
  name: string;
  type: string;
  /** The values in it. */
  ids: number[];
  /** Layers that are folded into it. */
  repeated: number;
}

export interface Boxes {
  boxes: Box[];
  edges: [from: number, to: number][];
}

/** Beyond this many boxes no layout is made. */
export const mostBoxes = 300;
const comfortableBoxes = 16;

function groupName(group: Module[]): string {
  return group.length === 1 ? group[0].name : `${group[0].name} … ${shortName(group[group.length - 1])}`;
}

/** The end of a name of modules. */
function shortened(name: string): string {
  return name.split(".").slice(-2).join(".");
}

function moduleBox(group: Module[]): Box {
  const name = groupName(group);
  return {
    key: `module ${name}`,
    opens: name,
    title: shortened(name),
    name,
    type: group[0].type,
    ids: group.flatMap((module) => module.all),
    repeated: group.length,
  };
}

function valueBox(graph: Graph, id: number): Box {
  const { kind, name } = graph.values[id];
  const whole = name || kind;
  return { key: `value ${id}`, opens: null, title: shortened(whole), name: whole, type: kind, ids: [id], repeated: 1 };
}

function visibleBoxes(graph: Graph, root: Module, open: ReadonlySet<string>): Box[] {
  const boxes: Box[] = [];
  const visit = (module: Module): void => {
    for (const id of module.values) boxes.push(valueBox(graph, id));
    for (const group of groupsOf(module)) {
      if (group.length > 1 && !open.has(groupName(group))) {
        boxes.push(moduleBox(group));
        continue;
      }
      for (const child of group) {
        if (child.all.length === 0) continue;
        if (open.has(child.name)) visit(child);
        else boxes.push(moduleBox([child]));
      }
    }
  };
  visit(root);
  return boxes.sort((a, b) => a.ids[0] - b.ids[0]);
}

export function boxesOf(graph: Graph, root: Module, open: ReadonlySet<string>): Boxes {
  const boxes = visibleBoxes(graph, root, open);
  if (boxes.length > mostBoxes) return { boxes, edges: [] };
  const boxOf = new Int32Array(graph.values.length).fill(-1);
  boxes.forEach(({ ids }, box) => ids.forEach((id) => (boxOf[id] = box)));
  const seen = new Set<number>();
  const edges: [number, number][] = [];
  graph.values.forEach(({ inputs }, id) => {
    for (const input of inputs) {
      if (input === null) continue;
      const [from, to] = [boxOf[input], boxOf[id]];
      const key = from * boxes.length + to;
      if (from === to || seen.has(key)) continue;
      seen.add(key);
      edges.push([from, to]);
    }
  });
  return { boxes, edges };
}

/** What is open at first: modules of modules from the outermost on, while that gives few boxes; never a layer of many. */
export function firstOpen(graph: Graph, root: Module): Set<string> {
  const open = new Set<string>();
  let modules = [root];
  while (modules.length > 0) {
    const next: Module[] = [];
    for (const module of modules) {
      for (const group of groupsOf(module)) {
        if (group.length > 1 || group[0].children.length === 0) continue;
        const trial = new Set(open).add(group[0].name);
        if (visibleBoxes(graph, root, trial).length > comfortableBoxes) continue;
        open.add(group[0].name);
        next.push(group[0]);
      }
    }
    modules = next;
  }
  return open;
}

/** Everything open, if that can be laid out, or null. */
export function allOpen(graph: Graph, root: Module): Set<string> | null {
  if (graph.values.length > mostBoxes) return null;
  const open = new Set<string>();
  const visit = (module: Module): void => {
    for (const group of groupsOf(module)) {
      open.add(groupName(group));
      for (const child of group) {
        open.add(child.name);
        visit(child);
      }
    }
  };
  visit(root);
  return open;
}

/** What stays open of `open` when one of it is closed: nothing within that, or within the layers of a fold. */
export function withoutModule(open: ReadonlySet<string>, closed: string): Set<string> {
  const [first, last] = closed.split(" … ");
  const outer = last === undefined ? first : parentOf(first);
  const prefix = outer === "" ? "" : `${outer}.`;
  return new Set([...open].filter((name) => name !== closed && !name.startsWith(prefix)));
}

/** The value of a box that others read: its result. */
export function resultOf(graph: Graph, { ids }: Box): number {
  const inside = new Set(ids);
  for (let i = ids.length - 1; i >= 0; --i) {
    if (consumersOf(graph, ids[i]).some(({ consumer }) => !inside.has(consumer))) return ids[i];
  }
  return ids[ids.length - 1];
}
