// What the builds of this page and of ../../learn/page have in common.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** The text of a bundle of `entry`, which lies in `from`, and the files that went into it. */
export async function bundle(entry, from = folder, more = {}) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: from,
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
    nodePaths: [`${folder}node_modules`],
    ...more,
  });
  return { text: outputFiles[0].text.trim(), files: Object.keys(metafile.inputs) };
}

/** The packages that the files of a bundle come from, by name. */
export function packagesOf(files) {
  const names = files.map((file) => /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]).filter(Boolean);
  return [...new Set(names)].sort().map((name) => {
    const read = (file) => readFileSync(`${folder}node_modules/${name}/${file}`, "utf8");
    const { version, license } = JSON.parse(read("package.json"));
    return { name, version, license, text: read("LICENSE").trim() };
  });
}

/** Licences with the packages that they cover: most texts are shared. */
export function notices(packages) {
  const byText = new Map();
  for (const { name, version, text } of packages) byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}`]);
  return [...byText].map(([text, names]) => ({ names, text }));
}

/** Licences as comments of a script. */
export function legalComments(packages) {
  return notices(packages).map(({ names, text }) => `/*! ${names.join(", ")}\n\n${text.replaceAll("*/", "* /")}\n*/`);
}

/** `text`, unless it would end the element that holds it. */
export function checked(text, name) {
  for (const end of ["</script", "</style", "<!--"]) {
    if (text.toLowerCase().includes(end)) throw new Error(`the ${name} holds ${end}, which would end its element`);
  }
  return text;
}

export const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

/** A page of one file, as both are: `noscript` is what stands there without scripts, `scripts` what follows it. */
export function pageOf({ title, policy, style, noscript, scripts }) {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<div id="page"><noscript>${noscript}</noscript></div>
${scripts.join("\n")}
</body>
</html>
`;
}
