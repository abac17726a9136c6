// What the interactive lesson costs: its size, the CPU seconds that Chromium takes until it is ready, for a report without
// content and for a blank page, the least of five times in turns, and those of 1,000 training steps in its worker and
// natively, in turns.
// node benchmarks/learn/bench_page.mjs PAGE PROGRAMS: learn.html, and the folder of answer_lesson.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { report } from "../../tests/report/arrays.mjs";
import { open, openFile, start, stop } from "../../tests/report/browser.mjs";
import { emptyRun } from "../../tests/report/sample.mjs";

const [file, programs] = process.argv.slice(2);
if (programs === undefined) throw new Error("usage: node bench_page.mjs PAGE PROGRAMS");

/** The CPU seconds of a page's process so far, as a function. */
async function clockOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "ProcessTime").value;
  };
}

let pages = 0;

/** Opens a page, waits for an element, and gives what `body` gives; in a size of its own, as pages of a size share a process. */
async function withPage(opening, element, body) {
  const { page, close } = await opening({ width: 1280 + pages++ });
  const seconds = await clockOf(page);
  await page.locator(element).waitFor();
  const result = await body(page, seconds);
  await close();
  return result;
}

const lesson = (size) => openFile(file, size);
const isReady = "html[data-ready]";

const requests = [{ do: "start", steps: 1000 }, { do: "train", steps: 1000 }];

/** CPU seconds of 1,000 steps in a worker of the page. */
const trainedInPage = () =>
  withPage(lesson, isReady, async (page, seconds) => {
    const before = await seconds();
    await page.evaluate(async (list) => {
      const text = (id) => document.getElementById(id).textContent;
      const worker = new Worker(URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" })));
      worker.postMessage({ core: text("core") });
      for (const [id, request] of list.entries()) {
        worker.postMessage({ id, request: JSON.stringify(request) });
        await new Promise((done) => (worker.onmessage = done));
      }
    }, requests);
    return (await seconds()) - before;
  });

/** CPU seconds of the same natively, with one thread. */
function trainedNatively() {
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const script = `times=$(mktemp); TIMEFORMAT='%U %S'; { time "$1" >/dev/null; } 2>"$times"; cat "$times"; rm "$times"`;
  const { stdout } = spawnSync("bash", ["-c", script, "bash", join(programs, "answer_lesson")], {
    input,
    encoding: "utf8",
    env: { ...process.env, OPENBLAS_NUM_THREADS: "1" },
  });
  return stdout.trim().split(/\s+/).reduce((sum, part) => sum + Number(part), 0);
}

await start();
console.log(`size: ${statSync(file).size} bytes`);

const folder = mkdtempSync(join(tmpdir(), "xgrad-bench-"));
const blank = join(folder, "blank.html");
writeFileSync(blank, "<!DOCTYPE html><title>blank</title><p>blank</p>");
const opened = [
  ["ready", lesson, isReady],
  ["a report with a title alone", (size) => open(report(emptyRun("idle")), size), "h1"],
  ["a blank page", (size) => openFile(blank, size), "p"],
].map(([name, opening, element]) => ({ name, opening, element, taken: [] }));
for (let i = 0; i < 5; ++i) {
  for (const { opening, element, taken } of opened) taken.push(await withPage(opening, element, (_, seconds) => seconds()));
}
console.log(opened.map(({ name, taken }) => `${name}: ${Math.min(...taken).toFixed(2)} s`).join("; "));
const pairs = [];
for (let i = 0; i < 3; ++i) pairs.push([await trainedInPage(), trainedNatively()]);
const least = (which) => Math.min(...pairs.map((pair) => pair[which]));
console.log(`1,000 steps: in the page ${least(0).toFixed(2)} s, natively ${least(1).toFixed(2)} s, ratio ${(least(0) / least(1)).toFixed(1)}`);
await stop();
rmSync(folder, { recursive: true });
