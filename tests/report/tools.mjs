// What the tests take from the folder of the page: its packages, its template and its modules.

import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

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
  const temporary = mkdtempSync(join(tmpdir(), "xgrad-report-"));
  try {
    const outfile = join(temporary, "module.mjs");
    await build({
      stdin: { contents: source, resolveDir: fileURLToPath(new URL("src/", folder)), loader: "ts" },
      bundle: true,
      outfile,
      format: "esm",
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(temporary, { recursive: true });
  }
}
