// Writes the page, one HTML file with the library in it: node build.mjs CORE PAGE, where CORE is the folder with
// learn_core.js and learn_core.wasm, which Emscripten wrote.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { bundle, checked, hash, legalComments, packagesOf, pageOf } from "../../report/page/bundle.mjs";

const [core, path] = process.argv.slice(2);
if (path === undefined) throw new Error("usage: node build.mjs CORE PAGE");
const folder = fileURLToPath(new URL(".", import.meta.url));

// In ASCII, so that a browser holds the file, most of which is the core, in bytes.
const charset = "ascii";
const page = await bundle("src/main.tsx", folder, { charset, loader: { ".hpp": "text" } });
const worker = await bundle("src/worker.ts", folder, {
  charset,
  alias: { core: resolve(core, "learn_core.js") },
  define: { "process.versions.node": "undefined" },
});
const script = checked([page.text, ...legalComments(packagesOf(page.files))].join("\n"), "script");
const style = checked((await bundle("src/style.css", folder, { charset })).text, "style");
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)} 'wasm-unsafe-eval'`,
  "worker-src blob:",
  `style-src ${hash(style)}`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const wasmBinary = readFileSync(resolve(core, "learn_core.wasm"));

/** The request of the first stops, and below it the library's reply: with them the page needs no worker at first. */
async function firstReply() {
  const { text } = await bundle("src/walk.ts", folder, { format: "esm" });
  const { notebook, walkRequest } = await import(`data:text/javascript,${encodeURIComponent(text)}`);
  const request = JSON.stringify(walkRequest(notebook, 1));
  globalThis.self = { location: { href: "" } }; // as in a worker, for which Emscripten made its script
  const library = await createRequire(import.meta.url)(resolve(core, "learn_core.js"))({ wasmBinary });
  const reply = library.ccall("lesson_answer", "string", ["string"], [request]);
  if (JSON.parse(reply).error !== undefined) throw new Error(`the first stop: ${reply}`);
  return `${request}\n${reply}`;
}

const html = pageOf({
  title: "Attention, number by number",
  policy,
  style,
  noscript: "This page computes what it shows, by scripts that it carries itself; scripts are switched off.",
  scripts: [
    `<script type="text/plain" id="first">${checked(await firstReply(), "first reply")}</script>`,
    `<script type="text/plain" id="worker">${checked(worker.text, "worker")}</script>`,
    `<script type="text/plain" id="core">${gzipSync(wasmBinary, { level: 9 }).toString("base64")}</script>`,
    `<script>${script}</script>`,
  ],
});
writeFileSync(path, html);
console.log(`${path}: ${Buffer.byteLength(html)} bytes`);
