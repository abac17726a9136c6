// The page: one stop at a time, in the order of the lesson.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Core } from "./core";
import { walkLines, walkProgram } from "./cpp_walk";
import { Cpp } from "./lesson_parts";
import { Backward } from "./stops/backward";
import { Training } from "./stops/training";
import { type WalkStop, walkStops } from "./stops/walk_stops";
import { useWalk } from "./use_walk";
import { type Settings, notebook, symbolOf } from "./walk";

type Stop = WalkStop | { id: "training"; title: string; question: string; Body: null };

const stops: Stop[] = [
  ...walkStops,
  { id: "backward", title: "Backward", question: "How does it learn from a mistake?", Body: Backward },
  { id: "training", title: "Training", question: "What does it find out by itself?", Body: null },
];

/** One head up to the stop that adds others. */
const firstWithHeads = stops.findIndex(({ id }) => id === "heads");

function stopOfAddress(): number {
  return Math.max(0, stops.findIndex(({ id }) => `#${id}` === location.hash));
}

/** The number of the stop, which is the address's. */
function useStop(): number {
  const [stop, setStop] = useState(stopOfAddress);
  useEffect(() => {
    const update = (): void => setStop(stopOfAddress());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return stop;
}

/** What the reader has changed, in words. */
function changesOf(settings: Settings): string[] {
  return [
    settings.sentence === notebook.sentence ? "" : "the sentence",
    settings.d_model === notebook.d_model ? "" : `d_model ${settings.d_model}`,
    settings.heads === null ? "" : `heads ${settings.heads}`,
    settings.positions ? "" : "no places",
    settings.residual ? "" : "no residual",
    settings.hidden.length === 0 ? "" : `${settings.hidden.length} hidden`,
    ...settings.edits.map(({ parameter, index, value }) => `${symbolOf(parameter)}[${index}] = ${value.toPrecision(3)}`),
  ].filter(Boolean);
}

export function App({ core }: { core: Core }) {
  const number = useStop();
  const [settings, setSettings] = useState(notebook);
  const change = (part: Partial<Settings>): void => setSettings((last) => ({ ...last, ...part }));
  const { id, title, question, Body } = stops[number];
  const heads = settings.heads ?? (number < firstWithHeads ? 1 : 2);
  const { walk, previous, error, pending } = useWalk(core, settings, heads, id);
  const heading = useRef<HTMLHeadingElement>(null);
  const isFirst = useRef(true);
  // Who goes to another stop reads it from its heading.
  useEffect(() => {
    document.title = `${title}: attention, number by number`;
    if (!isFirst.current) {
      scrollTo(0, 0);
      heading.current?.focus();
    }
    isFirst.current = false;
  }, [id]);
  useEffect(() => {
    if (walk) document.documentElement.dataset.ready = "";
  }, [walk]);
  const changes = changesOf(settings);
  return (
    <>
      <header class="headline">
        <h1>Attention, number by number</h1>
        {number === 0 && (
          <p class="lead">
            An interactive lesson: ten short stops from a sentence to a network that has learned something about it, and all the way back. You need to know
            what a product of two matrices is, and no more. Every number here is computed by the C++ library xgrad itself, again whenever you change something; choose one to
            see where it comes from.
          </p>
        )}
      </header>
      <div class="bar-top">
        <nav aria-label="Stops">
          <ol class="stops">
            {stops.map((stop, i) => (
              <li key={stop.id}>
                <a href={`#${stop.id}`} aria-current={i === number ? "step" : undefined}>
                  {i + 1}. {stop.title}
                </a>
              </li>
            ))}
          </ol>
        </nav>
      </div>
      <main>
        <section class="part" aria-labelledby="question" data-pending={Body && pending ? "" : undefined}>
          <h2 id="question" ref={heading} tabIndex={-1}>
            {number + 1}. {question}
          </h2>
          {Body && (
            <p class="whose" role="status">
              {changes.length === 0 ? (
                id === "backward" ? "The block is the notebook's; the guess and its loss are added here." : "All numbers are those of the notebook of the encoder block."
              ) : (
                <>
                  You changed: {changes.join(", ")}.{" "}
                  <button type="button" class="link" onClick={() => setSettings(notebook)}>
                    Back to the notebook's
                  </button>
                </>
              )}
            </p>
          )}
          {error !== null && Body && <p role="alert">{error}</p>}
          {Body === null && <Training core={core} />}
          {Body && walk === null && error === null && <p>The library starts …</p>}
          {Body && walk && (
            <>
              <Body key={id} {...{ walk, previous, settings, change }} />
              {error === null && (
                <Cpp key={`${id} cpp`} lines={walkLines(settings, heads).get(id)?.join("\n") ?? ""} program={() => walkProgram(settings, heads)} />
              )}
            </>
          )}
          <nav class="turn" aria-label="To the next stop">
            {number > 0 && (
              <a href={`#${stops[number - 1].id}`} rel="prev">
                ← {stops[number - 1].question}
              </a>
            )}
            {number + 1 < stops.length && (
              <a href={`#${stops[number + 1].id}`} rel="next">
                {stops[number + 1].question} →
              </a>
            )}
          </nav>
        </section>
      </main>
      <footer>
        <p>This file is all of it: it loads nothing and sends nothing. The numbers of a chosen place have the bits that the library computed, others are rounded.</p>
      </footer>
    </>
  );
}
