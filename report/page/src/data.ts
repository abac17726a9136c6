// The data of a report, docs/report_format.md, as types and as readers that refuse what does not fit.

import { type StoredArray, expectShape, numbersOf, storedArray } from "./arrays";
import { type Reader, Refusal, at, bool, count, listOf, mapOf, number, object, optional, orNull, refuse, textBy } from "./readers";
import { type Shape, elementCount } from "./shapes";
import { visible } from "./text";

export interface Curve {
  name: string;
  /** Missing if the steps follow each other from the first one. */
  steps: StoredArray | null;
  first: number;
  values: StoredArray;
}

/** null stands for a number that is not finite. */
export interface Statistics {
  min: number | null;
  max: number | null;
  mean: number | null;
  rms: number | null;
  nonfinite: number;
}

export interface Histogram extends Statistics {
  /** Of equal bins from min to max. */
  counts: number[];
  norm: number | null;
}

export interface ParameterSnapshot {
  weight: Histogram | null;
  gradient: Histogram | null;
  update: Histogram | null;
}

export interface Parameter {
  name: string;
  shape: Shape;
  snapshots: (ParameterSnapshot | null)[];
}

export interface AttentionSnapshot {
  weights: StoredArray;
  gradient: StoredArray | null;
}

export interface Attention {
  module: string;
  example: string;
  queries: string[];
  keys: string[];
  heads: number;
  masked: StoredArray | null;
  snapshots: (AttentionSnapshot | null)[];
  graph: number | null;
  value: number | null;
  row: number | null;
}

interface Answer {
  label: string;
  probability: number | null;
}

export interface Prediction {
  text: string;
  truth: string | null;
  snapshots: ({ answers: Answer[] } | null)[];
}

export type Attribute = number | boolean | string | number[] | StoredArray;

interface Value {
  kind: "op" | "parameter" | "constant";
  name: string;
  module: string | null;
  inputs: (number | null)[];
  attributes: Map<string, Attribute>;
  shape: Shape;
}

export interface GraphSnapshot {
  value: (Statistics | null)[];
  gradient: (Statistics | null)[];
  values: (StoredArray | null)[];
  gradients: (StoredArray | null)[];
}

export interface Graph {
  name: string;
  loss: number | null;
  modules: Map<string, string>;
  /** The names of the operands of each op, by the op's own. */
  operands: Map<string, string[]>;
  /** Of the ops whose result at an index depends on the operands at that index: y and its derivatives. */
  formulas: Map<string, string>;
  values: Value[];
  snapshots: (GraphSnapshot | null)[];
  /** Names by id in place of an op's and its number; not in the data. */
  titles?: Map<number, string>;
}

export interface Tensor {
  section: string;
  name: string;
  value: StoredArray;
  gradient: StoredArray | null;
  axes: string[];
  rows: string[];
  columns: string[];
  graph: number | null;
  id: number | null;
}

export interface ProfileRow {
  name: string;
  calls: number;
  forward_seconds: number;
  backward_seconds: number;
  bytes: number;
}

export interface Profile {
  seconds: number;
  ops: ProfileRow[];
  modules: ProfileRow[];
}

export interface Run {
  title: string;
  program: string;
  options: Map<string, string>;
  seed: string;
  versions: Map<string, string>;
  parameter_count: number | null;
  threads: number | null;
  seconds: number | null;
  memory_bytes: number | null;
  notes: string[];
  steps: number[];
  curves: Curve[];
  parameters: Parameter[];
  attention: Attention[];
  predictions: Prediction[];
  graphs: Graph[];
  tensors: Tensor[];
  profile: Profile | null;
}

// Every text passes here, so that nothing invisible reaches the page.
const text = textBy(visible);
const anyNumber = orNull(number);
const noNumber = optional(orNull(number), null);
const noArray = optional(orNull(storedArray), null);

function expectAscending(steps: ArrayLike<number>): void {
  for (let i = 1; i < steps.length; ++i) if (!(steps[i] > steps[i - 1])) refuse("must ascend");
}

const curve: Reader<Curve> = (value) => {
  const result = object<Curve>({ name: text, steps: noArray, first: optional(number, 0), values: storedArray })(value);
  const { steps } = result;
  if (steps) {
    at("values", () => expectShape(result.values, [elementCount(steps.shape)]));
    at("steps", () => expectAscending(numbersOf(steps)));
  }
  return result;
};

const statisticFields = {
  min: optional(anyNumber, null),
  max: optional(anyNumber, null),
  mean: optional(anyNumber, null),
  rms: optional(anyNumber, null),
  nonfinite: optional(count, 0),
};
const statistics = object<Statistics>(statisticFields);

const histogram = object<Histogram>({
  ...statisticFields,
  counts: listOf(count),
  norm: optional(anyNumber, null),
});
const noHistogram = optional(orNull(histogram), null);

const parameter = object<Parameter>({
  name: text,
  shape: listOf(count),
  snapshots: listOf(orNull(object<ParameterSnapshot>({ weight: noHistogram, gradient: noHistogram, update: noHistogram }))),
});

const attention: Reader<Attention> = (value) => {
  const result = object<Attention>({
    module: optional(text, ""),
    example: optional(text, ""),
    queries: listOf(text),
    keys: listOf(text),
    heads: count,
    masked: noArray,
    snapshots: listOf(orNull(object<AttentionSnapshot>({ weights: storedArray, gradient: noArray }))),
    graph: noNumber,
    value: noNumber,
    row: noNumber,
  })(value);
  const matrix = [result.queries.length, result.keys.length];
  const shape = [result.heads, ...matrix];
  const { masked } = result;
  if (masked) at("masked", () => expectShape(masked, masked.shape.length === 2 ? matrix : shape));
  result.snapshots.forEach((snapshot, notch) => {
    if (snapshot === null) return;
    at(`snapshots[${notch}].weights`, () => expectShape(snapshot.weights, shape));
    const { gradient } = snapshot;
    if (gradient) at(`snapshots[${notch}].gradient`, () => expectShape(gradient, shape));
  });
  return result;
};

const prediction = object<Prediction>({
  text,
  truth: optional(orNull(text), null),
  snapshots: listOf(orNull(object({ answers: listOf(object<Answer>({ label: text, probability: anyNumber })) }))),
});

const notFinite = new Map<unknown, number>([["nan", NaN], ["inf", Infinity], ["-inf", -Infinity]]);
const attributeNumber: Reader<number> = (value) => notFinite.get(value) ?? number(value);

const attribute: Reader<Attribute> = (value) => {
  if (typeof value === "number" || notFinite.has(value)) return attributeNumber(value);
  if (typeof value === "boolean") return bool(value);
  if (typeof value === "string") return text(value);
  return Array.isArray(value) ? listOf(attributeNumber)(value) : storedArray(value);
};

const kind: Reader<Value["kind"]> = (value) =>
  value === "op" || value === "parameter" || value === "constant" ? value : refuse("must be op, parameter or constant");

const graphValue = object<Value>({
  kind,
  name: optional(text, ""),
  module: optional(orNull(text), null),
  inputs: listOf(orNull(count)),
  attributes: mapOf(text, attribute),
  shape: listOf(count),
});

const graph: Reader<Graph> = (value) => {
  const result = object<Graph>({
    name: optional(text, ""),
    loss: optional(orNull(count), null),
    modules: mapOf(text, text),
    operands: mapOf(text, listOf(text)),
    formulas: mapOf(text, text),
    values: listOf(graphValue),
    snapshots: listOf(
      orNull(
        object<GraphSnapshot>({
          value: listOf(orNull(statistics)),
          gradient: listOf(orNull(statistics)),
          values: listOf(orNull(storedArray)),
          gradients: listOf(orNull(storedArray)),
        }),
      ),
    ),
  })(value);
  const { values, loss } = result;
  if (loss !== null && loss >= values.length) at("loss", () => refuse("must be the id of a value"));
  values.forEach(({ inputs }, id) => {
    if (inputs.some((input) => input !== null && input >= id)) at(`values[${id}].inputs`, () => refuse("must have smaller ids than their result"));
  });
  result.snapshots.forEach((snapshot, notch) => {
    if (snapshot === null) return;
    for (const name of ["value", "gradient", "values", "gradients"] as const) {
      const list = snapshot[name];
      at(`snapshots[${notch}].${name}`, () => {
        if (list.length !== 0 && list.length !== values.length) refuse(`must be as long as values, ${values.length}, but has ${list.length}`);
        list.forEach((item, id) => {
          if (item !== null && "base64" in item) at(`[${id}]`, () => expectShape(item, values[id].shape));
        });
      });
    }
  });
  return result;
};

const tensor: Reader<Tensor> = (value) => {
  const result = object<Tensor>({
    section: optional(text, ""),
    name: optional(text, ""),
    value: storedArray,
    gradient: noArray,
    axes: listOf(text),
    rows: listOf(text),
    columns: listOf(text),
    graph: noNumber,
    id: noNumber,
  })(value);
  const { gradient } = result;
  if (gradient) at("gradient", () => expectShape(gradient, result.value.shape));
  return result;
};

const profileRow = object<ProfileRow>({
  name: text,
  calls: optional(count, 0),
  forward_seconds: optional(number, 0),
  backward_seconds: optional(number, 0),
  bytes: optional(number, 0),
});

const noCount = optional(orNull(count), null);

const run: Reader<Run> = (value) => {
  const result = object<Run>({
    title: text,
    program: optional(text, ""),
    options: mapOf(text, text),
    seed: optional(text, ""),
    versions: mapOf(text, text),
    parameter_count: noCount,
    threads: noCount,
    seconds: noNumber,
    memory_bytes: noCount,
    notes: listOf(text),
    steps: listOf(number),
    curves: listOf(curve),
    parameters: listOf(parameter),
    attention: listOf(attention),
    predictions: listOf(prediction),
    graphs: listOf(graph),
    tensors: listOf(tensor),
    profile: optional(orNull(object<Profile>({ seconds: optional(number, 0), ops: listOf(profileRow), modules: listOf(profileRow) })), null),
  })(value);
  const { steps } = result;
  at("steps", () => expectAscending(steps));
  for (const name of ["parameters", "attention", "predictions", "graphs"] as const) {
    result[name].forEach(({ snapshots }, i) => {
      if (snapshots.length !== 0 && snapshots.length !== steps.length) {
        at(`${name}[${i}].snapshots`, () => refuse(`must be as long as steps, ${steps.length}, but has ${snapshots.length}`));
      }
    });
  }
  checkPlaces(result);
  return result;
};

/** Attention and tensors name places in graphs, which must be there. */
function checkPlaces({ attention, tensors, graphs }: Run): void {
  const check = (name: string, index: number | null, id: number | null, fits: (size: number) => boolean): void => {
    if (index === null || id === null) return;
    const value = graphs[index]?.values[id];
    if (value === undefined) at(name, () => refuse("names a value that is in no graph"));
    else if (!fits(elementCount(value.shape))) at(name, () => refuse("names a value of a graph that has another size"));
  };
  attention.forEach(({ graph, value, row, heads, queries, keys }, i) =>
    check(`attention[${i}]`, graph, value, (size) => size >= ((row ?? 0) + 1) * heads * queries.length * keys.length),
  );
  tensors.forEach(({ graph, id, value }, i) => check(`tensors[${i}]`, graph, id, (size) => size === elementCount(value.shape)));
}

/** The runs of a report as text. Throws a Refusal for data that is none. */
export function readReport(json: string): Run[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new Refusal("is not JSON");
  }
  return runsOf(value);
}

/** The runs of a report. Throws a Refusal for data that is none. */
export function runsOf(value: unknown): Run[] {
  if (typeof value === "string") throw new Refusal("is missing: this is the page alone, without a report");
  const head = object({ format: optional(text, ""), version: optional(number, 0) })(value);
  if (head.format !== "xgrad-report") throw new Refusal('must say {"format": "xgrad-report"}');
  if (head.version !== 1) throw new Refusal(`has version ${head.version} of the format, and this page reads version 1`);
  const { runs } = object({ runs: listOf(run) })(value);
  if (runs.length === 0) throw new Refusal("holds no run");
  return runs;
}
