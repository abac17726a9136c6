// Writes template.html, one file with the page's script, style and their hashes, and THIRD_PARTY.md. With --check it
// writes nothing, and fails if they are not what the sources give.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bundle, checked, hash, legalComments, notices, packagesOf, pageOf } from "./bundle.mjs";

const folder = fileURLToPath(new URL(".", import.meta.url));
const marker = '"@XGRAD_REPORT@"';

function deliver(name, text) {
  const path = folder + name;
  if (!process.argv.includes("--check")) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) throw new Error(`${name} is not what the sources give: run node build.mjs`);
}

const page = await bundle("src/main.tsx");
const packages = packagesOf(page.files);
const script = checked([page.text, ...legalComments(packages)].join("\n"), "script");
const style = checked((await bundle("src/style.css")).text, "style");
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`;

const html = pageOf({
  title: "A report of xgrad",
  policy,
  style,
  noscript: "This page draws its report with a script that it carries itself; scripts are switched off.",
  scripts: [`<script type="application/json" id="data">${marker}</script>`, `<script>${script}</script>`],
});
if (html.split(marker).length !== 2) throw new Error(`the page must hold the marker ${marker} once`);
deliver("template.html", html);

const rows = packages.map(({ name, version, license }) => `| ${name} | ${version} | ${license} |`);
const texts = notices(packages).map(({ names, text }) => `## ${names.join(", ")}\n\n\`\`\`\n${text}\n\`\`\``);
deliver(
  "THIRD_PARTY.md",
  `# What template.html holds of others

build.mjs writes this list. The notices are in template.html, too.

| package | version | licence |
| --- | --- | --- |
${rows.join("\n")}

${texts.join("\n\n")}
`,
);
console.log(`template.html: ${Buffer.byteLength(html)} bytes`);
