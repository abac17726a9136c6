// Ops whose result at an index comes from the operands at that index, with broadcasting: lines of report/formulas.txt.

import { broadcastFlat, fiber, flatOf, indexOf } from "../shapes";
import { type Expression, call, minus, number, over, power, product, sum } from "./expression";
import { functions } from "./functions";
import { type Formula, NotStored, type Operation } from "./operation";
import { Level, chosenByText, rule } from "./rule";
import { type Comparison, type Term, parsed } from "./term";

const constants = new Map([["pi", Math.PI], ["inf", Infinity]]);

const comparisons: Record<Comparison, [string, (a: number, b: number) => boolean]> = {
  "<": ["is smaller", (a, b) => a < b],
  ">": ["is larger", (a, b) => a > b],
  "<=": ["is at most", (a, b) => a <= b],
  ">=": ["is at least", (a, b) => a >= b],
  "==": ["is equal", (a, b) => a === b],
};

/** What a name stands for at an index of the result. */
function named(name: string, op: Operation, index: number[]): Expression {
  if (name === "y") return op.output.at(flatOf(index, op.shape));
  const operand = op.named(name);
  if (operand !== null) return operand.at(broadcastFlat(index, operand.shape));
  if (op.takes(name)) return op.onlyNumber();
  const constant = constants.get(name);
  return constant === undefined ? op.constant(name) : number(constant);
}

/** The term with the numbers at an index of the result. */
function evaluated(term: Term, op: Operation, index: number[]): Expression {
  const of = (part: Term): Expression => evaluated(part, op, index);
  switch (term.kind) {
    case "number":
      return number(term.value);
    case "name":
      return named(term.name, op, index);
    case "text":
      throw new NotStored(`the attribute that may be "${term.name}" is not in the file`);
    case "sum":
      return sum(term.parts.map(of));
    case "product":
      return product(...term.parts.map(of));
    case "difference":
      return minus(of(term.parts[0]), of(term.parts[1]));
    case "quotient":
      return over(of(term.parts[0]), of(term.parts[1]));
    case "power":
      return power(of(term.parts[0]), of(term.parts[1]));
    case "comparison": {
      const [name, holds] = comparisons[term.sign];
      return call(name, (a, b) => (holds(a, b) ? 1 : 0), of(term.parts[0]), of(term.parts[1]));
    }
    case "call": {
      const [first, second, third] = term.parts;
      if (term.name === "where") return of(chosenByText(first, op) ?? of(first).value !== 0 ? second : third);
      if (term.name === "default") return of(first.kind === "name" && op.has(first.name) ? first : second);
      const { f, symbol } = functions.get(term.name)!;
      return call(symbol ?? term.name, f, ...term.parts.map(of));
    }
  }
}

const isOne = (term: Term): boolean => term.kind === "number" && term.value === 1;

/** The formula of a line without the op's name. Throws FormulaError if it is malformed. */
export function elementwise(line: string): Formula {
  const [y, ...derivatives] = line.split(";").map(parsed);
  const derivative = (slot: number): Term => {
    if (slot >= derivatives.length) throw new NotStored("this page has no formula for the gradient of this operand");
    return derivatives[slot];
  };
  return {
    rule: (op) => `y = ${rule(y, op, Level.choice)}`,
    value: (op, index) => evaluated(y, op, index),
    backRule: (op, slot) => {
      const same = op.input(slot).shape.join() === op.shape.join();
      const factor = derivative(slot);
      return `${same ? "" : "Σ over the places it was broadcast to: "}dy${isOne(factor) ? "" : ` · ${rule(factor, op, Level.product)}`}`;
    },
    back: (op, slot, index) => {
      const factor = derivative(slot);
      const terms = fiber(index, op.input(slot).shape, op.shape).map((flat) => {
        const dy = op.gradient.at(flat);
        return isOne(factor) ? dy : product(dy, evaluated(factor, op, indexOf(flat, op.shape)));
      });
      return terms.length === 1 ? terms[0] : sum(terms);
    },
  };
}
