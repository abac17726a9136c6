// The CPU seconds that Chromium takes from a report's file to the painted page: the least of five times.

import { report } from "../../tests/report/arrays.mjs";
import { open, start, stop } from "../../tests/report/browser.mjs";
import { emptyRun, largeAttentionRun, largeGraphRun } from "../../tests/report/sample.mjs";

async function cpuSeconds(data) {
  const times = [];
  for (let i = 0; i < 5; ++i) {
    const { page, close } = await open(data);
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const { metrics } = await session.send("Performance.getMetrics");
    await close();
    times.push(metrics.find(({ name }) => name === "ProcessTime").value);
  }
  return Math.min(...times);
}

const runs = {
  "a run with a title alone": emptyRun("idle"),
  "12 layers x 12 heads x 128 tokens": largeAttentionRun(),
  "a graph of 2,000 ops": largeGraphRun(),
};
await start();
for (const [name, run] of Object.entries(runs)) console.log(`${name}: ${(await cpuSeconds(report(run))).toFixed(2)} s`);
await stop();
