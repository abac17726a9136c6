// Scales of charts: from numbers to places, with round numbers as ticks.

import { nice, ticks } from "d3-array";

interface ChartScale {
  (value: number): number;
  ticks: number[];
}

type Span = readonly [number, number];

function along([low, high]: Span, [from, to]: Span): (value: number) => number {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

/** From exactly the domain, or from the round numbers around it. */
export function linearScale(domain: Span, range: Span, count: number, rounded: boolean): ChartScale {
  const [low, high] = rounded ? nice(domain[0], domain[1], count) : domain;
  return Object.assign(along([low, high], range), { ticks: ticks(low, high, count) });
}

/** From the powers of ten around the domain; with few of them 2 and 5 are ticks, too. */
export function logScale([low, high]: Span, range: Span): ChartScale {
  const first = Math.floor(Math.log10(low));
  const last = Math.max(first + 1, Math.ceil(Math.log10(high)));
  const place = along([first, last], range);
  const every = Math.ceil((last - first) / 6);
  const marks: number[] = [];
  for (let power = first; power <= last; ++power) {
    if ((power - first) % every !== 0) continue;
    for (const digit of last - first <= 2 && power < last ? [1, 2, 5] : [1]) marks.push(digit * 10 ** power);
  }
  return Object.assign((value: number) => place(Math.log10(value)), { ticks: marks });
}

export interface Point {
  x: number;
  y: number;
}

/** Points as lines of an SVG path, broken where a point is null. */
export function linePath(points: readonly (Point | null)[]): string {
  let path = "";
  let previous: Point | null = null;
  for (const point of points) {
    if (point) path += `${previous ? "L" : "M"}${point.x.toFixed(1)},${point.y.toFixed(1)}`;
    previous = point;
  }
  return path;
}

/** Points as an SVG path whose inner corners are round. */
export function roundedPath(points: readonly Point[]): string {
  const at = ({ x, y }: Point): string => `${x.toFixed(1)},${y.toFixed(1)}`;
  const last = points.length - 1;
  let path = `M${at(points[0])}`;
  for (let i = 1; i < last; ++i) {
    const middle = { x: (points[i].x + points[i + 1].x) / 2, y: (points[i].y + points[i + 1].y) / 2 };
    path += `Q${at(points[i])} ${at(i + 1 < last ? middle : points[last])}`;
  }
  return last > 1 ? path : `${path}L${at(points[last])}`;
}
