// Ops that reduce axes.

import { broadcastFlat, fiber, flatOf, indexOf, kept } from "../shapes";
import { type Expression, call, exp, log, minus, number, over, product, sum } from "./expression";
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
