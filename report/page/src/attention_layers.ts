// The layers of attention that read an example: what they are called, and what each run has of them at a step.

import type { Attention, AttentionSnapshot, Run } from "./data";
import { snapshotAt } from "./notches";

/** What a run has of a layer, and of which step. */
export interface Shown {
  attention: Attention;
  snapshot: AttentionSnapshot;
  step: number;
}

export interface Layer {
  name: string;
  /** Of each run. */
  shown: (Shown | null)[];
}

/** The layers of a run by the names of their modules, numbered from 0 where several have the same or none. */
export function namedLayers(run: Run, example: string): { name: string; attention: Attention }[] {
  const layers = run.attention.filter((attention) => attention.example === example);
  return layers.map((attention) => {
    const { module } = attention;
    const alike = layers.filter((layer) => layer.module === module);
    const number = alike.length > 1 ? ` ${alike.indexOf(attention)}` : "";
    return { attention, name: module === "" ? `attention${number}` : module + (number && `, call${number}`) };
  });
}

/** Layers with the same name are the same in all runs. */
export function layersAt(runs: Run[], example: string, step: number): Layer[] {
  const layers = new Map<string, Layer>();
  runs.forEach((run, index) => {
    for (const { name, attention } of namedLayers(run, example)) {
      const found = snapshotAt(run, step, attention.snapshots);
      if (!found) continue;
      const layer = layers.get(name) ?? { name, shown: runs.map(() => null) };
      layer.shown[index] = { attention, ...found };
      layers.set(name, layer);
    }
  });
  return [...layers.values()];
}
