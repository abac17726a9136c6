// The formulas of the page against the numbers of the library.

import assert from "node:assert/strict";
import { elementCount } from "./arrays.mjs";
import { pageModule } from "./tools.mjs";

const { backward, difference, forward, numbersOf, readReport, total } = await pageModule(`
  export { backward, forward, total } from "./formulas";
  export { difference } from "./formulas/expression";
  export { numbersOf } from "./arrays";
  export { readReport } from "./data";
`);

export { numbersOf, readReport };

/** The formulas of some elements of a value, or of all, against the numbers of the library. */
export function checkFormulasOf(graph, snapshot, id, stride = Math.max(1, Math.floor(elementCount(graph.values[id].shape) / 7))) {
  const { kind, name } = graph.values[id];
  const values = numbersOf(snapshot.values[id]);
  const gradients = snapshot.gradients[id] && numbersOf(snapshot.gradients[id]);
  for (let flat = 0; flat < values.length; flat += stride) {
    if (kind === "op") {
      const { expression, missing } = forward(graph, snapshot, id, flat);
      assert.equal(missing, undefined, name);
      const distance = difference(expression, values[flat], snapshot.values[id].dtype);
      assert.ok(distance <= 1e-6, `${name} #${id}[${flat}]: ${expression.value}, the library has ${values[flat]}`);
    }
    if (!gradients) continue;
    const flows = backward(graph, snapshot, id, flat);
    for (const { evaluation } of flows) assert.equal(evaluation.missing, undefined, name);
    const all = total(graph, id, flows);
    const distance = difference(all, gradients[flat], snapshot.gradients[id].dtype);
    assert.ok(distance <= 1e-6, `gradient of ${name} #${id}[${flat}]: ${all.value}, the library has ${gradients[flat]}`);
  }
}

/** The same of all values of all graphs, at their last step. */
export function checkFormulas({ graphs }) {
  for (const graph of graphs) {
    const last = graph.snapshots.findLast((snapshot) => snapshot !== null);
    graph.values.forEach((_, id) => checkFormulasOf(graph, last, id));
  }
}
