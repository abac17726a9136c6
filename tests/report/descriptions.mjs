// The ops as the library describes them, and the lines of report/formulas.txt.

import { readFileSync, readdirSync } from "node:fs";

const headers = new URL("../../ops/", import.meta.url);
const description = /^inline constexpr Op \w+\(\s*"(\w+)",\s*\{([^}]*)\}(?:,\s*\{([^}]*)\})?/gm;

const names = (list = "") => list.split(",").map((name) => name.trim().slice(1, -1)).filter((name) => name !== "");

const descriptions = readdirSync(headers, { recursive: true })
  .filter((name) => name.endsWith(".hpp"))
  .flatMap((name) => [...readFileSync(new URL(name, headers), "utf8").matchAll(description)]);

/** The names of the operands of each op, and those of its attributes. */
export const operands = Object.fromEntries(descriptions.map(([, op, inputs]) => [op, names(inputs)]));
export const attributes = Object.fromEntries(descriptions.map(([, op, , list]) => [op, names(list)]));

/** The ops and formulas of report/formulas.txt, with the numbers of their lines. */
export const formulaLines = readFileSync(new URL("../../report/formulas.txt", import.meta.url), "utf8")
  .split("\n")
  .map((text, i) => ({ place: `report/formulas.txt:${i + 1}`, text }))
  .filter(({ text }) => text !== "" && !text.startsWith("#"))
  .map(({ place, text }) => {
    const [, op, formula] = /^(\w+): (.+)$/.exec(text) ?? [null, text, null];
    return { place, op, formula };
  });

export const formulas = Object.fromEntries(formulaLines.map(({ op, formula }) => [op, formula]));
