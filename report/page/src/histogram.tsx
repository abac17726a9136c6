// A histogram as bars.

import type { Histogram } from "./data";
import { brief, statistic } from "./numbers";

const height = 64;

export function HistogramFigure({ title, histogram }: { title: string; histogram: Histogram | null }) {
  if (histogram === null) {
    return (
      <figure class="histogram">
        <figcaption>{title}</figcaption>
        <p class="quiet">None at this step.</p>
      </figure>
    );
  }
  const { counts, min, max } = histogram;
  const most = Math.max(1, ...counts);
  const rows: [string, string][] = [
    ["mean", statistic(histogram, "mean")],
    ["rms", statistic(histogram, "rms")],
    ["norm", statistic(histogram, "norm")],
    ["least", statistic(histogram, "min")],
    ["largest", statistic(histogram, "max")],
  ];
  if (histogram.nonfinite > 0) rows.push(["not finite", String(histogram.nonfinite)]);
  return (
    <figure class="histogram">
      <figcaption>{title}</figcaption>
      <svg
        viewBox={`0 0 ${Math.max(1, counts.length)} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Histogram of the ${title} from ${statistic(histogram, "min")} to ${statistic(histogram, "max")}; the largest of ${counts.length} bins has ${most} elements`}
      >
        {counts.map((count, bin) => {
          const size = (count / most) * height;
          return <rect key={bin} x={bin + 0.06} width={0.88} y={height - size} height={size} />;
        })}
      </svg>
      <p class="ends" aria-hidden="true">
        <span>{min === null ? "" : brief(min)}</span>
        <span>{max === null ? "" : brief(max)}</span>
      </p>
      <dl>
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="number">{value}</dd>
          </div>
        ))}
      </dl>
    </figure>
  );
}
