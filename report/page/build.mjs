// Writes template.html, one file with the page's script, style and their hashes, and THIRD_PARTY.md. With --check it
// writes nothing, and fails if they are not what the sources give.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bundle, checked, hash, legalComments, notices, packagesOf } from "./bundle.mjs";

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

const html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>A report of xgrad</title>
<style>${style}</style>
</head>
<body>
<div id="page"><noscript>This page draws its report with a script that it carries itself; scripts are switched off.</noscript></div>
<script type="application/json" id="data">${marker}</script>
<script>${script}</script>
</body>
</html>
`;
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
