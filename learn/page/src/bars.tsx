// Sizes of gradients as bars, a factor of ten for every equal length.

import { brief } from "../../../report/page/src/numbers";

export interface Bar {
  name: string;
  size: number | null;
}

const lowest = -8; // powers of ten
const highest = 1;

export function Bars({ bars, label }: { bars: Bar[]; label: string }) {
  const share = (size: number): number => Math.max(0, Math.min(1, (Math.log10(size) - lowest) / (highest - lowest)));
  return (
    <ul class="gradient-bars" aria-label={label}>
      {bars.map(({ name, size }) => (
        <li key={name}>
          <span class="name">{name}</span>
          <span class="track-of-bar" aria-hidden="true">
            <i style={{ width: `${size ? 100 * share(size) : 0}%` }} />
          </span>
          <span class="number">{size === null ? "none" : brief(size, 3)}</span>
        </li>
      ))}
    </ul>
  );
}
