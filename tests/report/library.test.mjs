// The formulas of the page against the numbers of the library, forward and backward, in drawn calls of all its ops.
// XGRAD_PROGRAMS names the folder of the programs; ctest sets it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import test from "node:test";
import { formulaLines } from "./descriptions.mjs";
import { needPackages } from "./tools.mjs";

const programs = process.env.XGRAD_PROGRAMS;
if (programs === undefined) {
  console.log("skipped: no programs");
  process.exit(77);
}

needPackages("esbuild");

const { checkForward, checkGradient, consumersOf, formulaOf, readReport } = await import("./recomputed.mjs");

const output = execFileSync(join(programs, "op_reports"), { encoding: "utf8", maxBuffer: 2 ** 28 });
const graphs = output.trim().split("\n").flatMap((line) => readReport(line)[0].graphs);

/** The calls of each op that has a formula. */
const calls = new Map();
for (const graph of graphs) {
  for (const [id, { kind, name }] of graph.values.entries()) {
    if (kind !== "op" || formulaOf(graph, name) === null) continue;
    if (!calls.has(name)) calls.set(name, []);
    calls.get(name).push({ graph, id });
  }
}

/** The gradient of a value is the sum over all ops that read it. */
const hasFormulasOfReaders = (graph, id) => consumersOf(graph, id).every(({ consumer }) => formulaOf(graph, graph.values[consumer].name) !== null);

/** The ops of whose inputs a gradient was compared. */
const differentiated = new Set();

for (const [name, all] of calls) {
  test(`${name}: ${all.length} calls`, () => {
    for (const { graph, id } of all) {
      const [snapshot] = graph.snapshots;
      checkForward(graph, snapshot, id);
      for (const input of graph.values[id].inputs) {
        if (input === null || !hasFormulasOfReaders(graph, input)) continue;
        if (checkGradient(graph, snapshot, input)) differentiated.add(name);
      }
    }
  });
}

test("the library calls each op of report/formulas.txt, and the gradient of its input is compared", () => {
  for (const { op, place } of formulaLines) assert.ok(differentiated.has(op), `${place}: no draw of a test calls ${op}`);
});
