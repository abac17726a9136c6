// The functions that formulas of report/formulas.txt may call, and how their rules are written.

import { erf, normalCdf, normalDensity, sigmoid } from "./special_functions";

export interface NamedFunction {
  f: (...values: number[]) => number;
  /** Of how many numbers, one if missing. */
  arity?: number;
  /** In place of the name. */
  symbol?: string;
  /** What stands before and behind the argument, in place of the name. */
  around?: [string, string];
  /** A formula of x that a rule has in its place, less precise than f. */
  meaning?: string;
}

/** Of halves to the even neighbour. */
function rounded(x: number): number {
  const below = Math.floor(x);
  if (x - below !== 0.5) return Math.round(x);
  return below % 2 === 0 ? below : below + 1;
}

export const functions = new Map<string, NamedFunction>(
  Object.entries({
    abs: { f: Math.abs, around: ["|", "|"] },
    acos: { f: Math.acos },
    acosh: { f: Math.acosh },
    asin: { f: Math.asin },
    asinh: { f: Math.asinh },
    atan: { f: Math.atan },
    atan2: { f: Math.atan2, arity: 2 },
    atanh: { f: Math.atanh },
    ceil: { f: Math.ceil, around: ["⌈", "⌉"] },
    cos: { f: Math.cos },
    cosh: { f: Math.cosh },
    erf: { f: erf },
    exp: { f: Math.exp },
    expm1: { f: Math.expm1, meaning: "exp(x) - 1" },
    floor: { f: Math.floor, around: ["⌊", "⌋"] },
    hypot: { f: Math.hypot, arity: 2 },
    log: { f: Math.log },
    log10: { f: Math.log10, symbol: "log₁₀" },
    log1p: { f: Math.log1p, meaning: "log(1 + x)" },
    log2: { f: Math.log2, symbol: "log₂" },
    max: { f: Math.max, arity: 2 },
    min: { f: Math.min, arity: 2 },
    normal_cdf: { f: normalCdf, symbol: "Φ" },
    normal_pdf: { f: normalDensity, symbol: "φ" },
    round: { f: rounded },
    sigmoid: { f: sigmoid, symbol: "σ" },
    sign: { f: Math.sign },
    sin: { f: Math.sin },
    sinh: { f: Math.sinh },
    sqrt: { f: Math.sqrt, symbol: "√" },
    tan: { f: Math.tan },
    tanh: { f: Math.tanh },
    trunc: { f: Math.trunc },
  } satisfies Record<string, NamedFunction>),
);
