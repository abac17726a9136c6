// Curves as points to draw: smoothed, and thinned to what a screen can show.

import { type Numbers, numbersOf } from "./arrays";
import type { Curve } from "./data";

export interface Point {
  step: number;
  value: number;
}

/** The numbers of the steps of a curve. */
export function stepsOf({ steps, first, values }: Curve): Numbers {
  if (steps) return numbersOf(steps);
  return Float64Array.from({ length: numbersOf(values).length }, (_, i) => first + i);
}

/** The moving average with so large a share of the past, corrected for its start. */
export function smoothed(values: ArrayLike<number>, share: number): Float64Array {
  const result = new Float64Array(values.length);
  let average = 0;
  let weight = 0;
  for (let i = 0; i < values.length; ++i) {
    if (Number.isFinite(values[i])) {
      average = share * average + (1 - share) * values[i];
      weight = share * weight + (1 - share);
    }
    result[i] = Number.isFinite(values[i]) ? average / weight : values[i];
  }
  return result;
}

/** Of each run of points that falls on one of `columns` pixels only the least and the largest value. */
export function thinned(steps: ArrayLike<number>, values: ArrayLike<number>, columns: number): Point[] {
  const { length } = values;
  const point = (i: number): Point => ({ step: steps[i], value: values[i] });
  if (length <= 2 * columns) return Array.from({ length }, (_, i) => point(i));
  const points: Point[] = [];
  for (let column = 0; column < columns; ++column) {
    const end = Math.floor(((column + 1) * length) / columns);
    let least = -1;
    let most = -1;
    for (let i = Math.floor((column * length) / columns); i < end; ++i) {
      if (!Number.isFinite(values[i])) continue;
      if (least < 0 || values[i] < values[least]) least = i;
      if (most < 0 || values[i] > values[most]) most = i;
    }
    if (least < 0) continue;
    points.push(point(Math.min(least, most)));
    if (least !== most) points.push(point(Math.max(least, most)));
  }
  return points;
}

/** The place of the last element of ascending steps that is not beyond `step`, or -1. */
export function lastUpTo(steps: ArrayLike<number>, step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
