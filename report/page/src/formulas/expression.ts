// Formulas with numbers in them: trees whose nodes know what they come to.

import type { Dtype } from "../numbers";

/** A cell of a value of the graph, or of the gradient of one. */
export interface Cell {
  id: number;
  flat: number;
  gradient: boolean;
}

/** What rounding may come to, relative to the size of a formula's parts. */
export const tolerance = 1e-6;

/** `size` is what the parts come to without their signs: rounding is judged against it. */
export type Expression = { value: number; size: number } & (
  | { kind: "operand"; cell: Cell }
  | { kind: "number" }
  | { kind: "sum" | "product"; parts: Expression[] }
  | { kind: "difference" | "quotient" | "power"; parts: [Expression, Expression] }
  | { kind: "call"; name: string; parts: Expression[] }
);

export function operand(cell: Cell, value: number): Expression {
  return { kind: "operand", cell, value, size: Math.abs(value) };
}

export function number(value: number): Expression {
  return { kind: "number", value, size: Math.abs(value) };
}

export function sum(parts: Expression[]): Expression {
  let value = 0;
  let size = 0;
  for (const part of parts) {
    value += part.value;
    size += part.size;
  }
  return { kind: "sum", parts, value, size };
}

export function product(...parts: Expression[]): Expression {
  let value = 1;
  let size = 1;
  for (const part of parts) {
    value *= part.value;
    size *= part.size;
  }
  return { kind: "product", parts, value, size };
}

export function minus(left: Expression, right: Expression): Expression {
  return { kind: "difference", parts: [left, right], value: left.value - right.value, size: left.size + right.size };
}

export function over(top: Expression, bottom: Expression): Expression {
  return { kind: "quotient", parts: [top, bottom], value: top.value / bottom.value, size: top.size / Math.abs(bottom.value) };
}

/** The size of f(parts): how far it moves, times 1 / tolerance, where parts that were computed move by as much of their size. */
function sizeOf(f: (...values: number[]) => number, parts: Expression[], value: number): number {
  let size = Math.abs(value);
  parts.forEach((part, i) => {
    if (part.kind === "operand" || part.kind === "number") return;
    for (const step of [-tolerance, tolerance]) {
      const values = parts.map((other) => other.value);
      values[i] += step * part.size;
      const moved = Math.abs(f(...values) - value) / tolerance;
      if (moved > size && moved < Infinity) size = moved;
    }
  });
  return size;
}

export function power(base: Expression, exponent: Expression): Expression {
  const value = base.value ** exponent.value;
  return { kind: "power", parts: [base, exponent], value, size: sizeOf((a, b) => a ** b, [base, exponent], value) };
}

export function call(name: string, f: (...values: number[]) => number, ...parts: Expression[]): Expression {
  const value = f(...parts.map((part) => part.value));
  return { kind: "call", name, parts, value, size: sizeOf(f, parts, value) };
}

export const exp = (x: Expression): Expression => call("exp", Math.exp, x);
export const log = (x: Expression): Expression => call("log", Math.log, x);
export const root = (x: Expression): Expression => call("√", Math.sqrt, x);

export function orZero(x: Expression): Expression {
  return call("max", Math.max, zero, x);
}

const one = number(1);

export function negated(x: Expression): Expression {
  return product(number(-1), x);
}

export function oneMinus(x: Expression): Expression {
  return minus(one, x);
}

export const zero = number(0);

/** Below these, the smallest normal numbers, results have lost digits or were flushed to 0. */
const smallestNormal: Partial<Record<Dtype, number>> = { f32: 2 ** -126, f64: 2 ** -1022 };

/** How far `shown` is from what the expression comes to, relative to the size of its parts. */
export function difference({ value, size }: Expression, shown: number, dtype: Dtype): number {
  if (value === shown || (Number.isNaN(value) && Number.isNaN(shown))) return 0;
  const distance = Math.abs(value - shown);
  return distance < (smallestNormal[dtype] ?? 0) ? 0 : distance / Math.max(Math.abs(shown), size);
}

