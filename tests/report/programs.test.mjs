// Reports that programs of the library wrote: what the page shows and computes, against other outputs of the same
// runs. XGRAD_PROGRAMS names the folder of the programs; ctest sets it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browserPath, openFile, start, stop } from "./browser.mjs";
import { needPackages } from "./tools.mjs";

const programs = process.env.XGRAD_PROGRAMS;
if (programs === undefined || browserPath() === undefined) {
  console.log("skipped: no programs or no browser");
  process.exit(77);
}

needPackages("playwright-core", "esbuild");

const { checkFormulas, checkFormulasOf, numbersOf, readReport } = await import("./recomputed.mjs");

const folder = mkdtempSync(join(tmpdir(), "xgrad-report-"));
before(start);
after(async () => {
  await stop();
  rmSync(folder, { recursive: true });
});

const path = (name) => join(folder, name);
const run = (program, ...options) => execFileSync(join(programs, program), options, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** Runs a program, and opens the page that it wrote. */
async function withReportOf(program, options, body) {
  const file = path(`${program}.html`);
  run(program, ...options, "--report", file);
  const { page, close } = await openFile(file);
  const data = await page.locator("script#data").textContent();
  await body(page, readReport(data)[0]);
  await close();
}

/** The float32 tensors of a safetensors file by name. */
function safetensors(file) {
  const bytes = readFileSync(file);
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + length));
  const tensors = Object.entries(header).filter(([, { dtype }]) => dtype === "F32");
  return new Map(
    tensors.map(([name, { data_offsets: [begin, end] }]) => {
      const start = bytes.byteOffset + 8 + length;
      return [name, new Float32Array(bytes.buffer.slice(start + begin, start + end))];
    }),
  );
}

const toy = ["--steps", "60", "--seed", "3"];

test("weights have the bits of the checkpoint, losses those of the log", () => {
  const [checkpoint, log] = [path("toy.safetensors"), path("toy.jsonl")];
  return withReportOf("train_toy_encoder", [...toy, "--checkpoint", checkpoint, "--log", log], async (page, { steps }) => {
    const weights = safetensors(checkpoint);
    const name = "encoder.layers.0.feed_forward.linear1.weight";
    const [, expected] = [...weights].find(([key]) => key.endsWith(name) && !key.startsWith("optimizer"));
    await page.getByRole("searchbox").fill(`parameter ${name}`);
    await page.locator("#graph .outline .link").first().click();
    await page.getByRole("application", { name: /^value of/ }).focus();
    await page.keyboard.press("Control+Home");
    for (let place = 0; place < 100; ++place) {
      const text = await page.locator('#graph [data-exact="value"]').textContent();
      assert.ok(Object.is(Math.fround(Number(text)), expected[place]), `[${place}] is ${text}, the checkpoint has ${expected[place]}`);
      await page.keyboard.press("ArrowRight");
      if (place % 32 === 31) {
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Home");
      }
    }
    const lines = readFileSync(log, "utf8").trim().split("\n").map((line) => JSON.parse(line));
    const losses = new Map(lines.filter(({ step }) => step !== undefined).map(({ step, loss }) => [step, loss]));
    await page.locator(".scrub input").focus();
    await page.keyboard.press("Home");
    for (const step of steps.filter((step) => losses.has(step))) {
      const text = await page.locator('#curves [data-exact="curve"]').first().textContent();
      assert.equal(Number(text), losses.get(step), `the loss of step ${step}`);
      await page.keyboard.press("ArrowRight");
    }
  });
});

test("the formulas of a toy encoder give the library's numbers, those of its attention at every step", () =>
  withReportOf("train_toy_encoder", toy, async (page, report) => {
    checkFormulas(report);
    const [{ graph, value }] = report.attention;
    for (const snapshot of report.graphs[graph].snapshots) checkFormulasOf(report.graphs[graph], snapshot, value);
    await page.locator(".scrub input").focus();
    await page.keyboard.press("Home");
    assert.equal(await page.locator("#attention .verdict.agrees").count(), 2);
  }));

test("the formulas of attention that looks at one word alone give the library's numbers, some of them below the normal ones", () =>
  withReportOf("train_toy_encoder", ["--steps", "300", "--seed", "1", "--lr", "0.1"], async (_, { attention: [{ graph, value }], graphs }) => {
    const snapshots = graphs[graph].snapshots;
    const tiny = snapshots.filter(({ values }) => numbersOf(values[value]).some((weight) => weight < 2 ** -126));
    assert.notEqual(tiny.length, 0);
    for (const snapshot of snapshots) checkFormulasOf(graphs[graph], snapshot, value, 1);
  }));

test("the report of the toy encoder's whole training has at most 1 MB", () => {
  const file = path("toy.html");
  run("train_toy_encoder", "--report", file);
  assert.ok(statSync(file).size <= 1e6, `${statSync(file).size} bytes`);
});

for (const notebook of ["notebook_000", "notebook_001", "notebook_002", "notebook_003", "notebook_004"]) {
  test(`${notebook}: its formulas give its numbers, and each tensor opens`, () =>
    withReportOf(notebook, [], async (page, report) => {
      checkFormulas(report);
      const parts = page.locator("#tensors details");
      assert.equal(await parts.count(), report.tensors.length);
      for (const [i, { value }] of report.tensors.entries()) {
        await parts.nth(i).locator("summary").click();
        const text = await parts.nth(i).locator('[data-exact="value"]').textContent();
        const [first] = numbersOf(value);
        assert.ok(Object.is(value.dtype === "f32" ? Math.fround(Number(text)) : Number(text), first), `${text} has the bits of ${first}`);
      }
    }));
}
