// Writes template.html, one file with the page's script, style and their hashes, and THIRD_PARTY.md. With --check it
// writes nothing, and fails if they are not what the sources give.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = fileURLToPath(new URL(".", import.meta.url));
const marker = '"@XGRAD_REPORT@"';

async function bundle(entry) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: folder,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    charset: "utf8",
    format: "iife",
    target: ["chrome123", "firefox121", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
  });
  return { text: outputFiles[0].text.trim(), files: Object.keys(metafile.inputs) };
}

/** The packages that the files of a bundle come from, by name. */
function packagesOf(files) {
  const names = files.map((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]).filter(Boolean);
  return [...new Set(names)].sort().map((name) => {
    const read = (file) => readFileSync(`${folder}node_modules/${name}/${file}`, "utf8");
    const { version, license } = JSON.parse(read("package.json"));
    return { name, version, license, text: read("LICENSE").trim() };
  });
}

/** Licences with the packages that they cover: most texts are shared. */
function notices(packages) {
  const byText = new Map();
  for (const { name, version, text } of packages) byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}`]);
  return [...byText].map(([text, names]) => ({ names, text }));
}

/** `text`, unless it would end the element that holds it. */
function checked(text, name) {
  for (const end of ["</script", "</style", "<!--"]) {
    if (text.toLowerCase().includes(end)) throw new Error(`the ${name} holds ${end}, which would end its element`);
  }
  return text;
}

const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

function deliver(name, text) {
  const path = folder + name;
  if (!process.argv.includes("--check")) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) throw new Error(`${name} is not what the sources give: run node build.mjs`);
}

const page = await bundle("src/main.tsx");
const packages = packagesOf(page.files);
const legal = notices(packages).map(({ names, text }) => `/*! ${names.join(", ")}\n\n${text.replaceAll("*/", "* /")}\n*/`);
const script = checked([page.text, ...legal].join("\n"), "script");
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
