// A training in the worker: what the reader chose, and what has come of it.

import { numbersOf } from "../../../report/page/src/arrays";
import { type Run, runsOf } from "../../../report/page/src/data";
import type { Answer, Core } from "./core";

export interface TrainingSettings {
  seed: number;
  lr: number;
  heads: number;
  layers: number;
  positions: boolean;
  residual: boolean;
}

export const usual: TrainingSettings = { seed: 0, lr: 0.003, heads: 4, layers: 1, positions: true, residual: true };
export const steps = 1000;

/** How the settings differ from the usual ones. */
export function nameOf(settings: TrainingSettings): string {
  const parts = [
    settings.positions ? "" : "no places",
    settings.residual ? "" : "no residual",
    settings.lr === usual.lr ? "" : `rate ${settings.lr}`,
    settings.heads === usual.heads ? "" : `${settings.heads} ${settings.heads === 1 ? "head" : "heads"}`,
    settings.layers === usual.layers ? "" : `${settings.layers} layers`,
    settings.seed === usual.seed ? "" : `seed ${settings.seed}`,
  ].filter(Boolean);
  return parts.length === 0 ? "as in the library's program" : parts.join(", ");
}

/** What has been trained so far, and what the model makes of the sentence. */
export interface State {
  /** Of the training: the worker has the last that was started. */
  number: number;
  settings: TrainingSettings;
  losses: number[];
  done: number;
  finished: boolean;
  gradNorm: number | null;
  /** Which word is hidden in `run`. */
  question: number;
  run: Run;
}

let started = 0;

function stateAfter({ number, settings, losses, question }: Pick<State, "number" | "settings" | "losses" | "question">, answer: Answer): State | null {
  if (number !== started) return null;
  if (answer.error !== undefined) throw new Error(answer.error);
  const [run] = runsOf(answer.report);
  return {
    number,
    settings,
    question,
    losses: [...losses, ...(answer.losses ?? []).map((loss) => loss ?? NaN)],
    done: answer.done ?? 0,
    finished: answer.finished ?? false,
    gradNorm: answer.grad_norm ?? null,
    run,
  };
}

/** Begins a training; null if another has begun before the reply. */
export async function start(core: Core, settings: TrainingSettings, question: number): Promise<State | null> {
  const number = ++started;
  return stateAfter({ number, settings, losses: [], question }, await core.ask({ do: "start", steps, question, ...settings }));
}

/** Goes on with the training of `state`, by no steps for another look alone; null if another has begun. */
export async function train(core: Core, state: State, count: number, question: number): Promise<State | null> {
  if (state.number !== started) return null;
  return stateAfter({ ...state, question }, await core.ask({ do: "train", steps: count, question }));
}

export interface HeadRow {
  name: string;
  weights: number[];
  /** Of the loss by the weights. */
  gradient: number[];
  /** Where the formula of the first weight is. */
  value: number;
  flat: number;
}

/** What each head of each layer looks at from one place. */
export function headRows({ run }: State, place: number): HeadRow[] {
  return run.attention.flatMap(({ heads, keys, snapshots: [snapshot], value }, layer) => {
    if (!snapshot || value === null) return [];
    const weights = numbersOf(snapshot.weights);
    const gradient = snapshot.gradient && numbersOf(snapshot.gradient);
    return Array.from({ length: heads }, (_, head) => {
      const flat = (head * keys.length + place) * keys.length;
      const row = (numbers: ArrayLike<number> | null): number[] => keys.map((_, k) => numbers?.[flat + k] ?? 0);
      return { name: run.attention.length > 1 ? `layer ${layer} head ${head}` : `head ${head}`, weights: row(weights), gradient: row(gradient), value, flat };
    });
  });
}
