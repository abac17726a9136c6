// The matrices of the heads of one layer, with the scales of their colours.

import { useMemo } from "preact/hooks";
import { type Numbers, largestSize, numbersOf } from "./arrays";
import type { Picture } from "./canvas";
import { type Scale, shareScale, signScale } from "./colors";
import type { Attention, AttentionSnapshot } from "./data";
import { useDark } from "./media";

/** The largest weight of a layer: with few keys that of all steps, so that its colours are the same while the scrub moves. */
function largestWeight({ keys, snapshots }: Attention, now: AttentionSnapshot): number {
  const seen = keys.length <= 32 ? snapshots : [now];
  return Math.max(...seen.map((snapshot) => (snapshot ? largestSize(numbersOf(snapshot.weights)) : 0)));
}

/** Pictures of the heads: their weights and, if it was taken, their gradient. */
export class Heads {
  readonly size: number;
  private readonly weights: Numbers;
  private readonly gradient: Numbers | null;
  private readonly masked: Numbers | null;
  private readonly weightScale: Scale;
  private readonly gradientScale: Scale | null;

  constructor(
    private readonly attention: Attention,
    snapshot: AttentionSnapshot,
    dark: boolean,
  ) {
    this.size = attention.queries.length * attention.keys.length;
    this.weights = numbersOf(snapshot.weights);
    this.gradient = snapshot.gradient && numbersOf(snapshot.gradient);
    this.masked = attention.masked && numbersOf(attention.masked);
    this.weightScale = shareScale(largestWeight(attention, snapshot) || 1);
    this.gradientScale = this.gradient && signScale(largestSize(this.gradient), dark);
  }

  private picture(head: number, numbers: Numbers, scale: Scale): Picture {
    const { queries, keys, masked } = this.attention;
    return {
      rows: queries.length,
      columns: keys.length,
      numbers,
      offset: head * this.size,
      scale,
      masked: this.masked,
      maskedOffset: masked?.shape.length === 3 ? head * this.size : 0,
    };
  }

  weightsOf(head: number): Picture {
    return this.picture(head, this.weights, this.weightScale);
  }

  gradientOf(head: number): Picture | null {
    return this.gradient && this.gradientScale && this.picture(head, this.gradient, this.gradientScale);
  }
}

/** The heads, or null while nobody looks at them. */
export function useHeads(attention: Attention, snapshot: AttentionSnapshot, seen = true): Heads | null {
  const dark = useDark();
  return useMemo(() => (seen ? new Heads(attention, snapshot, dark) : null), [attention, snapshot, dark, seen]);
}
