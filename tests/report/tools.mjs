// What the tests take from the folder of the page: its packages, its template and its modules.

import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const folder = new URL("../../report/page/", import.meta.url);

export const packages = createRequire(new URL("package.json", folder));

/** Ends with 77, as for a test that is skipped, if these packages are not installed. */
export function needPackages(...names) {
  try {
    for (const name of names) packages.resolve(name);
  } catch {
    console.log("skipped: run npm ci in report/page first");
    process.exit(77);
  }
}

export const template = readFileSync(new URL("template.html", folder), "utf8");

/** The texts of the page's sources. */
export function sources() {
  const names = readdirSync(new URL("src/", folder), { recursive: true });
  return names.filter((name) => /\.tsx?$/.test(name)).map((name) => readFileSync(new URL(`src/${name}`, folder), "utf8"));
}

/** What `source` exports, which imports modules of the page. */
export async function pageModule(source) {
  const { build } = packages("esbuild");
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: fileURLToPath(new URL("src/", folder)), loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
