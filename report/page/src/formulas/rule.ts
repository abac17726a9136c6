// Formulas of report/formulas.txt as a reader writes them.

import { brief } from "../numbers";
import { functions } from "./functions";
import type { Operation } from "./operation";
import { type Term, parsed } from "./term";

const letters = new Map([["alpha", "α"], ["beta", "β"], ["delta", "δ"], ["pi", "π"], ["inf", "∞"]]);
const signs = { "<": "<", ">": ">", "<=": "≤", ">=": "≥", "==": "=" };
const superscripts = new Map([..."0123456789+−abnxy"].map((character, i) => [character, [..."⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵃᵇⁿˣʸ"][i]]));

/** How strongly a text binds: what binds less than its surroundings gets brackets. */
export enum Level { choice, comparison, sum, product, call, atom }

interface Written {
  text: string;
  level: Level;
}

function exponent(text: string): string {
  const raised = [...text.replaceAll(" ", "")].map((character) => superscripts.get(character));
  return raised.includes(undefined) ? `^(${text})` : raised.join("");
}

/** The formula with x in the place of another term. */
function substituted(formula: Term, x: Term): Term {
  if (formula.kind === "name") return x;
  if (!("parts" in formula)) return formula;
  return { ...formula, parts: formula.parts.map((part) => substituted(part, x)) } as Term;
}

/** Whether the condition of a choice is one of a text, which a rule does not show. */
export function chosenByText(condition: Term, op: Operation): boolean | null {
  if (condition.kind !== "comparison") return null;
  const [left, right] = condition.parts;
  return left.kind === "name" && right.kind === "text" ? op.text(left.name) === right.name : null;
}

function written(term: Term, op: Operation): Written {
  const at = (part: Term, least: Level): string => rule(part, op, least);
  switch (term.kind) {
    case "number": {
      const text = brief(term.value, 6).replace("-", "−").replace(/^(−?)0\.5$/, "$1½");
      return { text, level: term.value < 0 ? Level.sum : Level.atom };
    }
    case "name":
      return { text: letters.get(term.name) ?? term.name, level: Level.atom };
    case "text":
      return { text: `"${term.name}"`, level: Level.atom };
    case "sum":
      return { text: term.parts.map((part, i) => at(part, i === 0 ? Level.sum : Level.product)).join(" + "), level: Level.sum };
    case "difference":
      return { text: `${at(term.parts[0], Level.sum)} − ${at(term.parts[1], Level.product)}`, level: Level.sum };
    case "product": {
      const [first, ...rest] = term.parts;
      const tail = rest.map((part) => at(part, Level.product)).join(" · ");
      if (first.kind !== "number") return { text: `${at(first, Level.product)} · ${tail}`, level: Level.product };
      const factor = written(first, op).text;
      const level = first.value < 0 ? Level.sum : Level.product;
      if (first.value === -1) return { text: `−${tail}`, level };
      return { text: `${factor}${rest[0].kind === "number" ? " · " : " "}${tail}`, level };
    }
    case "quotient": {
      const [top, bottom] = term.parts;
      const { text, level } = written(top, op);
      // −a / b is a difference from 0, too
      const negative = (top.kind === "number" && top.value < 0) || (top.kind === "product" && level === Level.sum);
      return {
        text: `${negative ? text : at(top, Level.product)} / ${at(bottom, Level.call)}`,
        level: negative ? Level.sum : Level.product,
      };
    }
    case "power":
      return { text: at(term.parts[0], Level.atom) + exponent(at(term.parts[1], Level.choice)), level: Level.call };
    case "comparison":
      return { text: `[${compared(term, op)}]`, level: Level.atom };
    case "call":
      return writtenCall(term.name, term.parts, op);
  }
}

function compared(condition: Term, op: Operation): string {
  if (condition.kind !== "comparison") return rule(condition, op, Level.sum);
  const [left, right] = condition.parts.map((part) => rule(part, op, Level.sum));
  return `${left} ${signs[condition.sign]} ${right}`;
}

function writtenCall(name: string, parts: Term[], op: Operation): Written {
  if (name === "default") return written(parts[0], op);
  if (name === "where") {
    const [condition, then, otherwise] = parts;
    const chosen = chosenByText(condition, op);
    if (chosen !== null) return written(chosen ? then : otherwise, op);
    return {
      text: `${rule(then, op, Level.sum)} where ${compared(condition, op)}, else ${rule(otherwise, op, Level.choice)}`,
      level: Level.choice,
    };
  }
  const { symbol, around, meaning } = functions.get(name)!;
  if (meaning !== undefined) return written(substituted(parsed(meaning), parts[0]), op);
  const inside = parts.map((part) => rule(part, op, Level.choice)).join(", ");
  if (around !== undefined) return { text: around[0] + inside + around[1], level: Level.atom };
  const shown = symbol ?? name;
  const isPlain = parts.length === 1 && parts[0].kind !== "call" && written(parts[0], op).level === Level.atom && shown !== "σ" && shown.toLowerCase() !== "φ";
  if (!isPlain) return { text: `${shown}(${inside})`, level: Level.atom };
  return { text: shown === "√" ? `√${inside}` : `${shown} ${inside}`, level: Level.call };
}

/** A term where what surrounds it binds so strongly. */
export function rule(term: Term, op: Operation, least: Level): string {
  const { text, level } = written(term, op);
  return level < least ? `(${text})` : text;
}
