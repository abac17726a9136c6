// The names of the operands of each op, as the library describes them.

import { readFileSync, readdirSync } from "node:fs";

const headers = new URL("../../ops/", import.meta.url);
const description = /^inline constexpr Op \w+\("(\w+)",\s*\{([^}]*)\}/gm;

export const operands = Object.fromEntries(
  readdirSync(headers, { recursive: true })
    .filter((name) => name.endsWith(".hpp"))
    .flatMap((name) => [...readFileSync(new URL(name, headers), "utf8").matchAll(description)])
    .map(([, op, inputs]) => [op, inputs.split(",").map((input) => input.trim().slice(1, -1))]),
);
