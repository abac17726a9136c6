// The way back: the loss, and its gradient through the same ops.

import { useState } from "preact/hooks";
import { numbersOf } from "../../../../report/page/src/arrays";
import { valueName } from "../../../../report/page/src/formula_panel";
import { brief } from "../../../../report/page/src/numbers";
import { Bars } from "../bars";
import { Figures, type Item } from "../figures";
import { Equation, type StopProps, Task } from "../lesson_parts";
import type { Walk } from "../walk";

/** What an op does with a gradient, in words. */
const meanings: Record<string, string> = {
  cross_entropy: "The loss is −log of the share that the right word gets. Its gradient is simple: the shares, minus 1 at the right word. Only the row that is asked for has one.",
  linear: "A product with weights hands the gradient back by a product with the same weights, and gives the weights their own: gradient times what came in.",
  layer_norm: "The norm takes out of a row's gradient what would only shift or stretch the row: that it would undo anyway.",
  add: "A sum hands the same gradient to both of its parts. So it goes along a residual unchanged, past all that stands beside it.",
  relu: "Where ReLU gave 0, nothing goes back.",
  reshape: "Only cuts the rows anew; the gradient is put back together in the same way.",
  permute: "Only turns axes; the gradient is turned back.",
  matmul: "Each factor gets the gradient times the other factor.",
  softmax: "What one share gains the others lose. So each gradient of a row is compared with their mean, and a share of 0 gets none.",
  masked_fill: "What was hidden gets the gradient 0: nothing is learned about it.",
  div: "Divided on the way there, divided on the way back.",
  slice: "Rows that were not used get 0.",
  embedding: "Each row of the table gets what came back to its word, added up over all places where the word stands.",
};

/** The ops that the loss came through, from the words to the loss. */
function pathOf({ graph, snapshot }: Walk): number[] {
  return graph.values.flatMap(({ kind }, id) => (kind === "op" && snapshot.gradients[id] !== null ? [id] : []));
}

function itemsOf(walk: Walk, id: number, backward: boolean): Item[] {
  const named = (of: number, what: string): Item => ({
    name: walk.nameOf(of),
    caption: `${what}${backward ? "gradient of " : ""}${valueName(walk.graph, of)}`,
    gradient: backward,
  });
  const inputs = walk.graph.values[id].inputs.filter((input) => input !== null);
  const results = [{ ...named(id, backward ? "given: " : "gives: "), first: !backward }];
  const operands = inputs.map((input, i) => ({ ...named(input, backward ? "hands on: " : "from: "), first: backward && i === 0 }));
  return backward ? [...results, ...operands] : [...operands, ...results];
}

/** Rows of a gradient that are not all 0, in any head. */
function rowsWithGradient(walk: Walk, name: string): string[] {
  const { gradient } = walk.tensor(name);
  if (gradient === null) return [];
  const numbers = numbersOf(gradient);
  const [rows, columns] = gradient.shape.slice(-2);
  return walk.words.filter((_, row) => numbers.some((number, flat) => number !== 0 && Math.floor(flat / columns) % rows === row));
}

export function Backward({ walk, previous, settings, change }: StopProps) {
  const path = pathOf(walk);
  const [step, setStep] = useState(0);
  const [direction, setDirection] = useState<"backward" | "forward">("backward");
  const isBackward = direction === "backward";
  const at = Math.min(step, path.length - 1);
  const id = isBackward ? path[path.length - 1 - at] : path[at];
  const op = walk.graph.values[id].name;
  const [loss] = walk.numbers("loss");
  const rows = rowsWithGradient(walk, "weights");
  const rms = (name: string): number | null => {
    const { id: of } = walk.tensor(name);
    return of === null ? null : (walk.snapshot.gradient[of]?.rms ?? null);
  };
  return (
    <>
      <p>
        To learn, there must be something to get right. Take the easiest question: which word stands at this place? One more matrix makes a score for each
        word of the vocabulary, softmax makes shares of them, and the <b>loss</b> is −log of the right one's share: 0 when it is sure and right. The
        gradient of a number tells how the loss changes if that number grows a little. The chain rule computes it op by op, <b>backwards</b>, and each op needs only
        what it computed itself and what comes back to it.
      </p>
      <Equation walk={walk} terms={["logits", "=", "encoded", "·", "head.weight T", "+", "head.bias"]} />
      <Equation walk={walk} terms={["loss", "= −log softmax(", "logits", ") at the right word"]} />
      <p class="finding">
        Asked for <q>{walk.words[settings.asked]}</q>: the loss is <b data-loss>{brief(loss, 6)}</b>.
      </p>
      <Task
        task="Ask for another word. Which rows of the gradient of the attention weights are not 0?"
        done={settings.asked !== 1}
        answer={
          <>
            Only the row of the word that is asked for, here {rows.map((word) => `“${word}”`).join(", ")}: no other word's attention had a part in this guess. With a second block
            on top the others would, too. It is the first thing to look for in a real model: which of its looks mattered.
          </>
        }
      >
        <label>
          Ask for{" "}
          <select value={settings.asked} onChange={(event) => change({ asked: Number(event.currentTarget.value) })}>
            {walk.words.map((word, place) => (
              <option key={place} value={place}>
                {word} (place {place})
              </option>
            ))}
          </select>
        </label>
      </Task>
      <h3>Step by step</h3>
      <div class="controls stepper">
        <fieldset>
          <legend>Direction</legend>
          {(["backward", "forward"] as const).map((name) => (
            <label key={name}>
              <input
                type="radio"
                name="direction"
                checked={direction === name}
                onChange={() => {
                  setDirection(name);
                  setStep(path.length - 1 - at);
                }}
              />{" "}
              {name}
            </label>
          ))}
        </fieldset>
        <button type="button" disabled={at === 0} onClick={() => setStep(at - 1)}>
          Step back
        </button>
        <button type="button" disabled={at === path.length - 1} onClick={() => setStep(at + 1)}>
          Next op
        </button>
        <label class="wide">
          <input
            type="range"
            min={0}
            max={path.length - 1}
            value={at}
            aria-label="Step"
            aria-valuetext={`step ${at + 1} of ${path.length}, ${op}`}
            onInput={(event) => setStep(Number(event.currentTarget.value))}
          />
        </label>
      </div>
      <p aria-live="polite" class="step-name">
        {at + 1} of {path.length}: <b>{op}</b>, which gives {valueName(walk.graph, id)}. {isBackward && meanings[op]}
      </p>
      <Figures {...{ walk, previous, settings, change }} items={itemsOf(walk, id, isBackward)} only={direction} />
      <h3>How much comes back</h3>
      <p>How large the gradients are on the way (the root of their mean square), on a logarithmic scale.</p>
      <Bars
        label="Sizes of gradients, from the loss back to the words"
        bars={["logits", "encoded", "fed", "normed_1", "attended", "context", "weights", "scores", "Q", "K", "V", "x", "embed.weight"].map((name) => ({
          name: walk.titleOf(name),
          size: rms(name),
        }))}
      />
    </>
  );
}
