// The loss over the steps, of the training that runs and of those before it.

import { brief } from "../../../report/page/src/numbers";
import { linePath, linearScale } from "../../../report/page/src/scales";

export interface Line {
  name: string;
  losses: number[];
}

interface Props {
  /** The one that runs is the last. */
  lines: Line[];
  steps: number;
}

const width = 560;
const height = 240;
const margin = { left: 48, right: 12, top: 12, bottom: 28 };

/** So many losses are averaged for a point, as single batches jump. */
const averaged = 5;

function points(losses: number[]): { step: number; loss: number }[] {
  const all: { step: number; loss: number }[] = [];
  for (let first = 0; first < losses.length; first += averaged) {
    const part = losses.slice(first, first + averaged);
    all.push({ step: first, loss: part.reduce((sum, loss) => sum + loss, 0) / part.length });
  }
  return all;
}

/** The style of a line: the one that runs is solid. */
function style(i: number, count: number): string {
  return `run-${i === count - 1 ? 0 : 1 + (i % 5)}`;
}

export function LossChart({ lines, steps }: Props) {
  const drawn = lines.map(({ losses }) => points(losses));
  const largest = Math.max(3.6, ...drawn.flat().map(({ loss }) => loss).filter(Number.isFinite));
  const x = linearScale([0, steps], [margin.left, width - margin.right], 5, false);
  const y = linearScale([0, largest], [height - margin.bottom, margin.top], 4, true);
  return (
    <figure class="curve">
      <figcaption>Loss</figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label="The loss over the steps; its last number is below">
        {y.ticks.map((tick) => (
          <g key={tick} class="tick">
            <line x1={margin.left} x2={width - margin.right} y1={y(tick)} y2={y(tick)} />
            <text x={margin.left - 8} y={y(tick)} dy="0.32em" text-anchor="end">
              {brief(tick)}
            </text>
          </g>
        ))}
        {x.ticks.map((tick) => (
          <text key={tick} class="tick" x={x(tick)} y={height - 8} text-anchor="middle">
            {tick.toLocaleString("en")}
          </text>
        ))}
        {drawn.map((line, i) => (
          <g key={i} class={`line ${style(i, lines.length)}`}>
            <path d={linePath(line.map(({ step, loss }) => (Number.isFinite(loss) ? { x: x(step), y: y(loss) } : null)))} />
          </g>
        ))}
      </svg>
      <ul class="keys">
        {lines.map(({ name, losses }, i) => (
          <li key={i}>
            <svg class={`key ${style(i, lines.length)}`} width="28" height="8" aria-hidden="true">
              <line x1="0" x2="28" y1="4" y2="4" />
            </svg>{" "}
            {name} <b class="number">{losses.length > 0 ? brief(points(losses).at(-1)?.loss ?? NaN, 3) : ""}</b>
          </li>
        ))}
      </ul>
    </figure>
  );
}
