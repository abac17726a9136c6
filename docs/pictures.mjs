// node docs/pictures.mjs PROGRAMS FOLDER: draws the pictures of README and of docs/report.md. Runs the programs of
// the folder PROGRAMS (build/release/bin) and takes parts of their reports in Chromium; needs `npm ci` in report/page.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFile, start, stop } from "../tests/report/browser.mjs";

const [programs, folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: node docs/pictures.mjs PROGRAMS FOLDER");
  process.exit(2);
}

const curve = (name) => (page, path) => page.locator("#curves .curve", { hasText: name }).screenshot({ path });
const heads = (page, path) => page.locator("#attention .layers").screenshot({ path });

/** What a window shows where the hidden word looks at the adjective, down to the formula. */
async function attention(page, path) {
  await page.locator('#attention [role="grid"]').first().locator("tbody tr").nth(1).locator("td").nth(3).click();
  await page.evaluate(() => {
    const top = (selector) => document.querySelector(selector).getBoundingClientRect().top;
    scrollBy(0, top("#attention h2") - document.querySelector(".bar-top").offsetHeight - 16);
  });
  const { y, height } = await page.locator("#attention .formula").boundingBox();
  await page.screenshot({ path, clip: { x: 0, y: 0, width: 1120, height: y + height + 24 } });
}

/** A run's options, and the parts of its report by the pictures' names. */
const runs = [
  [[], { report: attention, learned_heads: heads }],
  [["--lr", "0.1"], { high_rate: curve("loss") }],
  [["--lr", "3"], { dead_heads: heads, exploding_gradient: curve("gradient norm") }],
];

mkdirSync(folder, { recursive: true });
const temporary = mkdtempSync(join(tmpdir(), "xgrad-pictures-"));
await start();
for (const [options, pictures] of runs) {
  const file = join(temporary, "report.html");
  execFileSync(join(programs, "train_toy_encoder"), [...options, "--report", file], { stdio: "ignore" });
  for (const [name, part] of Object.entries(pictures)) {
    const { page, close } = await openFile(file, { width: 1120, height: 1400 });
    const path = join(folder, `${name}.png`);
    await part(page, path);
    console.log(path);
    await close();
  }
}
await stop();
rmSync(temporary, { recursive: true });
