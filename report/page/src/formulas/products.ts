// Products of matrices.

import { broadcastFlat, elementCount, fiber, flatOf, indexOf } from "../shapes";
import { product, sum } from "./expression";
import type { Formula, Operand, Operation } from "./operation";

/** The matrices of an op: rows and columns as they are multiplied, and the flags that transpose them. */
interface Matrices {
  a: Operand;
  b: Operand;
  transA: boolean;
  transB: boolean;
  inner: number;
}

function matrices(op: Operation, isLinear: boolean): Matrices {
  const a = op.input(0);
  const b = op.input(1);
  const transA = op.flag("trans_a");
  const { length } = a.shape;
  return { a, b, transA, transB: isLinear || op.flag("trans_b"), inner: a.shape[length - (transA ? 2 : 1)] };
}

/** The place in an operand of element (row, column) of the matrix that `index` of the result names. */
function placeIn(operand: Operand, transposed: boolean, index: number[], row: number, column: number): number {
  const matrix = transposed ? [column, row] : [row, column];
  return broadcastFlat([...index.slice(0, -2), ...matrix], operand.shape);
}

/** The places of the result whose matrix broadcasts from the matrix that holds `index` of an operand. */
function batchPlaces(op: Operation, shape: readonly number[], index: number[]): number[][] {
  const batch = op.shape.slice(0, -2);
  const own = shape.slice(0, -2);
  return fiber(index.slice(0, -2), own, batch).map((flat) => indexOf(flat, batch));
}

function value(op: Operation, index: number[], isLinear: boolean): ReturnType<typeof sum> {
  const { a, b, transA, transB, inner } = matrices(op, isLinear);
  const [row, column] = [index[index.length - 2], index[index.length - 1]];
  const terms = Array.from({ length: inner }, (_, k) =>
    product(a.at(placeIn(a, transA, index, row, k)), b.at(placeIn(b, transB, index, k, column))),
  );
  const bias = op.inputs[2];
  return sum(bias ? [...terms, bias.at(column)] : terms);
}

function back(op: Operation, slot: number, index: number[], isLinear: boolean): ReturnType<typeof sum> {
  const { a, b, transA, transB } = matrices(op, isLinear);
  const columns = op.shape[op.shape.length - 1];
  if (slot === 2) {
    const rows = elementCount(op.shape) / columns;
    return sum(Array.from({ length: rows }, (_, row) => op.gradient.at(row * columns + index[0])));
  }
  const operand = slot === 0 ? a : b;
  const transposed = slot === 0 ? transA : transB;
  const last = index.slice(-2);
  const [row, column] = transposed ? [last[1], last[0]] : last;
  const rows = op.shape[op.shape.length - 2];
  return sum(
    batchPlaces(op, operand.shape, index).flatMap((batch) =>
      slot === 0
        ? Array.from({ length: columns }, (_, j) =>
            product(op.gradient.at(flatOf([...batch, row, j], op.shape)), b.at(placeIn(b, transB, [...batch, row, j], column, j))))
        : Array.from({ length: rows }, (_, i) =>
            product(op.gradient.at(flatOf([...batch, i, column], op.shape)), a.at(placeIn(a, transA, [...batch, i, column], i, row)))),
    ),
  );
}

export const productFormulas: Record<string, Formula> = {
  matmul: {
    rule: "yᵢⱼ = Σₖ aᵢₖ · bₖⱼ",
    value: (op, index) => value(op, index, false),
    backRule: (_, slot) => (slot === 0 ? "daᵢₖ = Σⱼ dyᵢⱼ · bₖⱼ" : "dbₖⱼ = Σᵢ dyᵢⱼ · aᵢₖ"),
    back: (op, slot, index) => back(op, slot, index, false),
  },
  linear: {
    rule: "yᵢⱼ = Σₖ xᵢₖ · weightⱼₖ + biasⱼ",
    value: (op, index) => value(op, index, true),
    backRule: (_, slot) => ["dxᵢₖ = Σⱼ dyᵢⱼ · weightⱼₖ", "dweightⱼₖ = Σᵢ dyᵢⱼ · xᵢₖ", "dbiasⱼ = Σᵢ dyᵢⱼ"][slot],
    back: (op, slot, index) => back(op, slot, index, true),
  },
};
