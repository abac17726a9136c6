// The values of a graph as a tree of modules, with repeated layers found.

import type { Graph } from "./data";
import { consumersOf } from "./formulas";

export interface Module {
  name: string;
  type: string;
  children: Module[];
  /** The ids of the values that are in this module and in none of its children. */
  values: number[];
  /** The ids of all values in it. */
  all: number[];
  /** What its ops and parameters are: layers that are alike have the same. */
  signature: string;
}

/** Layers of a list that follow each other and are alike, or a single module. */
export type Group = Module[];

export function parentOf(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? "" : name.slice(0, dot);
}

function commonModule(a: string, b: string): string {
  while (a !== "" && a !== b && !b.startsWith(`${a}.`)) a = parentOf(a);
  return a;
}

/** The module of each value: parameters have it in their names, constants are where they are used. */
function modulesOfValues(graph: Graph): string[] {
  const result = graph.values.map(({ module }) => module ?? "");
  for (let id = graph.values.length - 1; id >= 0; --id) {
    const { kind, name } = graph.values[id];
    if (kind === "op") continue;
    let module = kind === "parameter" ? parentOf(name) : "";
    while (module !== "" && !graph.modules.has(module)) module = parentOf(module);
    if (module === "") {
      const users = consumersOf(graph, id).map(({ consumer }) => result[consumer]);
      module = users.length > 0 ? users.reduce(commonModule) : "";
    }
    result[id] = module;
  }
  return result;
}

function finish(module: Module, graph: Graph): void {
  for (const child of module.children) finish(child, graph);
  module.all = [...module.values, ...module.children.flatMap((child) => child.all)].sort((a, b) => a - b);
  module.children.sort((a, b) => (a.all[0] ?? Infinity) - (b.all[0] ?? Infinity));
  const own = module.values.map((id) => graph.values[id]).filter(({ kind }) => kind !== "constant");
  const parts = module.children.map((child) => `${shortName(child)}(${child.signature})`);
  module.signature = [module.type, ...own.map(({ kind, name }) => (kind === "op" ? name : kind)), ...parts].join(",");
}

export function moduleTree(graph: Graph): Module {
  const modules = new Map<string, Module>();
  const moduleNamed = (name: string): Module => {
    let module = modules.get(name);
    if (module === undefined) {
      module = { name, type: graph.modules.get(name) ?? "", children: [], values: [], all: [], signature: "" };
      modules.set(name, module);
      if (name !== "") moduleNamed(parentOf(name)).children.push(module);
    }
    return module;
  };
  const root = moduleNamed("");
  modulesOfValues(graph).forEach((name, id) => moduleNamed(name).values.push(id));
  finish(root, graph);
  return root;
}

export function shortName({ name }: Module): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

/** The number of a layer in a list of them, or null. */
function layerNumber(module: Module): number | null {
  const name = shortName(module);
  return /^\d+$/.test(name) ? Number(name) : null;
}

/** The children of a module, repeated layers together. */
export function groupsOf(module: Module): Group[] {
  const groups: Group[] = [];
  for (const child of module.children) {
    const group = groups[groups.length - 1];
    const previous = group?.[group.length - 1];
    const number = layerNumber(child);
    const repeats = previous !== undefined && number !== null && layerNumber(previous) === number - 1;
    if (repeats && previous.signature === child.signature) group.push(child);
    else groups.push([child]);
  }
  return groups;
}
