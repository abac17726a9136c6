// The formulas of all ops by name, and what they say of one cell of a graph.

import type { Graph, GraphSnapshot } from "../data";
import { Refusal } from "../readers";
import { indexOf } from "../shapes";
import { dropout } from "./dropout";
import { elementwise } from "./elementwise";
import { type Expression, number, sum } from "./expression";
import { indexingFormulas } from "./indexing";
import { type Formula, NotStored, Operation } from "./operation";
import { productFormulas } from "./products";
import { reductionFormulas } from "./reductions";
import { rowFormulas } from "./rows";
import { FormulaError } from "./term";

const formulas = new Map<string, Formula>(
  Object.entries({ dropout, ...indexingFormulas, ...productFormulas, ...reductionFormulas, ...rowFormulas }),
);

const lines = new Map<string, Formula | null>();

/** That of a line of report/formulas.txt, or null if the line is malformed. */
function formulaOfLine(line: string): Formula | null {
  let formula = lines.get(line);
  if (formula === undefined) {
    try {
      formula = elementwise(line);
    } catch (error) {
      if (!(error instanceof FormulaError)) throw error;
      formula = null;
    }
    lines.set(line, formula);
  }
  return formula;
}

/** That of an op, or null if there is none. */
export function formulaOf(graph: Graph, name: string): Formula | null {
  const line = graph.formulas.get(name);
  return formulas.get(name) ?? (line === undefined ? null : formulaOfLine(line));
}

/** A rule with the numbers in it, or why there is none. */
export type Evaluation = { rule: string; expression: Expression } | { missing: string };

const noFormula = (name: string): Evaluation => ({ missing: `this page has no formula for ${name}` });

/** Attributes that a formula does not expect must not keep the rest of the page from being shown. */
function evaluated(rule: () => string, expression: () => Expression): Evaluation {
  try {
    return { rule: rule(), expression: expression() };
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return { missing: error instanceof NotStored ? error.message : "the formula of this page does not fit this op" };
  }
}

/** How the cell of an op's result comes about. */
export function forward(graph: Graph, snapshot: GraphSnapshot, id: number, flat: number): Evaluation {
  const { name, shape } = graph.values[id];
  const formula = formulaOf(graph, name);
  if (formula === null) return noFormula(name);
  const operation = new Operation(graph, snapshot, id);
  return evaluated(() => (typeof formula.rule === "string" ? formula.rule : formula.rule(operation)), () => formula.value(operation, indexOf(flat, shape)));
}

interface Flow {
  consumer: number;
  slot: number;
  evaluation: Evaluation;
}

/** What flows back to the cell from each op that read it. */
export function backward(graph: Graph, snapshot: GraphSnapshot, id: number, flat: number): Flow[] {
  const index = indexOf(flat, graph.values[id].shape);
  return consumersOf(graph, id)
    .filter(({ consumer }) => snapshot.gradient[consumer] != null || snapshot.gradients[consumer] != null)
    .map(({ consumer, slot }) => {
      const { name } = graph.values[consumer];
      const formula = formulaOf(graph, name);
      if (formula === null) return { consumer, slot, evaluation: noFormula(name) };
      const operation = new Operation(graph, snapshot, consumer);
      return {
        consumer,
        slot,
        evaluation: evaluated(() => formula.backRule(operation, slot), () => formula.back(operation, slot, index)),
      };
    });
}

/** All that flows back, or null if a part of it is missing. */
export function total(graph: Graph, id: number, flows: Flow[]): Expression | null {
  const parts: Expression[] = id === graph.loss ? [number(1)] : [];
  for (const { evaluation } of flows) {
    if ("missing" in evaluation) return null;
    parts.push(evaluation.expression);
  }
  return sum(parts);
}

const consumers = new WeakMap<Graph, { consumer: number; slot: number }[][]>();

export function consumersOf(graph: Graph, id: number): { consumer: number; slot: number }[] {
  let all = consumers.get(graph);
  if (all === undefined) {
    all = graph.values.map(() => []);
    for (let consumer = 0; consumer < graph.values.length; ++consumer) {
      graph.values[consumer].inputs.forEach((input, slot) => input !== null && all![input].push({ consumer, slot }));
    }
    consumers.set(graph, all);
  }
  return all[id];
}
