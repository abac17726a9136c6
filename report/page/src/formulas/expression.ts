// Formulas with numbers in them: trees whose nodes know what they come to.

import type { Dtype } from "../numbers";

/** A cell of a value of the graph, or of the gradient of one. */
export interface Cell {
  id: number;
  flat: number;
  gradient: boolean;
}

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

export function power(base: Expression, exponent: Expression): Expression {
  const value = base.value ** exponent.value;
  return { kind: "power", parts: [base, exponent], value, size: Math.abs(value) };
}

export function call(name: string, f: (...values: number[]) => number, ...parts: Expression[]): Expression {
  const value = f(...parts.map((part) => part.value));
  return { kind: "call", name, parts, value, size: Math.abs(value) };
}

/** A function that passes the rounding of a computed argument on, times its slope. */
function smooth(name: string, x: Expression, value: number, slope: number): Expression {
  const isGiven = x.kind === "operand" || x.kind === "number";
  const size = isGiven ? Math.abs(value) : Math.max(Math.abs(value), Math.abs(slope) * x.size);
  return { kind: "call", name, parts: [x], value, size };
}

export function exp(x: Expression): Expression {
  const value = Math.exp(x.value);
  return smooth("exp", x, value, value);
}

export function log(x: Expression): Expression {
  return smooth("log", x, Math.log(x.value), 1 / x.value);
}

export function root(x: Expression): Expression {
  const value = Math.sqrt(x.value);
  return smooth("√", x, value, 0.5 / value);
}

export function orZero(x: Expression): Expression {
  return { kind: "call", name: "max", parts: [zero, x], value: Math.max(0, x.value), size: x.size };
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

export const tolerance = 1e-6;
