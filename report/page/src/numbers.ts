// Numbers as text: exact ones, from which the bits can be had again, and short ones for cells and labels.

import type { Statistics } from "./data";

export type Dtype = "f32" | "f64" | "i64" | "u8" | "u16";

function special(value: number): string | null {
  if (Number.isNaN(value)) return "nan";
  if (value === Infinity) return "inf";
  if (value === -Infinity) return "-inf";
  return Object.is(value, -0) ? "-0" : null;
}

const digitsOf: Partial<Record<Dtype, number>> = { f32: 9, u16: 5 };

/** Nine significant digits of a float: Math.fround(Number(text)) has its bits. Doubles get all they need. */
export function exact(value: number, dtype: Dtype): string {
  const digits = digitsOf[dtype];
  return special(value) ?? String(digits === undefined ? value : Number(value.toPrecision(digits)));
}

/** `value` with so many significant digits. */
export function brief(value: number, digits = 3): string {
  const name = special(value);
  if (name !== null) return name;
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) {
    return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  }
  return String(Number(value.toPrecision(digits)));
}

/** A statistic, where null stands for one that is not finite, or for all of an array without elements. */
export function statistic<N extends string>(of: Statistics & Record<N, number | null>, name: N, digits = 4): string {
  const value: number | null = of[name];
  return value !== null ? brief(value, digits) : of.min === null && of.nonfinite === 0 ? "empty" : "not finite";
}

export function duration(seconds: number): string {
  if (seconds < 1e-3) return `${brief(seconds * 1e6)} µs`;
  if (seconds < 1) return `${brief(seconds * 1e3)} ms`;
  if (seconds < 120) return `${brief(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit + 1 < units.length) {
    count /= 1000;
    ++unit;
  }
  return `${brief(count)} ${units[unit]}`;
}
