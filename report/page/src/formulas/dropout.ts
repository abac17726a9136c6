// Dropout: what was drawn is not in the file, but the result tells it.

import { flatOf } from "../shapes";
import { type Expression, number, product } from "./expression";
import type { Formula, Operand, Operation } from "./operation";

function drops(op: Operation): boolean {
  return op.has("p") && op.flag("training", true);
}

function dropped(op: Operation, of: Operand, index: number[]): Expression {
  const flat = flatOf(index, op.shape);
  return drops(op) ? product(of.at(flat), number(op.output.at(flat).value === 0 ? 0 : 1 / (1 - op.number("p")))) : of.at(flat);
}

export const dropout: Formula = {
  rule: (op) => (drops(op) ? "y = x · m, where m is 0 or 1 / (1 − p)" : "y = x, since this is no training"),
  value: (op, index) => dropped(op, op.input(0), index),
  backRule: (op) => (drops(op) ? "dy · m" : "dy"),
  back: (op, _, index) => dropped(op, op.gradient, index),
};
