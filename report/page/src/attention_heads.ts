// The matrices of the heads of one layer, with the scales of their colours.

import { useMemo } from "preact/hooks";
import { type Numbers, largestSize, numbersOf } from "./arrays";
import type { Layer, Shown } from "./attention_layers";
import type { Picture } from "./canvas";
import { type Scale, shareScale, signScale } from "./colors";
import type { Attention } from "./data";
import { useDark } from "./media";

/** The largest weight of a layer: with few keys that of all steps, so that its colours are the same while the scrub moves. */
function largestWeight({ attention: { keys, snapshots }, snapshot: now }: Shown): number {
  const seen = keys.length <= 32 ? snapshots : [now];
  return Math.max(...seen.map((snapshot) => (snapshot ? largestSize(numbersOf(snapshot.weights)) : 0)));
}

function largestGradient({ snapshot: { gradient } }: Shown): number {
  return gradient ? largestSize(numbersOf(gradient)) : 0;
}

/** Pictures of the heads of a run: their weights and, if it was taken, their gradient, in colours that all runs share. */
export class Heads {
  readonly size: number;
  private readonly attention: Attention;
  private readonly weights: Numbers;
  private readonly gradient: Numbers | null;
  private readonly masked: Numbers | null;
  private readonly weightScale: Scale;
  private readonly gradientScale: Scale;

  constructor({ attention, snapshot }: Shown, layer: Layer, dark: boolean) {
    this.attention = attention;
    this.size = attention.queries.length * attention.keys.length;
    this.weights = numbersOf(snapshot.weights);
    this.gradient = snapshot.gradient && numbersOf(snapshot.gradient);
    this.masked = attention.masked && numbersOf(attention.masked);
    const ofAll = (largest: (shown: Shown) => number): number => Math.max(...layer.shown.map((shown) => (shown ? largest(shown) : 0)));
    this.weightScale = shareScale(ofAll(largestWeight) || 1);
    this.gradientScale = signScale(ofAll(largestGradient), dark);
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
    return this.gradient && this.picture(head, this.gradient, this.gradientScale);
  }
}

/** The heads, or null while nobody looks at them. */
export function useHeads(shown: Shown, layer: Layer, seen = true): Heads | null {
  const dark = useDark();
  return useMemo(() => (seen ? new Heads(shown, layer, dark) : null), [shown, layer, dark, seen]);
}
