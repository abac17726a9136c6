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

/** The matrices of an op: rows and columns as they are multiplied, and the flags that transpose them. */
interface Matrices {
  a: Operand;
  b: Operand;
  transA: boolean;
  transB: boolean;
  inner: number;
}

function matrices(op: Operation, { linear }: Kind): Matrices {
  const a = op.input(0);
  const b = op.input(1);
  const transA = op.flag("trans_a");
  const { length } = a.shape;
  return { a, b, transA, transB: linear || op.flag("trans_b"), inner: a.shape[length - (transA ? 2 : 1)] };
}

/** The element (row, column) of the matrix of an operand that `index` of the result names. */
function element(operand: Operand, transposed: boolean, index: number[], row: number, column: number): Expression {
  const matrix = transposed ? [column, row] : [row, column];
  return operand.at(broadcastFlat([...index.slice(0, -2), ...matrix], operand.shape));
}

/** The indices of the batch axes of the result whose matrix is computed from the one that holds `index` of an operand. */
function batches(op: Operation, shape: Shape, index: number[]): number[][] {
  const batch = op.shape.slice(0, -2);
  return fiber(index.slice(0, -2), shape.slice(0, -2), batch).map((flat) => indexOf(flat, batch));
}

function counting<T>(length: number, of: (k: number) => T): T[] {
  return Array.from({ length }, (_, k) => of(k));
}

function value(op: Operation, index: number[], kind: Kind): Expression {
  const { a, b, transA, transB, inner } = matrices(op, kind);
  const [row, column] = index.slice(-2);
  const terms = counting(inner, (k) => product(element(a, transA, index, row, k), element(b, transB, index, k, column)));
  const bias = op.named("bias");
  const total = sum(bias ? [...terms, bias.at(column)] : terms);
  return kind.relu ? orZero(total) : total;
}

function back(op: Operation, slot: number, index: number[], kind: Kind): Expression {
  const { a, b, transA, transB } = matrices(op, kind);
  const [rows, columns] = op.shape.slice(-2);
  const dy = (flat: number): Expression => (kind.relu && !(op.output.at(flat).value > 0) ? zero : op.gradient.at(flat));
  if (op.nameOf(slot) === "bias") return sum(counting(elementCount(op.shape) / columns, (row) => dy(row * columns + index[0])));
  const [first, last] = index.slice(-2);
  const swapped = slot === 0 ? transA : transB;
  const [row, column] = swapped ? [last, first] : [first, last];
  const dyAt = (place: number[]): Expression => dy(flatOf(place, op.shape));
  if (slot === 0) {
    const term = (place: number[]): Expression => product(dyAt(place), element(b, transB, place, column, place[place.length - 1]));
    return sum(batches(op, a.shape, index).flatMap((batch) => counting(columns, (j) => term([...batch, row, j]))));
  }
  const term = (place: number[]): Expression => product(dyAt(place), element(a, transA, place, place[place.length - 2], row));
  return sum(batches(op, b.shape, index).flatMap((batch) => counting(rows, (i) => term([...batch, i, column]))));
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
