// Ops whose result at a place comes from the operands at that place, with broadcasting.

import { broadcastFlat, fiber, flatOf, indexOf } from "../shapes";
import { type Expression, call, exp, log, minus, negated, number, oneMinus, orZero, over, power, product, root, sum, zero } from "./expression";
import type { Formula, Operand, Operation } from "./operation";
import { erf, normalCdf, normalDensity, sigmoid } from "./special_functions";

/** ∂y/∂(operand), from the operands and y. */
export interface Partial {
  rule: string;
  of(x: Expression[], y: Expression, op: Operation): Expression;
}

/** The operands at a place of the result; a number that is an attribute is the last. */
function operandsAt(op: Operation, index: number[]): Expression[] {
  const operands = op.inputs.filter((input) => input !== null).map((input) => input.at(broadcastFlat(index, input.shape)));
  for (const name of ["other", "exponent"]) if (op.has(name)) operands.push(op.constant(name));
  return operands;
}

export function elementwise(
  rule: string,
  value: (x: Expression[], op: Operation) => Expression,
  partials: Partial[],
): Formula {
  return {
    rule,
    value: (op, index) => value(operandsAt(op, index), op),
    backRule: (op, slot) => {
      const same = op.input(slot).shape.join() === op.shape.join();
      const factor = partials[slot].rule;
      return `${same ? "" : "Σ over the places it was broadcast to: "}dy${factor === "" ? "" : ` · ${factor}`}`;
    },
    back: (op, slot, index) => {
      const terms = fiber(index, op.input(slot).shape, op.shape).map((flat) => {
        const place = indexOf(flat, op.shape);
        const dy = op.gradient.at(flat);
        if (partials[slot].rule === "") return dy;
        return product(dy, partials[slot].of(operandsAt(op, place), op.output.at(flat), op));
      });
      return terms.length === 1 ? terms[0] : sum(terms);
    },
  };
}

export const same: Partial = { rule: "", of: () => number(1) };

export function unary(
  rule: string,
  value: (x: Expression, op: Operation) => Expression,
  partial: string,
  of: (x: Expression, y: Expression, op: Operation) => Expression,
): Formula {
  return elementwise(rule, ([x], op) => value(x, op), [{ rule: partial, of: ([x], y, op) => of(x, y, op) }]);
}

const two = number(2);
const half = number(0.5);

/** 1 where the first operand is chosen, shared where both are equal. */
function chosen(name: string, better: (a: number, b: number) => boolean): (a: Expression, b: Expression) => Expression {
  return (a, b) => call(name, (x, y) => (x === y ? 0.5 : better(x, y) ? 1 : 0), a, b);
}
const isLarger = chosen("is larger", (a, b) => a > b);
const isSmaller = chosen("is smaller", (a, b) => a < b);

const geluTanhInner = (x: number): number => Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3);
const geluTanh = (x: number): number => (1 + Math.tanh(geluTanhInner(x))) / 2;
function geluTanhSlope(x: number): number {
  const t = Math.tanh(geluTanhInner(x));
  return (1 + t) / 2 + (x / 2) * (1 - t * t) * Math.sqrt(2 / Math.PI) * (1 + 3 * 0.044715 * x * x);
}

/** What was drawn is not in the file, but the result tells it. */
const dropout: Formula = {
  rule: (op) => (drops(op) ? "y = x · m, where m is 0 or 1 / (1 − p)" : "y = x, since this is no training"),
  value: (op, index) => dropped(op, op.input(0), index),
  backRule: (op) => (drops(op) ? "dy · m" : "dy"),
  back: (op, _, index) => dropped(op, op.gradient, index),
};

function drops(op: Operation): boolean {
  return op.has("p") && op.flag("training", true);
}

function dropped(op: Operation, of: Operand, index: number[]): Expression {
  const flat = flatOf(index, op.shape);
  return drops(op) ? product(of.at(flat), number(op.output.at(flat).value === 0 ? 0 : 1 / (1 - op.number("p")))) : of.at(flat);
}

export const elementwiseFormulas: Record<string, Formula> = {
  add: elementwise("y = a + b", ([a, b]) => sum([a, b]), [same, same]),
  sub: elementwise("y = a − b", ([a, b]) => minus(a, b), [same, { rule: "(−1)", of: () => number(-1) }]),
  mul: elementwise("y = a · b", ([a, b]) => product(a, b), [
    { rule: "b", of: ([, b]) => b },
    { rule: "a", of: ([a]) => a },
  ]),
  masked_mul: elementwise("y = x · m, and 0 where m is 0", ([x, m]) => (m.value === 0 ? zero : product(x, m)), [
    { rule: "m", of: ([, m]) => m },
  ]),
  div: elementwise("y = a / b", ([a, b]) => over(a, b), [
    { rule: "1 / b", of: ([, b]) => over(number(1), b) },
    { rule: "(−y / b)", of: ([, b], y) => negated(over(y, b)) },
  ]),
  pow: elementwise("y = aᵇ", ([a, b]) => power(a, b), [
    { rule: "b · aᵇ⁻¹", of: ([a, b]) => (b.value === 0 ? zero : product(b, power(a, minus(b, number(1))))) },
    { rule: "y · log a", of: ([a], y) => (a.value === 0 ? zero : product(y, log(a))) },
  ]),
  maximum: elementwise("y = max(a, b)", ([a, b]) => call("max", Math.max, a, b), [
    { rule: "[a is larger]", of: ([a, b]) => isLarger(a, b) },
    { rule: "[b is larger]", of: ([a, b]) => isLarger(b, a) },
  ]),
  minimum: elementwise("y = min(a, b)", ([a, b]) => call("min", Math.min, a, b), [
    { rule: "[a is smaller]", of: ([a, b]) => isSmaller(a, b) },
    { rule: "[b is smaller]", of: ([a, b]) => isSmaller(b, a) },
  ]),
  squared_difference: elementwise("y = (a − b)²", ([a, b]) => power(minus(a, b), two), [
    { rule: "2 (a − b)", of: ([a, b]) => product(two, minus(a, b)) },
    { rule: "2 (b − a)", of: ([a, b]) => product(two, minus(b, a)) },
  ]),
  exp: unary("y = exp x", (x) => exp(x), "y", (_, y) => y),
  log: unary("y = log x", (x) => log(x), "1 / x", (x) => over(number(1), x)),
  sqrt: unary("y = √x", (x) => root(x), "1 / (2 y)", (_, y) => over(half, y)),
  rsqrt: unary("y = 1 / √x", (x) => over(number(1), root(x)), "(−½ y³)", (_, y) => product(number(-0.5), y, y, y)),
  reciprocal: unary("y = 1 / x", (x) => over(number(1), x), "(−y²)", (_, y) => negated(product(y, y))),
  square: unary("y = x²", (x) => product(x, x), "2 x", (x) => product(two, x)),
  cube: unary("y = x³", (x) => product(x, x, x), "3 x²", (x) => product(number(3), x, x)),
  abs: unary("y = |x|", (x) => call("abs", Math.abs, x), "sign x", (x) => call("sign", Math.sign, x)),
  tanh: unary("y = tanh x", (x) => call("tanh", Math.tanh, x), "(1 − y²)", (_, y) => oneMinus(product(y, y))),
  sigmoid: unary("y = σ(x) = 1 / (1 + exp(−x))", (x) => call("σ", sigmoid, x), "y (1 − y)", (_, y) => product(y, oneMinus(y))),
  erf: unary("y = erf x", (x) => call("erf", erf, x), "2 / √π · exp(−x²)", (x) =>
    product(number(2 / Math.sqrt(Math.PI)), exp(negated(product(x, x))))),
  relu: unary("y = max(0, x)", orZero, "[y > 0]", (_, y) => call("is positive", (v) => (v > 0 ? 1 : 0), y)),
  silu: unary("y = x · σ(x)", (x) => product(x, call("σ", sigmoid, x)), "(σ(x) + y (1 − σ(x)))", (x, y) =>
    sum([call("σ", sigmoid, x), product(y, oneMinus(call("σ", sigmoid, x)))])),
  softplus: unary(
    "y = log(1 + exp(β x)) / β",
    (x, op) => call("softplus", (v) => softplus(v, betaOf(op), thresholdOf(op)), x),
    "σ(β x)",
    (x, _, op) => call("σ", (v) => (v * betaOf(op) > thresholdOf(op) ? 1 : sigmoid(v * betaOf(op))), x),
  ),
  gelu: unary(
    "y = x · Φ(x)",
    (x, op) => product(x, call("Φ", op.text("approximate") === "tanh" ? geluTanh : normalCdf, x)),
    "(Φ(x) + x · φ(x))",
    (x, _, op) =>
      op.text("approximate") === "tanh"
        ? call("gelu′", geluTanhSlope, x)
        : sum([call("Φ", normalCdf, x), product(x, call("φ", normalDensity, x))]),
  ),
  clamp: unary(
    "y = min(max(x, low), high)",
    (x, op) => call("clamp", (v) => Math.min(Math.max(v, op.number("min", -Infinity)), op.number("max", Infinity)), x),
    "[low ≤ x ≤ high]",
    (x, _, op) => call("is within", (v) => (v >= op.number("min", -Infinity) && v <= op.number("max", Infinity) ? 1 : 0), x),
  ),
  dropout,
};

const betaOf = (op: Operation): number => op.number("beta", 1);
const thresholdOf = (op: Operation): number => op.number("threshold", Infinity);

function softplus(x: number, beta: number, threshold: number): number {
  return x * beta > threshold ? x : Math.log1p(Math.exp(-Math.abs(x * beta))) / beta + Math.max(x, 0);
}
