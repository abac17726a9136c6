// How one number comes about: its formula with the numbers in it, forward and backward, computed again here.

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { numbersOf } from "./arrays";
import type { Graph, GraphSnapshot } from "./data";
import { type Cell, type Expression, difference, tolerance } from "./formulas/expression";
import { type Evaluation, backward, forward, total } from "./formulas";
import { type Dtype, brief, exact } from "./numbers";
import { indexOf } from "./shapes";
import { useStateOf } from "./use_state_of";

interface Props {
  graph: Graph;
  snapshot: GraphSnapshot;
  cell: Omit<Cell, "gradient">;
  /** One of the two directions alone. */
  only?: "forward" | "backward";
}

export function valueName({ values, titles }: Graph, id: number): string {
  const { name, kind } = values[id];
  return titles?.get(id) ?? `${name || kind} #${id}`;
}

function cellName(graph: Graph, { id, flat, gradient }: Cell): string {
  const { shape } = graph.values[id];
  const index = shape.length === 0 ? "" : ` [${indexOf(flat, shape).join(", ")}]`;
  return `${gradient ? "gradient of " : ""}${valueName(graph, id)}${index}`;
}

/** Shown while there are more terms than this, until the reader asks for all. */
const shownTerms = 4;

interface NumbersProps {
  graph: Graph;
  expression: Expression;
  all: boolean;
  open: (cell: Cell) => void;
  /** Whether the expression is a part of one that binds as strongly or more: then it needs brackets. */
  tight?: boolean;
}

/** An expression with numbers for its operands, each of which can be opened. */
function Numbers({ graph, expression, all, open, tight = false }: NumbersProps): ComponentChildren {
  const part = (piece: Expression, isTight: boolean, key: number): ComponentChildren => (
    <Numbers key={key} graph={graph} expression={piece} all={all} open={open} tight={isTight} />
  );
  const joined = (parts: Expression[], sign: string, isTight: boolean): ComponentChildren[] => {
    const hidden = all ? 0 : Math.max(0, parts.length - shownTerms - 1);
    return parts.flatMap((piece, i) => {
      if (hidden > 0 && i >= shownTerms - 1 && i < shownTerms - 1 + hidden) {
        return i === shownTerms - 1 ? [sign, <span class="elided">… {hidden} more …</span>] : [];
      }
      return [i > 0 ? sign : "", part(piece, isTight, i)];
    });
  };
  const grouped = (children: ComponentChildren): ComponentChildren => (tight ? <>({children})</> : children);
  switch (expression.kind) {
    case "number":
      return tight && expression.value < 0 ? `(${brief(expression.value, 6)})` : brief(expression.value, 6);
    case "operand": {
      const { cell, value } = expression;
      return (
        <button type="button" class={`operand${cell.gradient ? " of-gradient" : ""}`} title={cellName(graph, cell)} onClick={() => open(cell)}>
          {brief(value, 6)}
        </button>
      );
    }
    case "sum":
      if (expression.parts.length === 0) return "0";
      return expression.parts.length === 1 ? part(expression.parts[0], tight, 0) : grouped(joined(expression.parts, " + ", false));
    case "product":
      return grouped(joined(expression.parts, " × ", true));
    case "difference":
      return grouped(joined(expression.parts, " − ", true));
    case "quotient":
      return grouped(joined(expression.parts, " / ", true));
    case "power":
      return (
        <>
          {part(expression.parts[0], true, 0)}
          <sup>{part(expression.parts[1], true, 1)}</sup>
        </>
      );
    case "call":
      return (
        <>
          {expression.name}({joined(expression.parts, ", ", false)})
        </>
      );
  }
}

function hasHidden(expression: Expression): boolean {
  if (expression.kind === "number" || expression.kind === "operand") return false;
  return expression.parts.length > shownTerms + 1 || expression.parts.some(hasHidden);
}

/** Whether what the page computed is what the run has. */
function Verdict({ expression, shown, dtype, rounded }: { expression: Expression; shown: number; dtype: Dtype; rounded: boolean }) {
  if (rounded) return <p class="verdict">The file holds these numbers rounded to 16 bits, so the page cannot check them.</p>;
  const distance = difference(expression, shown, dtype);
  if (distance <= tolerance) {
    return (
      <p class="verdict agrees">
        Computed again from these operands it is the same{distance === 0 ? "" : `, but for a relative ${brief(distance, 2)}`}.
      </p>
    );
  }
  return (
    <p class="verdict differs">
      Computed again from these operands it is {exact(expression.value, "f64")}: this differs from the run by a relative {brief(distance, 2)}.
    </p>
  );
}

function Rule({ graph, evaluation, all, open }: { graph: Graph; evaluation: Evaluation; all: boolean; open: (cell: Cell) => void }) {
  if ("missing" in evaluation) return <p class="quiet">No formula here: {evaluation.missing}.</p>;
  return (
    <>
      <p class="rule">{evaluation.rule}</p>
      <p class="with-numbers">
        = <Numbers graph={graph} expression={evaluation.expression} all={all} open={open} />
      </p>
      <p class="with-numbers">= {brief(evaluation.expression.value, 6)}</p>
    </>
  );
}

export function FormulaPanel({ graph, snapshot, cell, only }: Props) {
  const first: Cell = useMemo(() => ({ ...cell, gradient: false }), [graph, cell.id, cell.flat]);
  // Where the reader went from `first`: from no other, as another graph may have other shapes.
  const [path, setPath] = useStateOf<Cell[]>(first, []);
  const [all, setAll] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  // What was chosen is gone with the formula that it was in, so the heading gets the focus.
  const go = (next: Cell[]): void => {
    setPath(next);
    heading.current?.focus();
  };
  const open = (next: Cell): void => go([...path, next]);
  const { id, flat } = path.at(-1) ?? first;
  const value = graph.values[id];
  const stored = snapshot.values[id];
  const gradient = snapshot.gradients[id];
  const shown = stored ? numbersOf(stored)[flat] : null;
  const shownGradient = gradient ? numbersOf(gradient)[flat] : null;
  const how = value.kind === "op" && only !== "backward" ? forward(graph, snapshot, id, flat) : null;
  const flows = only === "forward" ? [] : backward(graph, snapshot, id, flat);
  const together = gradient ? total(graph, id, flows) : null;
  const rounded = [...snapshot.values, ...snapshot.gradients].some((array) => array?.dtype === "u16");
  const long =
    (how !== null && "expression" in how && hasHidden(how.expression)) ||
    flows.some(({ evaluation }) => "expression" in evaluation && hasHidden(evaluation.expression));
  return (
    <div class="formula" role="group" aria-label="The formula of the chosen number">
      <header>
        <h4 ref={heading} tabIndex={-1}>
          {cellName(graph, { id, flat, gradient: false })}
        </h4>
        {value.module && <span class="quiet">{value.module}</span>}
        <span class="tools">
          {long && (
            <button type="button" aria-pressed={all} onClick={() => setAll(!all)}>
              All terms
            </button>
          )}
          {path.length > 0 && (
            <button type="button" onClick={() => go(path.slice(0, -1))}>
              Back
            </button>
          )}
        </span>
      </header>
      <div class="directions">
        {only !== "backward" && (
          <div>
            <h5>Forward</h5>
            {shown !== null && stored && <p class="result">{exact(shown, stored.dtype)}</p>}
            {how === null && <p class="quiet">{value.kind === "parameter" ? "A parameter: training sets it." : "A constant: nothing computes it."}</p>}
            {how !== null && <Rule graph={graph} evaluation={how} all={all} open={open} />}
            {how !== null && "missing" in how && <Inputs graph={graph} snapshot={snapshot} id={id} open={open} />}
            {how !== null && "expression" in how && shown !== null && stored && (
              <Verdict expression={how.expression} shown={shown} dtype={stored.dtype} rounded={rounded} />
            )}
          </div>
        )}
        {only !== "forward" && (
          <div>
            <h5>Backward</h5>
            {shownGradient !== null && gradient && <p class="result">{exact(shownGradient, gradient.dtype)}</p>}
            {shownGradient === null && <p class="quiet">The file holds no gradient of this value.</p>}
            {id === graph.loss && <p>This is the loss: its gradient is 1.</p>}
            {shownGradient !== null &&
              flows.map(({ consumer, slot, evaluation }) => (
                <div key={`${consumer} ${slot}`} class="flow">
                  <p class="from">
                    From {valueName(graph, consumer)}
                    {graph.values[consumer].module && <span class="quiet"> in {graph.values[consumer].module}</span>}
                  </p>
                  <Rule graph={graph} evaluation={evaluation} all={all} open={open} />
                </div>
              ))}
            {together !== null && flows.length > 1 && <p class="with-numbers">Together {brief(together.value, 6)}</p>}
            {together !== null && shownGradient !== null && gradient && (
              <Verdict expression={together} shown={shownGradient} dtype={gradient.dtype} rounded={rounded} />
            )}
          </div>
        )}
      </div>
    </div>
  );
}

/** The operands of an op that has no formula. */
function Inputs({ graph, snapshot, id, open }: { graph: Graph; snapshot: GraphSnapshot; id: number; open: (cell: Cell) => void }) {
  return (
    <ul>
      {graph.values[id].inputs.map((input, slot) =>
        input === null ? null : (
          <li key={slot}>
            {snapshot.values[input] ? (
              <button type="button" onClick={() => open({ id: input, flat: 0, gradient: false })}>
                {valueName(graph, input)}
              </button>
            ) : (
              valueName(graph, input)
            )}
          </li>
        ),
      )}
    </ul>
  );
}
