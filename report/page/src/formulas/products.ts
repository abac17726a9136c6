// Products of matrices.

import { type Shape, broadcastFlat, elementCount, fiber, flatOf, indexOf } from "../shapes";
import { type Expression, orZero, product, sum, zero } from "./expression";
import type { Formula, Operand, Operation } from "./operation";

/** What an op does with the product of its matrices. */
interface Kind {
  /** The second matrix is a weight (out, in). */
  linear: boolean;
  relu: boolean;
}

/** An operand or a result as matrices: a vector is one of a single row or column. */
interface Matrices {
  shape: Shape;
  transposed: boolean;
  at(flat: number): Expression;
}

/** The operands of an op and its result. */
interface Factors {
  a: Matrices;
  b: Matrices;
  inner: number;
  shape: Shape;
}

function factors(op: Operation, { linear }: Kind): Factors {
  const [left, right] = [op.input(0), op.input(1)];
  const isVector = ({ shape }: Operand): boolean => shape.length === 1;
  const a = { shape: isVector(left) ? [1, ...left.shape] : left.shape, transposed: op.flag("trans_a"), at: (flat: number) => left.at(flat) };
  const b = {
    shape: !isVector(right) ? right.shape : linear ? [1, ...right.shape] : [...right.shape, 1],
    transposed: linear || op.flag("trans_b"),
    at: (flat: number) => right.at(flat),
  };
  const shape = [...op.shape];
  if (isVector(right)) shape.push(1);
  if (isVector(left)) shape.splice(shape.length - 1, 0, 1);
  return { a, b, inner: a.shape[a.shape.length - (a.transposed ? 2 : 1)], shape };
}

/** The element (row, column) of the matrix of an operand that `index` of the result names. */
function element({ shape, transposed, at }: Matrices, index: readonly number[], row: number, column: number): Expression {
  const matrix = transposed ? [column, row] : [row, column];
  return at(broadcastFlat([...index.slice(0, -2), ...matrix], shape));
}

/** The indices of the batch axes of the result whose matrix is computed from the one that holds `index` of an operand. */
function batches(result: Shape, shape: Shape, index: number[]): number[][] {
  const batch = result.slice(0, -2);
  return fiber(index.slice(0, -2), shape.slice(0, -2), batch).map((flat) => indexOf(flat, batch));
}

function counting<T>(length: number, of: (k: number) => T): T[] {
  return Array.from({ length }, (_, k) => of(k));
}

function value(op: Operation, index: number[], kind: Kind): Expression {
  const { a, b, inner, shape } = factors(op, kind);
  const place = indexOf(flatOf(index, op.shape), shape);
  const [row, column] = place.slice(-2);
  const terms = counting(inner, (k) => product(element(a, place, row, k), element(b, place, k, column)));
  const bias = op.named("bias");
  const total = sum(bias ? [...terms, bias.at(column)] : terms);
  return kind.relu ? orZero(total) : total;
}

function back(op: Operation, slot: number, index: number[], kind: Kind): Expression {
  const { a, b, shape } = factors(op, kind);
  const [rows, columns] = shape.slice(-2);
  const dy = (flat: number): Expression => (kind.relu && !(op.output.at(flat).value > 0) ? zero : op.gradient.at(flat));
  if (op.nameOf(slot) === "bias") return sum(counting(elementCount(shape) / columns, (row) => dy(row * columns + (index[0] ?? 0))));
  const own = slot === 0 ? a : b;
  const place = indexOf(flatOf(index, op.input(slot).shape), own.shape);
  const [first, last] = place.slice(-2);
  const [row, column] = own.transposed ? [last, first] : [first, last];
  const term =
    slot === 0
      ? (at: number[]) => product(dy(flatOf(at, shape)), element(b, at, column, at[at.length - 1]))
      : (at: number[]) => product(dy(flatOf(at, shape)), element(a, at, at[at.length - 2], row));
  const ends = slot === 0 ? counting(columns, (j) => [row, j]) : counting(rows, (i) => [i, column]);
  return sum(batches(shape, own.shape, place).flatMap((batch) => ends.map((end) => term([...batch, ...end]))));
}

const bias = " + biasⱼ";

function formula(rule: string, backRules: Record<string, string>, kind: Kind): Formula {
  return {
    rule: (op) => (op.named("bias") ? rule : rule.replace(bias, "")),
    value: (op, index) => value(op, index, kind),
    backRule: (op, slot) => backRules[op.nameOf(slot)] ?? "",
    back: (op, slot, index) => back(op, slot, index, kind),
  };
}

const linearBackRules = { x: "dxᵢₖ = Σⱼ dyᵢⱼ · weightⱼₖ", weight: "dweightⱼₖ = Σᵢ dyᵢⱼ · xᵢₖ", bias: "dbiasⱼ = Σᵢ dyᵢⱼ" };

export const productFormulas: Record<string, Formula> = {
  matmul: formula("yᵢⱼ = Σₖ aᵢₖ · bₖⱼ", { a: "daᵢₖ = Σⱼ dyᵢⱼ · bₖⱼ", b: "dbₖⱼ = Σᵢ dyᵢⱼ · aᵢₖ" }, { linear: false, relu: false }),
  linear: formula(`yᵢⱼ = Σₖ xᵢₖ · weightⱼₖ${bias}`, linearBackRules, { linear: true, relu: false }),
  linear_relu: formula(
    `yᵢⱼ = max(0, Σₖ xᵢₖ · weightⱼₖ${bias})`,
    Object.fromEntries(Object.entries(linearBackRules).map(([name, rule]) => [name, `${rule}, where y > 0`])),
    { linear: true, relu: true },
  ),
};
