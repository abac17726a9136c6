// The encoder block that the lesson walks through: what a reader may change, and the numbers that follow.

import { type Numbers, numbersOf } from "../../../report/page/src/arrays";
import { type Graph, type GraphSnapshot, type Tensor, runsOf } from "../../../report/page/src/data";
import { valueName } from "../../../report/page/src/formula_panel";

export interface Edit {
  parameter: string;
  index: number;
  value: number;
}

export interface Settings {
  sentence: string;
  d_model: number;
  /** null: one in the stops about one head, then two, as in the notebook. */
  heads: number | null;
  positions: boolean;
  residual: boolean;
  hidden: number[];
  asked: number;
  edits: Edit[];
}

export const notebook: Settings = {
  sentence: "my shoes are small, my feet are big.",
  d_model: 4,
  heads: null,
  positions: true,
  residual: true,
  hidden: [],
  asked: 1,
  edits: [],
};

/** As the notebook splits it. */
export function wordsOf(sentence: string): string[] {
  return sentence.replaceAll(",", "").split(/\s+/).filter(Boolean);
}

export function walkRequest({ sentence, ...others }: Settings, heads: number): object {
  return { do: "walk", words: wordsOf(sentence), ...others, heads };
}

/** What the library computed. */
export class Walk {
  readonly graph: Graph;
  readonly snapshot: GraphSnapshot;
  private readonly tensors: Map<string, Tensor>;

  constructor(report: unknown, readonly heads: number) {
    const [{ graphs, tensors }] = runsOf(report);
    [this.graph] = graphs;
    const [snapshot] = this.graph.snapshots;
    if (snapshot === null) throw new Error("the report has no numbers");
    this.snapshot = snapshot;
    this.tensors = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    this.graph.titles = new Map(tensors.flatMap(({ id, name }) => (id === null ? [] : [[id, symbolOf(name)]])));
  }

  has(name: string): boolean {
    return this.tensors.has(name);
  }

  /** By its name, or by "#id" of the graph. */
  tensor(name: string): Tensor {
    const tensor = this.tensors.get(name) ?? (name.startsWith("#") ? this.unnamed(Number(name.slice(1))) : undefined);
    if (tensor === undefined) throw new Error(`there is no ${name}`);
    return tensor;
  }

  /** What tensor() knows a value of the graph by. */
  nameOf(id: number): string {
    for (const { name, id: own } of this.tensors.values()) if (own === id) return name;
    return `#${id}`;
  }

  /** As the lesson writes it. */
  titleOf(name: string): string {
    return name.startsWith("#") ? valueName(this.graph, Number(name.slice(1))) : symbolOf(name);
  }

  private unnamed(id: number): Tensor | undefined {
    const value = this.snapshot.values[id];
    if (!value) return undefined;
    const rows = value.shape.length > 1 && value.shape.at(-2) === this.words.length ? this.words : [];
    return { section: "", name: `#${id}`, value, gradient: this.snapshot.gradients[id], axes: [], rows, columns: [], graph: 0, id };
  }

  numbers(name: string): Numbers {
    return numbersOf(this.tensor(name).value);
  }

  /** A row of a matrix, of one of its heads. */
  row(name: string, row: number, head = 0): number[] {
    const { shape } = this.tensor(name).value;
    const [rows, columns] = shape.slice(-2);
    const start = (head * rows + row) * columns;
    return Array.from(this.numbers(name).slice(start, start + columns));
  }

  get words(): string[] {
    return this.tensor("embedded").rows;
  }
}

const symbols = new Map([
  ["sum_1", "x + attended"],
  ["normed_1", "normed"],
  ["sum_2", "normed + fed"],
  ["embed.weight", "table of words"],
  ["positions.weight", "table of places"],
]);

/** A tensor's name as the lesson writes it. */
export function symbolOf(name: string): string {
  return symbols.get(name) ?? name.replace(/\.weight$/, "");
}
