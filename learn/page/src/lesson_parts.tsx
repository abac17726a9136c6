// What every stop is made of: an equation with shapes, something to do with its answer, and the same in C++.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { shapeText } from "../../../report/page/src/shapes";
import { type Settings, type Walk, symbolOf } from "./walk";

/** What a stop about the walk gets. */
export interface StopProps {
  walk: Walk;
  previous: Walk | null;
  settings: Settings;
  change: (part: Partial<Settings>) => void;
}

/** "x", "·", "W_Q.weight T": a tensor gets its shape beneath, and a T after a blank transposes it. */
export function Equation({ walk, terms }: { walk: Walk; terms: string[] }) {
  return (
    <p class="equation">
      {terms.map((term, i) => {
        const [name, transposed] = term.split(" ");
        if (!walk.has(name)) return <span key={i}>{term}</span>;
        const { shape } = walk.tensor(name).value;
        const shown = transposed ? [...shape.slice(0, -2), ...shape.slice(-2).reverse()] : shape;
        return (
          <span key={i} class="symbol">
            <i>
              {symbolOf(name)}
              {transposed && <sup>T</sup>}
            </i>
            <small>{shapeText(shown)}</small>
          </span>
        );
      })}
    </p>
  );
}

interface TaskProps {
  /** What there is to do, in a sentence. */
  task: ComponentChildren;
  done: boolean;
  /** What to see then. */
  answer: ComponentChildren;
  children?: ComponentChildren;
}

export function Task({ task, done, answer, children }: TaskProps) {
  const [shown, setShown] = useState(false);
  return (
    <div class={`task${done ? " done" : ""}`}>
      <p>
        <b>Do it:</b> {task}
      </p>
      {children && <div class="controls">{children}</div>}
      <div role="status">
        {(done || shown) && (
          <p class="answer">
            {done && <b>Done. </b>}
            {answer}
          </p>
        )}
      </div>
      {!done && !shown && (
        <button type="button" onClick={() => setShown(true)}>
          Show the answer
        </button>
      )}
    </div>
  );
}

/** Lines of a program, and a button for all of it. */
export function Cpp({ lines, program }: { lines: string; program: () => string }) {
  const [copied, setCopied] = useState("");
  const copy = (): void => {
    const clipboard = navigator.clipboard as Clipboard | undefined;
    (clipboard?.writeText(program()) ?? Promise.reject(new Error("no clipboard"))).then(
      () => setCopied("Copied: save it as examples/lesson.cpp of a clone, and run ./run.sh lesson."),
      () => setCopied("This browser does not let a page copy; the whole program is below."),
    );
  };
  return (
    <details class="cpp">
      <summary>The same in C++</summary>
      <pre tabIndex={0} aria-label="Lines of C++">
        <code>{lines}</code>
      </pre>
      <p class="tools">
        <button type="button" onClick={copy}>
          Copy the whole program
        </button>{" "}
        <span role="status">{copied}</span>
      </p>
      {copied.startsWith("This") && (
        <pre class="whole" tabIndex={0} aria-label="The whole program">
          <code>{program()}</code>
        </pre>
      )}
    </details>
  );
}
