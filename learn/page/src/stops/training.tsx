// The toy encoder trains in the worker, as fast as one can follow.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { shareScale, signScale } from "../../../../report/page/src/colors";
import { FormulaPanel } from "../../../../report/page/src/formula_panel";
import { Legend } from "../../../../report/page/src/legend";
import { Matrix, type Place } from "../../../../report/page/src/matrix";
import { useDark, useReducedMotion } from "../../../../report/page/src/media";
import { brief, exact } from "../../../../report/page/src/numbers";
import { Bars } from "../bars";
import type { Core } from "../core";
import { trainingLines, trainingProgram } from "../cpp_training";
import { Cpp, Task } from "../lesson_parts";
import { type Line, LossChart } from "../loss_chart";
import { type State, type TrainingSettings, headRows, nameOf, start, steps, train, usual } from "../trainer";

interface Question {
  hidden: number;
  clue: number;
}

const rates = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];

const speeds = [
  { name: "slow", steps: 1, pause: 300 },
  { name: "medium", steps: 5, pause: 100 },
  { name: "fast", steps: 20, pause: 60 },
];

const kept = 3;

/** So many steps are asked for at once: then it can be stopped. */
const largestPart = 20;

const pause = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

export function Training({ core }: { core: Core }) {
  const reduced = useReducedMotion();
  const [questions, setQuestions] = useState<Question[]>([]);
  const [question, setQuestion] = useState(0);
  const [settings, setSettings] = useState(usual);
  const [state, setState] = useState<State | null>(null);
  const [earlier, setEarlier] = useState<Line[]>([]);
  const [running, setRunning] = useState(false);
  const [pending, setPending] = useState(0);
  const [speed, setSpeed] = useState(1);
  const [error, setError] = useState<string | null>(null);
  const latest = useRef({ question, speed });
  latest.current = { question, speed };
  /** What the worker has reached, of which `state` is what is shown. */
  const reached = useRef<State | null>(null);
  const queue = useRef(Promise.resolve(true));

  const guarded = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (reason) {
      setRunning(false);
      setError(reason instanceof Error ? reason.message : String(reason));
    }
  };

  useEffect(() => {
    void guarded(async () => setQuestions((await core.ask({ do: "questions" })).questions ?? []));
  }, [core]);

  // Other settings begin a new training; what the last one had stays as a curve.
  useEffect(() => {
    void guarded(async () => {
      const first = await start(core, settings, latest.current.question);
      if (first === null) return;
      const last = reached.current;
      if (last && last.losses.length > 20) {
        setEarlier((lines) => [...lines, { name: nameOf(last.settings), losses: last.losses }].slice(-kept));
      }
      reached.current = first;
      setState(first);
    });
  }, [core, settings]);

  /** Makes so many steps after those that are being made, and shows what came of them; whether there are more. */
  const advance = (count: number, isShown = () => true): Promise<boolean> => {
    const make = async (): Promise<boolean> => {
      const last = reached.current;
      if (last === null || last.settings !== settings) return true; // still starting
      const next = await train(core, last, count, latest.current.question);
      if (next === null) return false;
      reached.current = next;
      if (next.finished || isShown()) setState(next);
      return !next.finished;
    };
    setPending((number) => number + 1);
    queue.current = queue.current.then(make, make).finally(() => setPending((number) => number - 1));
    return queue.current;
  };

  // Before the button that stops becomes another: no step follows it.
  useLayoutEffect(() => {
    if (!running) return undefined;
    let stopped = false;
    void guarded(async () => {
      while (!stopped) {
        const { steps: count, pause: wait } = speeds[latest.current.speed];
        // Who wants no motion sees a picture a second instead.
        let left = reduced ? Math.round((count * 1000) / wait) : count;
        while (left > 0 && !stopped) {
          const part = Math.min(left, largestPart);
          left -= part;
          const more = await advance(part, () => left === 0 || stopped);
          if (!more && !stopped) setRunning(false);
          if (!more) return;
        }
        await pause(reduced ? 1000 : wait);
      }
    });
    return () => {
      stopped = true;
    };
  }, [running, settings, reduced]);

  // Another question: steps answer it along, else a look does.
  const isAsked = state?.settings !== settings || state.question === question;
  useEffect(() => {
    if (!running && !isAsked) void guarded(async () => void (await advance(0)));
  }, [running, isAsked, question]);

  const set = (part: Partial<TrainingSettings>): void => {
    setError(null);
    setSettings((last) => ({ ...last, ...part }));
  };

  const asked = state && questions[state.question];
  const lines: Line[] = [...earlier, ...(state ? [{ name: nameOf(state.settings), losses: state.losses }] : [])];
  return (
    <>
      <p>
        Now the whole thing learns. The library trains its toy encoder in this page, on more than a thousand sentences such as “his hats are red, his eyes are green”. A word of each is hidden, and it has to be
        guessed from the others: after each batch of 64 sentences all weights move a little against their gradients. It never sees the sentence below.
      </p>
      {state && asked && <Tasks {...{ state, asked, lines, set }} />}
      <div class="controls">
        <button type="button" class="primary" disabled={state === null || state.finished} onClick={() => setRunning(!running)}>
          {running ? "Stop" : "Train"}
        </button>
        <button type="button" disabled={running || state === null || state.finished} onClick={() => void guarded(async () => void (await advance(1)))}>
          One step
        </button>
        <button
          type="button"
          onClick={() => {
            setRunning(false);
            set({});
          }}
        >
          From the start
        </button>
        <label>
          Speed{" "}
          <select value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
            {speeds.map(({ name }, i) => (
              <option key={name} value={i}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <span class="number" data-steps aria-busy={pending > 0}>
          step {state?.done ?? 0} of {steps.toLocaleString("en")}
        </span>
      </div>
      <div class="controls">
        <label>
          Learning rate{" "}
          <input
            type="range"
            min={0}
            max={rates.length - 1}
            value={rates.indexOf(settings.lr)}
            aria-valuetext={String(settings.lr)}
            onInput={(event) => set({ lr: rates[Number(event.currentTarget.value)] })}
          />{" "}
          <span class="number">{settings.lr}</span>
        </label>
        <label>
          Heads{" "}
          <input
            type="range"
            min={0}
            max={3}
            value={Math.log2(settings.heads)}
            aria-valuetext={String(settings.heads)}
            onInput={(event) => set({ heads: 2 ** Number(event.currentTarget.value) })}
          />{" "}
          <span class="number">{settings.heads}</span>
        </label>
        <label>
          Layers{" "}
          <input
            type="range"
            min={0}
            max={3}
            value={Math.log2(settings.layers)}
            aria-valuetext={String(settings.layers)}
            onInput={(event) => set({ layers: 2 ** Number(event.currentTarget.value) })}
          />{" "}
          <span class="number">{settings.layers}</span>
        </label>
        <label>
          Seed <input type="range" min={0} max={9} value={settings.seed} onInput={(event) => set({ seed: Number(event.currentTarget.value) })} />{" "}
          <span class="number">{settings.seed}</span>
        </label>
        <label>
          <input type="checkbox" checked={settings.positions} onChange={(event) => set({ positions: event.currentTarget.checked })} /> Places
        </label>
        <label>
          <input type="checkbox" checked={settings.residual} onChange={(event) => set({ residual: event.currentTarget.checked })} /> Residual
        </label>
      </div>
      {error !== null && <p role="alert">{error}</p>}
      {state && asked && <Results {...{ state, questions, lines }} look={setQuestion} />}
      <Cpp lines={trainingLines(settings)} program={() => trainingProgram(settings)} />
    </>
  );
}

const presets: { name: string; part: Partial<TrainingSettings> }[] = [
  { name: "Rate 0.1", part: { lr: 0.1 } },
  { name: "8 layers", part: { layers: 8 } },
  { name: "8 layers, no residual", part: { layers: 8, residual: false } },
  { name: "No places", part: { positions: false } },
  { name: "As it was", part: {} },
];

/** From this step on a training that goes well is below this loss. */
const late = 300;
const high = 0.5;

function isBroken({ losses }: Line): boolean {
  return losses.length >= late && !(mean(losses.slice(-20)) < high);
}

interface TasksProps {
  state: State;
  asked: Question;
  lines: Line[];
  set: (part: Partial<TrainingSettings>) => void;
}

function Tasks({ state, asked: { hidden, clue }, lines, set }: TasksProps) {
  const rows = headRows(state, hidden);
  const best = Math.max(...rows.map(({ weights }) => weights[clue]));
  const found = useRef(false);
  found.current ||= best > 0.5;
  const broken = useRef(new Set<string>());
  for (const line of lines) if (isBroken(line)) broken.current.add(line.name);
  return (
    <div class="tasks">
      <Task
        task={
          <>
            Train. When does a head begin to look from the hidden word at its clue, <q>{state.run.attention[0].keys[clue]}</q>? The best one gives it{" "}
            {(100 * best).toFixed(1)} % now.
          </>
        }
        done={found.current}
        answer="Nobody told it that adjectives belong to nouns, nor where they stand. The gradient of the attention shows how it comes about: where it is purple, more weight would lower the loss, and there the share grows. As it grows the loss falls, and the gradient fades."
      />
      <Task
        task={`Break it: bring about a loss that is above ${high} after ${late} steps. What is each part there for?`}
        done={broken.current.size > 0}
        answer={
          <>
            {broken.current.size > 0 && <>You did it: {[...broken.current].join("; ")}. </>}
            With a <b>rate</b> that is too high each step jumps over what it aims at; attention becomes all or nothing, and a share of 0 or 1 hands no
            gradient back. With one that is too low the loss does fall, but {late} steps do not get far. Without the <b>residual</b> eight layers learn
            nothing: what comes back to the words, below, is less than a millionth, where with it they learn like one. Without <b>places</b> it learns all the
            same, but has to find out by elimination which of two adjectives is without its noun: see where it looks.
          </>
        }
      >
        {presets.map(({ name, part }) => (
          <button key={name} type="button" onClick={() => set({ ...usual, ...part })}>
            {name}
          </button>
        ))}
      </Task>
    </div>
  );
}

interface ResultsProps {
  state: State;
  questions: Question[];
  look: (question: number) => void;
  lines: Line[];
}

function Results({ state, questions, look, lines }: ResultsProps) {
  const { run, question } = state;
  const { hidden, clue } = questions[question];
  const rows = headRows(state, hidden);
  const right = run.predictions.filter(({ truth, snapshots: [snapshot] }) => snapshot?.answers[0].label === truth).length;
  const truth = (place: number): string => run.predictions[questions.findIndex((other) => other.hidden === place)]?.truth ?? "are";
  return (
    <>
      <div class="training">
        <LossChart lines={lines} steps={steps} />
        <Attention state={state} hidden={hidden} clue={clue} rows={rows} />
      </div>
      <h3>
        {right} of {questions.length} guesses are right
      </h3>
      <p class="quiet">Choose the word to hide. Its guess, its attention and its gradient are what you see.</p>
      <ul class="guesses">
        {run.predictions.map(({ truth: word, snapshots: [snapshot] }, i) => {
          const [guess] = snapshot?.answers ?? [];
          return (
            <li key={i}>
              <button type="button" aria-pressed={i === question} onClick={() => look(i)}>
                {sentence(run.attention[0].keys.length, questions[i].hidden, truth)}
              </button>{" "}
              {guess && (
                <span class={guess.label === word ? "right" : "wrong"}>
                  <b>{guess.label}</b> {guess.probability === null ? "" : `${(100 * guess.probability).toFixed(1)} %`} {guess.label === word ? "✓" : `✗, it is ${word}`}
                </span>
              )}
            </li>
          );
        })}
      </ul>
      <h3>How much gradient each part gets</h3>
      <Bars label="Sizes of the parameters' gradients" bars={gradientBars(state)} />
    </>
  );
}

function mean(numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

function sentence(length: number, hidden: number, truth: (place: number) => string): string {
  return Array.from({ length }, (_, place) => (place === hidden ? "____" : truth(place))).join(" ");
}

/** The gradients of matrices: from the words to the guess. */
function gradientBars({ run: { graphs } }: State): { name: string; size: number | null }[] {
  const [{ values, snapshots }] = graphs;
  const found = values.flatMap(({ kind, name, shape }, id) =>
    kind === "parameter" && shape.length === 2 ? [{ name: name.replace(/(\.pos_embedding)?\.weight$/, ""), size: snapshots[0]?.gradient[id]?.rms ?? null }] : [],
  );
  const order = (name: string): number => (name.startsWith("token_head") ? 2 : name.startsWith("layers") ? 1 : 0);
  return found.sort((a, b) => order(a.name) - order(b.name));
}

function Attention({ state, hidden, clue, rows }: { state: State; hidden: number; clue: number; rows: ReturnType<typeof headRows> }) {
  const dark = useDark();
  const [cursor, setCursor] = useState<Place>([0, clue]);
  const { keys } = state.run.attention[0];
  const place: Place = [Math.min(cursor[0], rows.length - 1), cursor[1]];
  const chosen = rows[place[0]];
  const [graph] = state.run.graphs;
  const [snapshot] = graph.snapshots;
  const all = (part: "weights" | "gradient"): Float32Array => Float32Array.from(rows.flatMap((row) => row[part]));
  const gradient = all("gradient");
  const pictures = [
    { title: "weights", caption: "Weights", numbers: all("weights"), scale: shareScale(1) },
    { title: "gradient", caption: "Gradient of the loss by them", numbers: gradient, scale: signScale(gradient.reduce((a, b) => Math.max(a, Math.abs(b)), 0), dark) },
  ];
  return (
    <div class="attention">
      <h3>What each head looks at from the hidden word</h3>
      {pictures.map(({ title, caption, numbers, scale }) => (
        <figure key={title}>
          <figcaption>
            {caption} <Legend scale={scale} />
          </figcaption>
          <Matrix
            name={`${caption}, from place ${hidden}`}
            picture={{ rows: rows.length, columns: keys.length, numbers, offset: 0, scale }}
            rowNames={rows.map(({ name }) => name)}
            columnNames={keys.map((key, k) => (k === clue ? `→ ${key}` : key))}
            cursor={place}
            setCursor={setCursor}
          />
        </figure>
      ))}
      <p class="readout">
        {chosen.name}, from <q>[MASK]</q> to <q>{keys[place[1]]}</q>: weight <b data-exact="weights">{exact(chosen.weights[place[1]], "f32")}</b>, gradient{" "}
        <b data-exact="gradient">{exact(chosen.gradient[place[1]], "f32")}</b>
        {state.gradNorm !== null && <span class="quiet">. The norm of all gradients of the last batch was {brief(state.gradNorm)}</span>}
      </p>
      {snapshot && (
        <details>
          <summary>The formula of this weight and of its gradient</summary>
          <FormulaPanel graph={graph} snapshot={snapshot} cell={{ id: chosen.value, flat: chosen.flat + place[1] }} />
        </details>
      )}
    </div>
  );
}
