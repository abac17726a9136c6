// Curves of the training: the loss, the learning rate and others, of all runs over each other.

import { useMemo, useState } from "preact/hooks";
import { numbersOf } from "./arrays";
import { type Point, lastUpTo, smoothed, stepsOf, thinned } from "./curve_lines";
import type { Curve, Run } from "./data";
import { memo } from "./memo";
import { brief, exact } from "./numbers";
import { RunName, runStyle } from "./runs";
import { linePath, linearScale, logScale } from "./scales";

interface Props {
  runs: Run[];
  step: number;
}

interface Line {
  run: Run;
  index: number;
  curve: Curve;
}

const width = 560;
const height = 240;
const margin = { left: 56, right: 12, top: 12, bottom: 28 };
const columns = width - margin.left - margin.right;

function linesOf(runs: Run[], name: string): Line[] {
  return runs.flatMap((run, index) => {
    const curve = run.curves.find((candidate) => candidate.name === name);
    return curve ? [{ run, index, curve }] : [];
  });
}

/** The least and the largest of the numbers that can be drawn. */
function extent(values: number[], allowed: (value: number) => boolean): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!allowed(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > high ? [1, 10] : low === high ? [low - Math.abs(low) / 2 - 1e-12, high + Math.abs(high) / 2 + 1e-12] : [low, high];
}

function Chart({ name, lines, step, log, smoothing }: { name: string; lines: Line[]; step: number; log: boolean; smoothing: number }) {
  const drawn = useMemo(
    () =>
      lines.map(({ index, curve }) => {
        const steps = stepsOf(curve);
        const values = numbersOf(curve.values);
        return {
          index,
          span: [steps[0] ?? 0, steps[steps.length - 1] ?? 0],
          raw: thinned(steps, values, columns),
          smooth: smoothing > 0 ? thinned(steps, smoothed(values, smoothing), columns) : null,
        };
      }),
    [lines, smoothing],
  );
  const allowed = (value: number): boolean => Number.isFinite(value) && (!log || value > 0);
  const [first, last] = extent(drawn.flatMap(({ span }) => span), Number.isFinite);
  const x = linearScale([first, last], [margin.left, width - margin.right], 5, false);
  const range = [height - margin.bottom, margin.top] as const;
  const domain = extent(drawn.flatMap(({ raw }) => raw.map(({ value }) => value)), allowed);
  const y = log ? logScale(domain, range) : linearScale(domain, range, 5, true);
  const path = (line: Point[]): string =>
    linePath(line.map(({ step, value }) => (allowed(value) ? { x: x(step), y: y(value) } : null)));
  const here = x(Math.max(first, Math.min(last, step)));
  return (
    <figure class="curve">
      <figcaption>{name}</figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${name} over the steps of training; its numbers are below`}>
        {y.ticks.map((tick) => (
          <g key={tick} class="tick">
            <line x1={margin.left} x2={width - margin.right} y1={y(tick)} y2={y(tick)} />
            <text x={margin.left - 8} y={y(tick)} dy="0.32em" text-anchor="end">
              {brief(tick, 4)}
            </text>
          </g>
        ))}
        {x.ticks.map((tick) => (
          <text key={tick} class="tick" x={x(tick)} y={height - 8} text-anchor="middle">
            {tick.toLocaleString("en")}
          </text>
        ))}
        <line class="here" x1={here} x2={here} y1={margin.top} y2={height - margin.bottom} />
        {drawn.map(({ index, raw, smooth }) => (
          <g key={index} class={`line ${runStyle(index)}`}>
            <path class={smooth ? "raw" : ""} d={path(raw)} />
            {smooth && <path d={path(smooth)} />}
          </g>
        ))}
      </svg>
      <CurveNumbers lines={lines} step={step} />
    </figure>
  );
}

/** What the curves have at the step of the scrub, as text. */
function CurveNumbers({ lines, step }: { lines: Line[]; step: number }) {
  return (
    <dl class="readouts">
      {lines.map(({ run, index, curve }) => {
        const steps = stepsOf(curve);
        if (steps.length === 0) return null;
        const place = Math.max(0, lastUpTo(steps, step));
        return (
          <div key={index}>
            <dt>
              {lines.length > 1 && <RunName run={run} index={index} />}
              step {steps[place].toLocaleString("en")}
            </dt>
            <dd class="number" data-exact="curve">
              {exact(numbersOf(curve.values)[place], curve.values.dtype)}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

export const CurvesSection = memo(function CurvesSection({ runs, step }: Props) {
  const [log, setLog] = useState(false);
  const [smoothing, setSmoothing] = useState(0);
  const charts = useMemo(() => {
    const names = [...new Set(runs.flatMap((run) => run.curves.map(({ name }) => name)))];
    return names.map((name) => ({ name, lines: linesOf(runs, name) }));
  }, [runs]);
  return (
    <>
      <p class="lead">The upright line is where the scrub stands; beneath is the number there.</p>
      <div class="controls">
        <label>
          <input type="checkbox" checked={log} onChange={(event) => setLog(event.currentTarget.checked)} /> Logarithmic scale
        </label>
        <label>
          Smoothing{" "}
          <input
            type="range"
            min={0}
            max={0.99}
            step={0.01}
            value={smoothing}
            aria-valuetext={smoothing === 0 ? "none" : `${Math.round(smoothing * 100)} percent of the past`}
            onInput={(event) => setSmoothing(Number(event.currentTarget.value))}
          />
        </label>
      </div>
      <div class="curves">
        {charts.map(({ name, lines }) => (
          <Chart key={name} name={name} lines={lines} step={step} log={log} smoothing={smoothing} />
        ))}
      </div>
    </>
  );
});
