// The formulas of the page against the numbers of the library.

import assert from "node:assert/strict";
import { elementCount } from "./arrays.mjs";
import { pageModule } from "./tools.mjs";

const { backward, consumersOf, difference, formulaOf, forward, numbersOf, readReport, total } = await pageModule(`
  export { backward, consumersOf, formulaOf, forward, total } from "./formulas";
  export { difference } from "./formulas/expression";
  export { numbersOf } from "./arrays";
  export { readReport } from "./data";
`);

export { consumersOf, formulaOf, numbersOf, readReport };

/** All elements of a value, or every so many. */
function* elements(graph, id, stride) {
  const count = elementCount(graph.values[id].shape);
  for (let flat = 0; flat < count; flat += stride) yield flat;
}

/** An op's elements against the numbers of the library. */
export function checkForward(graph, snapshot, id, stride = 1) {
  const { name } = graph.values[id];
  const { dtype } = snapshot.values[id];
  const values = numbersOf(snapshot.values[id]);
  for (const flat of elements(graph, id, stride)) {
    const { expression, missing } = forward(graph, snapshot, id, flat);
    assert.equal(missing, undefined, name);
    const distance = difference(expression, values[flat], dtype);
    assert.ok(distance <= 1e-6, `${name} #${id}[${flat}]: ${expression.value}, the library has ${values[flat]}`);
  }
}

/** What flows back to a value from the ops that read it, against the library's gradient; false if it has none. */
export function checkGradient(graph, snapshot, id, stride = 1) {
  if (!snapshot.gradients[id]) return false;
  const { name } = graph.values[id];
  const { dtype } = snapshot.gradients[id];
  const gradients = numbersOf(snapshot.gradients[id]);
  for (const flat of elements(graph, id, stride)) {
    const flows = backward(graph, snapshot, id, flat);
    const readers = flows.map(({ consumer }) => graph.values[consumer].name);
    for (const { consumer, evaluation } of flows) assert.equal(evaluation.missing, undefined, graph.values[consumer].name);
    const all = total(graph, id, flows);
    const distance = difference(all, gradients[flat], dtype);
    assert.ok(distance <= 1e-6, `gradient of ${name} #${id}[${flat}] by ${readers}: ${all.value}, the library has ${gradients[flat]}`);
  }
  return true;
}

/** The formulas of some elements of a value, or of all. */
export function checkFormulasOf(graph, snapshot, id, stride = Math.max(1, Math.floor(elementCount(graph.values[id].shape) / 7))) {
  if (graph.values[id].kind === "op") checkForward(graph, snapshot, id, stride);
  checkGradient(graph, snapshot, id, stride);
}

/** The same of all values of all graphs, at their last step. */
export function checkFormulas({ graphs }) {
  for (const graph of graphs) {
    const last = graph.snapshots.findLast((snapshot) => snapshot !== null);
    graph.values.forEach((_, id) => checkFormulasOf(graph, last, id));
  }
}
