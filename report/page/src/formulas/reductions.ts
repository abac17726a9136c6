// Ops that reduce axes.

import { broadcastFlat, fiber, flatOf, indexOf, kept, normalizedAxis } from "../shapes";
import { type Expression, call, exp, log, minus, number, over, product, sum, zero } from "./expression";
import type { Formula, Operand, Operation } from "./operation";

/** The shape of the result with its reduced axes as 1. */
function keptShape(op: Operation): number[] {
  const { shape } = op.input(0);
  return kept(shape, op.axes("dim", shape.length));
}

/** The elements that went into the element of the result at `index`. */
function reducedFrom(op: Operation, index: number[], to = keptShape(op)): Expression[] {
  const x = op.input(0);
  const place = indexOf(flatOf(index, op.shape), to);
  return fiber(place, to, x.shape).map((flat) => x.at(flat));
}

/** What `operand`, the result or its gradient, holds for the element at `index` of x. */
function reducedTo(operand: Operand, index: number[], to: number[]): Expression {
  return operand.at(broadcastFlat(index, to));
}

function elementAt(op: Operation, index: number[]): Expression {
  const x = op.input(0);
  return x.at(flatOf(index, x.shape));
}

function extreme(name: string, f: (...values: number[]) => number): Formula {
  return {
    rule: `y = the ${name} of x over the reduced axes`,
    value: (op, index) => call(name, f, ...reducedFrom(op, index)),
    backRule: () => `dy where x is the ${name}, shared among equals`,
    back: (op, _, index) => {
      const to = keptShape(op);
      const y = reducedTo(op.output, index, to);
      const dy = reducedTo(op.gradient, index, to);
      const equals = reducedFrom(op, indexOf(broadcastFlat(index, to), op.shape)).filter((x) => x.value === y.value).length;
      return product(dy, number(elementAt(op, index).value === y.value ? 1 / equals : 0));
    },
  };
}

/** The places along the axis of an op that are chosen by themselves and the place of `index`. */
function alongAxis(op: Operation, index: number[], chosen: (place: number, here: number) => boolean): number[] {
  if (op.shape.length === 0) return [0];
  const axis = normalizedAxis(op.number("dim"), op.shape.length);
  const places = Array.from({ length: op.shape[axis] }, (_, place) => place).filter((place) => chosen(place, index[axis]));
  return places.map((place) => flatOf(index.map((k, i) => (i === axis ? place : k)), op.shape));
}

function variance(values: number[], correction: number): number {
  const mean = values.reduce((total, value) => total + value, 0) / values.length;
  return values.reduce((total, value) => total + (value - mean) ** 2, 0) / Math.max(0, values.length - correction);
}

export const reductionFormulas: Record<string, Formula> = {
  sum: {
    rule: "y = Σ x over the reduced axes",
    value: (op, index) => sum(reducedFrom(op, index)),
    backRule: () => "dy of the sum that it went into",
    back: (op, _, index) => reducedTo(op.gradient, index, keptShape(op)),
  },
  mean: {
    rule: "y = Σ x / n over the reduced axes",
    value: (op, index) => {
      const parts = reducedFrom(op, index);
      return over(sum(parts), number(parts.length));
    },
    backRule: () => "dy / n of the mean that it went into",
    back: (op, _, index) => {
      const to = keptShape(op);
      const x = op.input(0).shape;
      const length = x.reduce((product, n, axis) => product * (to[axis] === n ? 1 : n), 1);
      return over(reducedTo(op.gradient, index, to), number(length));
    },
  },
  sum_to: {
    rule: "y = Σ x over the axes that were broadcast",
    value: (op, index) => sum(fiber(index, op.shape, op.input(0).shape).map((flat) => op.input(0).at(flat))),
    backRule: () => "dy of the sum that it went into",
    back: (op, _, index) => reducedTo(op.gradient, index, [...op.shape]),
  },
  amax: extreme("largest", Math.max),
  amin: extreme("smallest", Math.min),
  logsumexp: {
    rule: "y = log Σ exp(x − m) + m, where m is the largest x",
    value: (op, index) => {
      const parts = reducedFrom(op, index);
      const largest = parts.reduce((a, b) => (b.value > a.value ? b : a));
      return sum([log(sum(parts.map((x) => exp(minus(x, largest))))), largest]);
    },
    backRule: () => "dy · exp(x − y)",
    back: (op, _, index) => {
      const to = keptShape(op);
      return product(reducedTo(op.gradient, index, to), exp(minus(elementAt(op, index), reducedTo(op.output, index, to))));
    },
  },
  prod: {
    rule: "y = the product of x over the reduced axes",
    value: (op, index) => product(...reducedFrom(op, index)),
    backRule: () => "dy · the product of the others",
    back: (op, _, index) => {
      const to = keptShape(op);
      const row = fiber(indexOf(broadcastFlat(index, to), to), to, op.input(0).shape);
      const own = flatOf(index, op.input(0).shape);
      const others = row.filter((flat) => flat !== own).map((flat) => op.input(0).at(flat));
      return product(reducedTo(op.gradient, index, to), ...others);
    },
  },
  cumsum: {
    rule: "y = Σ x up to here",
    value: (op, index) => sum(alongAxis(op, index, (place, here) => place <= here).map((flat) => op.input(0).at(flat))),
    backRule: () => "Σ dy from here on",
    back: (op, _, index) => sum(alongAxis(op, index, (place, here) => place >= here).map((flat) => op.gradient.at(flat))),
  },
  norm: {
    rule: "y = (Σ |x|ᵖ)^(1 / p) over the reduced axes",
    value: (op, index) => {
      const p = op.number("ord");
      if (p === 0) return call("count of others than 0", (...values) => values.filter((x) => x !== 0).length, ...reducedFrom(op, index));
      const ofValues = (...values: number[]): number => values.reduce((total, x) => total + Math.abs(x) ** p, 0) ** (1 / p);
      return call("norm", ofValues, ...reducedFrom(op, index));
    },
    backRule: () => "dy · sign x · (|x| / y)ᵖ⁻¹",
    back: (op, _, index) => {
      if (op.number("ord") === 0) return zero;
      const to = keptShape(op);
      const share = (x: number, y: number): number => Math.sign(x) * (Math.abs(x) / y) ** (op.number("ord") - 1);
      const y = reducedTo(op.output, index, to);
      return product(reducedTo(op.gradient, index, to), y.value === 0 ? number(0) : call("share", share, elementAt(op, index), y));
    },
  },
  std: {
    rule: "y = √(Σ (x − mean x)² / (n − correction))",
    value: (op, index) =>
      call("deviation", (...values) => Math.sqrt(variance(values, op.number("correction", 1))), ...reducedFrom(op, index)),
    backRule: () => "dy · (x − mean x) / ((n − correction) y)",
    back: (op, _, index) => {
      const to = keptShape(op);
      const row = reducedFrom(op, indexOf(broadcastFlat(index, to), op.shape));
      const y = reducedTo(op.output, index, to);
      const divisor = product(number(Math.max(0, row.length - op.number("correction", 1))), y);
      const distance = minus(elementAt(op, index), over(sum(row), number(row.length)));
      return y.value === 0 ? number(0) : over(product(reducedTo(op.gradient, index, to), distance), divisor);
    },
  },
  var: {
    rule: "y = Σ (x − mean x)² / (n − correction)",
    value: (op, index) => call("variance", (...values) => variance(values, op.number("correction", 1)), ...reducedFrom(op, index)),
    backRule: () => "dy · 2 (x − mean x) / (n − correction)",
    back: (op, _, index) => {
      const to = keptShape(op);
      const row = reducedFrom(op, indexOf(broadcastFlat(index, to), op.shape));
      const mean = over(sum(row), number(row.length));
      const divisor = number(Math.max(0, row.length - op.number("correction", 1)));
      return over(product(reducedTo(op.gradient, index, to), number(2), minus(elementAt(op, index), mean)), divisor);
    },
  },
};
