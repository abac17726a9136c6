// Elementary functions and activations of single elements.

import { elementwise, same, unary } from "./elementwise";
import { type Expression, call, exp, log, minus, negated, number, oneMinus, over, product, root, sum, zero } from "./expression";
import type { Formula, Operation } from "./operation";
import { sigmoid } from "./special_functions";

const one = number(1);
const square = (x: Expression): Expression => product(x, x);
const onePlus = (x: Expression): Expression => sum([one, x]);

/** A function with kinks, or of an attribute: its value and its slope as numbers. */
function bent(
  rule: string,
  partial: string,
  value: (x: number, op: Operation) => number,
  slope: (x: number, op: Operation) => number,
): Formula {
  return unary(rule, (x, op) => call("f", (v) => value(v, op), x), partial, (x, _, op) => call("f′", (v) => slope(v, op), x));
}

function flat(rule: string, name: string, f: (x: number) => number): Formula {
  return unary(rule, (x) => call(name, f, x), "0", () => zero);
}

/** Of halves to the even neighbour. */
function rounded(x: number): number {
  const below = Math.floor(x);
  if (x - below !== 0.5) return Math.round(x);
  return below % 2 === 0 ? below : below + 1;
}

const selu = { scale: 1.0507009873554805, alpha: 1.6732632423543772 };
const softplus = (x: number): number => Math.log1p(Math.exp(-Math.abs(x))) + Math.max(x, 0);

function mishSlope(x: number): number {
  const t = Math.tanh(softplus(x));
  return t + x * sigmoid(x) * (1 - t * t);
}

const within = (low: number, x: number, high: number): number => Math.min(Math.max(x, low), high);
const remainder = (a: number, b: number): number => a - b * Math.floor(a / b);

export const functionFormulas: Record<string, Formula> = {
  sin: unary("y = sin x", (x) => call("sin", Math.sin, x), "cos x", (x) => call("cos", Math.cos, x)),
  cos: unary("y = cos x", (x) => call("cos", Math.cos, x), "(−sin x)", (x) => negated(call("sin", Math.sin, x))),
  tan: unary("y = tan x", (x) => call("tan", Math.tan, x), "(1 + y²)", (_, y) => onePlus(square(y))),
  asin: unary("y = asin x", (x) => call("asin", Math.asin, x), "1 / √(1 − x²)", (x) => over(one, root(oneMinus(square(x))))),
  acos: unary("y = acos x", (x) => call("acos", Math.acos, x), "(−1 / √(1 − x²))", (x) =>
    negated(over(one, root(oneMinus(square(x)))))),
  atan: unary("y = atan x", (x) => call("atan", Math.atan, x), "1 / (1 + x²)", (x) => over(one, onePlus(square(x)))),
  sinh: unary("y = sinh x", (x) => call("sinh", Math.sinh, x), "cosh x", (x) => call("cosh", Math.cosh, x)),
  cosh: unary("y = cosh x", (x) => call("cosh", Math.cosh, x), "sinh x", (x) => call("sinh", Math.sinh, x)),
  asinh: unary("y = asinh x", (x) => call("asinh", Math.asinh, x), "1 / √(1 + x²)", (x) => over(one, root(onePlus(square(x))))),
  acosh: unary("y = acosh x", (x) => call("acosh", Math.acosh, x), "1 / √(x² − 1)", (x) => over(one, root(minus(square(x), one)))),
  atanh: unary("y = atanh x", (x) => call("atanh", Math.atanh, x), "1 / (1 − x²)", (x) => over(one, oneMinus(square(x)))),
  exp2: unary("y = 2ˣ", (x) => call("exp2", (v) => 2 ** v, x), "y · log 2", (_, y) => product(y, number(Math.LN2))),
  expm1: unary("y = exp x − 1", (x) => call("expm1", Math.expm1, x), "exp x", (x) => exp(x)),
  log1p: unary("y = log(1 + x)", (x) => call("log1p", Math.log1p, x), "1 / (1 + x)", (x) => over(one, onePlus(x))),
  log2: unary("y = log₂ x", (x) => call("log2", Math.log2, x), "1 / (x · log 2)", (x) => over(one, product(x, number(Math.LN2)))),
  log10: unary("y = log₁₀ x", (x) => call("log10", Math.log10, x), "1 / (x · log 10)", (x) =>
    over(one, product(x, number(Math.LN10)))),
  floor: flat("y = the largest integer up to x", "floor", Math.floor),
  ceil: flat("y = the smallest integer from x on", "ceil", Math.ceil),
  round: flat("y = the nearest integer, an even one of two", "round", rounded),
  trunc: flat("y = x without its fraction", "trunc", Math.trunc),
  sign: flat("y = sign x", "sign", Math.sign),
  log_sigmoid: unary("y = log σ(x)", (x) => call("log σ", (v) => -softplus(-v), x), "σ(−x)", (x) =>
    call("σ", sigmoid, negated(x))),
  mish: unary("y = x · tanh(log(1 + exp x))", (x) => call("mish", (v) => v * Math.tanh(softplus(v)), x), "mish′(x)", (x) =>
    call("mish′", mishSlope, x)),
  softsign: unary("y = x / (1 + |x|)", (x) => over(x, onePlus(call("abs", Math.abs, x))), "1 / (1 + |x|)²", (x) =>
    over(one, square(onePlus(call("abs", Math.abs, x))))),
  leaky_relu: bent(
    "y = x where x > 0, else x · slope",
    "[x > 0] or the slope",
    (x, op) => (x > 0 ? x : x * op.number("negative_slope")),
    (x, op) => (x > 0 ? 1 : op.number("negative_slope")),
  ),
  elu: bent(
    "y = x where x > 0, else α (exp x − 1)",
    "[x > 0] or α exp x",
    (x, op) => (x > 0 ? x : op.number("alpha") * Math.expm1(x)),
    (x, op) => (x > 0 ? 1 : op.number("alpha") * Math.exp(x)),
  ),
  celu: bent(
    "y = x where x > 0, else α (exp(x / α) − 1)",
    "[x > 0] or exp(x / α)",
    (x, op) => (x > 0 ? x : op.number("alpha") * Math.expm1(x / op.number("alpha"))),
    (x, op) => (x > 0 ? 1 : Math.exp(x / op.number("alpha"))),
  ),
  selu: bent(
    "y = λ x where x > 0, else λ α (exp x − 1)",
    "λ [x > 0] or λ α exp x",
    (x) => selu.scale * (x > 0 ? x : selu.alpha * Math.expm1(x)),
    (x) => selu.scale * (x > 0 ? 1 : selu.alpha * Math.exp(x)),
  ),
  hardsigmoid: bent(
    "y = min(max(x + 3, 0), 6) / 6",
    "[−3 < x < 3] / 6",
    (x) => within(0, x + 3, 6) / 6,
    (x) => (x > -3 && x < 3 ? 1 / 6 : 0),
  ),
  hardswish: bent(
    "y = x · min(max(x + 3, 0), 6) / 6",
    "0, x / 3 + ½ or 1",
    (x) => (x * within(0, x + 3, 6)) / 6,
    (x) => (x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5),
  ),
  hardtanh: bent(
    "y = min(max(x, low), high)",
    "[low < x < high]",
    (x, op) => within(op.number("min_val"), x, op.number("max_val")),
    (x, op) => (x > op.number("min_val") && x < op.number("max_val") ? 1 : 0),
  ),
  hypot: elementwise("y = √(a² + b²)", ([a, b]) => call("hypot", Math.hypot, a, b), [
    { rule: "a / y", of: ([a], y) => over(a, y) },
    { rule: "b / y", of: ([, b], y) => over(b, y) },
  ]),
  atan2: elementwise("y = the angle of (b, a)", ([a, b]) => call("atan2", Math.atan2, a, b), [
    { rule: "b / (a² + b²)", of: ([a, b]) => over(b, sum([square(a), square(b)])) },
    { rule: "(−a / (a² + b²))", of: ([a, b]) => negated(over(a, sum([square(a), square(b)]))) },
  ]),
  logaddexp: elementwise(
    "y = log(exp a + exp b)",
    ([a, b]) => call("logaddexp", (u, v) => Math.max(u, v) + Math.log1p(Math.exp(-Math.abs(u - v))), a, b),
    [
      { rule: "exp(a − y)", of: ([a], y) => exp(minus(a, y)) },
      { rule: "exp(b − y)", of: ([, b], y) => exp(minus(b, y)) },
    ],
  ),
  xlogy: elementwise("y = a · log b, and 0 where a is 0", ([a, b]) => (a.value === 0 ? zero : product(a, log(b))), [
    { rule: "log b", of: ([, b]) => log(b) },
    { rule: "a / b", of: ([a, b]) => over(a, b) },
  ]),
  fmod: elementwise("y = a − b · trunc(a / b)", ([a, b]) => call("fmod", (u, v) => u % v, a, b), [
    same,
    { rule: "(−trunc(a / b))", of: ([a, b]) => negated(call("trunc", Math.trunc, over(a, b))) },
  ]),
  remainder: elementwise("y = a − b · floor(a / b)", ([a, b]) => call("remainder", remainder, a, b), [
    same,
    { rule: "(−floor(a / b))", of: ([a, b]) => negated(call("floor", Math.floor, over(a, b))) },
  ]),
};
