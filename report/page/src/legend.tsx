// What the colours of a scale stand for.

import { type Scale, colorOf, css } from "./colors";
import { brief } from "./numbers";

export function Legend({ scale }: { scale: Scale }) {
  const shares = [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1];
  const colors = shares.map((share) => css(colorOf(scale, scale.low + share * (scale.high - scale.low))));
  return (
    <span class="legend">
      <span class="number">{brief(scale.low)}</span>
      <i aria-hidden="true" style={{ background: `linear-gradient(to right, ${colors.join(", ")})` }} />
      <span class="number">{brief(scale.high)}</span>
    </span>
  );
}
