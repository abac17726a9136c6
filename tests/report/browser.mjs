// Opens reports in Chromium and writes down whatever a quiet page must not do.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { page as filled } from "./arrays.mjs";
import { packages, template } from "./tools.mjs";

const names = ["chromium", "chromium-browser", "google-chrome"];

/** The path of a browser, or undefined. */
export function browserPath() {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(existsSync);
}

const folder = mkdtempSync(join(tmpdir(), "xgrad-report-"));
let browser;
let files = 0;

export async function start() {
  browser = await packages("playwright-core").chromium.launch({ executablePath: browserPath(), args: ["--no-sandbox"] });
}

export async function stop() {
  idle.clear();
  await browser.close();
  rmSync(folder, { recursive: true });
}

/** A page of the template with a report, given as an object or as text, and a check that it kept quiet. */
export function open(report, options) {
  const file = join(folder, `${files++}.html`);
  writeFileSync(file, report === null ? template : filled(template, report));
  return openFile(file, options);
}

/** Waits until what has changed is drawn. */
export const twoFrames = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Pages that were closed, by their options: to open a new one takes longer than most of what is done with it. */
const idle = new Map();

async function newPage({ width, height, ...options }) {
  const context = await browser.newContext({ viewport: { width, height }, ...options });
  context.setDefaultTimeout(120_000); // a machine may be busy
  const page = await context.newPage();
  const noise = [];
  page.on("console", (message) => noise.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => noise.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => noise.push(`dialog: ${dialog.message()}`));
  const isOwn = (request) => request.isNavigationRequest() || request.url().startsWith("blob:"); // made by the page itself
  page.on("request", (request) => isOwn(request) || noise.push(`request: ${request.url()}`));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.log(`violates ${event.violatedDirective}`));
  });
  return { page, noise };
}

/** The same of a page that a program has written. */
export async function openFile(file, { width = 1280, height = 900, ...others } = {}) {
  const options = { width, height, ...others };
  const key = JSON.stringify(options);
  const opened = idle.get(key)?.pop() ?? (await newPage(options));
  const { page, noise } = opened;
  await page.goto(pathToFileURL(file).href);
  await twoFrames(page);
  const close = async () => {
    await page.goto("about:blank");
    assert.deepEqual(noise, [], "the page makes no request, no message and violates no policy");
    await page.emulateMedia({ media: null, colorScheme: options.colorScheme ?? "light" });
    await page.mouse.move(0, 0);
    idle.set(key, [...(idle.get(key) ?? []), opened]);
  };
  return { page, close };
}

/** What axe finds in a page that was opened with bypassCSP: all of it in the light, and in the dark what colours decide. */
export async function axeFindings(page) {
  if (await page.evaluate(() => typeof axe === "undefined")) {
    await page.evaluate(readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8"));
  }
  const everything = ["wcag2a", "wcag2aa", "best-practice"];
  const found = [];
  for (const [colorScheme, runOnly] of [["light", everything], ["dark", { type: "rule", values: ["color-contrast", "link-in-text-block"] }]]) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate((options) => axe.run(options), { runOnly });
    for (const { id, nodes } of violations) {
      for (const { html, failureSummary } of nodes) found.push(`${id}, ${colorScheme}: ${html} ${failureSummary}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  return found;
}

/** `body` with the page of a report. */
export async function withPage(report, body, options) {
  const { page, close } = await open(report, options);
  await body(page);
  await close();
}
