// Formulas of report/formulas.txt: the text of one as a tree.

import { functions } from "./functions";

export type Comparison = "<" | ">" | "<=" | ">=" | "==";

export type Term =
  | { kind: "number"; value: number }
  | { kind: "name" | "text"; name: string }
  | { kind: "sum" | "product"; parts: Term[] }
  | { kind: "difference" | "quotient" | "power"; parts: [Term, Term] }
  | { kind: "comparison"; sign: Comparison; parts: [Term, Term] }
  | { kind: "call"; name: string; parts: Term[] };

/** Why a text is no formula. */
export class FormulaError extends Error {}

/** How strongly signs bind; what is negated binds as the parts of a product. */
const binding = new Map([["<", 1], [">", 1], ["<=", 1], [">=", 1], ["==", 1], ["+", 2], ["-", 2], ["*", 3], ["/", 3], ["^", 4]]);

/** As trees are walked by recursion. */
const maxTokens = 500;

function tokensOf(text: string): string[] {
  const tokens = text.match(/\d+(\.\d+)?(e[-+]?\d+)?|[A-Za-z]\w*|"[^"]*"|[<>=]=|\S/g) ?? [];
  if (tokens.length > maxTokens) throw new FormulaError(`must have at most ${maxTokens} numbers, names and signs, got ${tokens.length}`);
  return tokens;
}

function joined(left: Term, sign: string, right: Term): Term {
  switch (sign) {
    case "+":
      return { kind: "sum", parts: left.kind === "sum" ? [...left.parts, right] : [left, right] };
    case "*":
      return { kind: "product", parts: left.kind === "product" ? [...left.parts, right] : [left, right] };
    case "-":
      return { kind: "difference", parts: [left, right] };
    case "/":
      return { kind: "quotient", parts: [left, right] };
    case "^":
      return { kind: "power", parts: [left, right] };
    default:
      return { kind: "comparison", sign: sign as Comparison, parts: [left, right] };
  }
}

const minusOne: Term = { kind: "number", value: -1 };

/** The tree of a text. Throws FormulaError where it is malformed. */
export function parsed(text: string): Term {
  const tokens = tokensOf(text);
  let at = 0;

  const take = (wanted: string): void => {
    if (tokens[at] !== wanted) throw new FormulaError(`must have "${wanted}" ${at < tokens.length ? `in place of "${tokens[at]}"` : "at its end"}`);
    ++at;
  };

  const called = (name: string): Term => {
    const arity = name === "where" ? 3 : name === "default" ? 2 : functions.has(name) ? (functions.get(name)!.arity ?? 1) : null;
    if (arity === null) throw new FormulaError(`calls ${name}, which is none of the functions`);
    const parts: Term[] = [];
    do {
      ++at;
      parts.push(expression(1));
    } while (tokens[at] === ",");
    take(")");
    if (parts.length !== arity) throw new FormulaError(`must call ${name} with ${arity} arguments, got ${parts.length}`);
    if (name === "default" && parts[0].kind !== "name") throw new FormulaError("must call default with the name of an attribute");
    return { kind: "call", name, parts };
  };

  const operand = (): Term => {
    const token = tokens[at++];
    if (token === undefined) throw new FormulaError("ends where an operand must be");
    if (token === "-") {
      const negated = expression(4);
      return negated.kind === "number" ? { kind: "number", value: -negated.value } : { kind: "product", parts: [minusOne, negated] };
    }
    if (token === "(") {
      const inner = expression(1);
      take(")");
      return inner;
    }
    if (/^\d/.test(token)) return { kind: "number", value: Number(token) };
    if (token.startsWith('"') && token.length > 1) return { kind: "text", name: token.slice(1, -1) };
    if (/^\w/.test(token)) return tokens[at] === "(" ? called(token) : { kind: "name", name: token };
    throw new FormulaError(`must have an operand in place of "${token}"`);
  };

  /** What signs join that bind at least so strongly. */
  const expression = (least: number): Term => {
    let left = operand();
    for (let level; (level = binding.get(tokens[at]) ?? 0) >= least; ) {
      const sign = tokens[at++];
      left = joined(left, sign, expression(sign === "^" ? level : level + 1));
    }
    return left;
  };

  const whole = expression(1);
  if (at < tokens.length) throw new FormulaError(`has "${tokens[at]}" behind its end`);
  return whole;
}
