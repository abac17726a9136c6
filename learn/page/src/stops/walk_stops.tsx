// The stops that walk forward through the block.

import type { ComponentChildren } from "preact";
import { Figures, type Item } from "../figures";
import { Equation, type StopProps, Task } from "../lesson_parts";
import { type Walk, wordsOf } from "../walk";

export interface WalkStop {
  id: string;
  title: string;
  question: string;
  Body: (props: StopProps) => ComponentChildren;
}

const item = (name: string, caption: string, more: Partial<Item> = {}): Item => ({ name, caption, ...more });

/** Places whose rows of a tensor have the same numbers, as "my and my". */
function equalRows(walk: Walk, name: string): string[][] {
  const groups = new Map<string, number[]>();
  walk.words.forEach((_, place) => {
    const key = walk.row(name, place).join();
    groups.set(key, [...(groups.get(key) ?? []), place]);
  });
  return [...groups.values()].filter((places) => places.length > 1).map((places) => places.map((place) => `row ${place} (${walk.words[place]})`));
}

function listed(groups: string[][]): string {
  return groups.map((group) => group.join(" = ")).join("; ");
}

function Words({ walk, previous, settings, change }: StopProps) {
  const same = equalRows(walk, "embedded");
  return (
    <>
      <p>
        A network computes with numbers, so each word becomes some. First the sentence is cut into words, called <b>tokens</b>. Each different
        word gets a number of its own, its <b>id</b>. Then a table gives each id a row of {walk.tensor("embedded").value.shape[1]} numbers: the
        word's <b>embedding</b>. Nobody chooses these numbers. They are random now, and training will change them.
      </p>
      <Equation walk={walk} terms={["embedded", "=", "rows of", "embed.weight", "at", "ids"]} />
      <Task
        task="Change the sentence until no two rows are the same."
        done={same.length === 0}
        answer="Only a word that comes twice gives the same row twice: the table looks at nothing but the id, neither at the place nor at the neighbours. All that follows on this page is about how the neighbours get in."
      >
        <SentenceField settings={settings} change={change} />
      </Task>
      {same.length > 0 && <p class="finding">The same now: {listed(same)}.</p>}
      <Figures
        {...{ walk, previous, settings, change }}
        items={[item("ids", "ids"), item("embed.weight", "the table, a row for each different word"), item("embedded", "the words' rows", { first: true })]}
        only="forward"
      />
    </>
  );
}

function SentenceField({ settings, change }: Pick<StopProps, "settings" | "change">) {
  return (
    <label class="wide">
      Sentence{" "}
      <input
        type="text"
        value={settings.sentence}
        maxLength={120}
        onInput={(event) => {
          const sentence = event.currentTarget.value;
          const count = wordsOf(sentence).length;
          change({
            sentence,
            edits: settings.edits.filter(({ parameter }) => !/^(embed|head)\./.test(parameter)),
            hidden: settings.hidden.filter((place) => place < count),
            asked: Math.max(0, Math.min(settings.asked, count - 1)),
          });
        }}
      />
    </label>
  );
}

function Places({ walk, previous, settings, change }: StopProps) {
  const same = equalRows(walk, "x");
  return (
    <>
      <p>
        “My shoes are small” and “small are my shoes” have the same words. What tells them apart is the place of each word, so each <b>place</b>,
        too, has a row of numbers. It is added to the row of the word that stands there.
      </p>
      <Equation walk={walk} terms={settings.positions ? ["x", "=", "embedded", "+", "first rows of", "positions.weight"] : ["x", "=", "embedded"]} />
      <Task
        task="Take the places away. Which rows are the same then?"
        done={!settings.positions}
        answer={
          <>
            {same.length > 0 ? `Now ${listed(same)}. ` : "In this sentence no word comes twice, so all rows still differ. "}
            Without places the block sees a bag of words, not a sentence: it could not tell whose shoes are small. Put them back before you go on.
          </>
        }
      >
        <label>
          <input type="checkbox" checked={settings.positions} onChange={(event) => change({ positions: event.currentTarget.checked })} /> Add the
          places
        </label>
      </Task>
      <Figures
        {...{ walk, previous, settings, change }}
        items={[item("embedded", "the words"), ...(settings.positions ? [item("positions.weight", "the places")] : []), item("x", "x, what goes into the block", { first: true })]}
        only="forward"
      />
    </>
  );
}

function Projections({ walk, previous, settings, change }: StopProps) {
  const columns = [...new Set(settings.edits.filter(({ parameter }) => parameter === "W_Q.weight").map(({ index }) => Math.floor(index / settings.d_model)))];
  return (
    <>
      <p>
        Every word makes three rows of its own row of x, each by a product with a matrix. The <b>query</b> says what the word looks for. The{" "}
        <b>key</b> says what it has to offer to others who look. The <b>value</b> is what they get from it. Nothing but the three matrices makes the
        difference: they are learned.
      </p>
      <div class="equations">
        {["Q", "K", "V"].map((name) => (
          <Equation key={name} walk={walk} terms={[name, "=", "x", "·", `W_${name}.weight T`]} />
        ))}
      </div>
      <Task
        task="Choose a number of W_Q and change it. Which numbers of Q follow?"
        done={columns.length > 0}
        answer={
          columns.length > 0
            ? `One column of Q for every row of W_Q that you changed, here ${columns.length === 1 ? "column" : "columns"} ${columns.sort().join(", ")}, and in it the number of each word. K and V stay as they are.`
            : "One column of Q changes, in the row of each word: the one with the number of the changed row of W_Q. K and V stay as they are."
        }
      />
      <Figures
        {...{ walk, previous, settings, change }}
        items={[
          item("W_Q.weight", "W_Q, weights"),
          item("W_K.weight", "W_K, weights"),
          item("W_V.weight", "W_V, weights"),
          item("Q", "Q, queries", { first: true }),
          item("K", "K, keys"),
          item("V", "V, values"),
        ]}
        only="forward"
      />
    </>
  );
}

/** Which words nobody may look at. */
function Hiding({ walk, settings, change }: Pick<StopProps, "walk" | "settings" | "change">) {
  return (
    <fieldset>
      <legend>Hide from all</legend>
      {walk.words.map((word, place) => {
        const isHidden = settings.hidden.includes(place);
        return (
          <label key={place}>
            <input
              type="checkbox"
              checked={isHidden}
              disabled={!isHidden && settings.hidden.length === walk.words.length - 1}
              onChange={() => change({ hidden: isHidden ? settings.hidden.filter((other) => other !== place) : [...settings.hidden, place].sort((a, b) => a - b) })}
            />{" "}
            {word}
          </label>
        );
      })}
    </fieldset>
  );
}

function Scores({ walk, previous, settings, change }: StopProps) {
  return (
    <>
      <p>
        How well does the query of one word fit the key of another? Multiply them number by number and add up: that is one entry of a product of
        matrices. All of them together make a table, with a row for each word that looks and a column for each word that is looked at. Dividing by
        the square root of the queries' length keeps the numbers from growing with it.
      </p>
      <Equation walk={walk} terms={["scores", "=", "q", "·", "k T", "/ √", String(walk.tensor("q").value.shape[2])]} />
      <Task
        task="A sentence is often filled up with blanks that nobody shall look at. Hide a word: what becomes of its scores?"
        done={settings.hidden.length > 0}
        answer="Its whole column becomes −∞ (striped), for every word that looks, itself included. Its row stays: it may still look at others. The next step turns −∞ into exactly 0."
      >
        <Hiding {...{ walk, settings, change }} />
      </Task>
      <Figures {...{ walk, previous, settings, change }} items={[item("q", "queries"), item("k", "keys"), item("scores", "scores: who looks at whom", { first: true })]} only="forward" />
    </>
  );
}

function Softmax({ walk, previous, settings, change }: StopProps) {
  const { words } = walk;
  const from = Math.min(1, words.length - 1);
  const to = Math.min(3, words.length - 1);
  const share = walk.row("weights", from)[to];
  return (
    <>
      <p>
        Scores become <b>shares</b>: each is put into the exponential function, which makes it positive and large ones much larger, and divided by
        the sum of its row. So each row adds up to 1. With these shares a word mixes the values of all words; the mixture is its <b>context</b>.
      </p>
      <div class="equations">
        <Equation walk={walk} terms={["weights", "=", "softmax of each row of", "scores"]} />
        <Equation walk={walk} terms={["context", "=", "weights", "·", "v"]} />
      </div>
      <Task
        task={
          <>
            Make <q>{words[from]}</q> give more than half of its attention to <q>{words[to]}</q>. It is {(100 * share).toFixed(1)} % now{walk.heads > 1 && ", in head 0"}. Hide words, or
            change weights.
          </>
        }
        done={share > 0.5}
        answer={
          <>
            A score that is larger than {words.length - 1} equal others by {Math.log(Math.max(1, words.length - 1)).toFixed(2)} gets half. Hiding words does it by −∞:
            what they had is shared among those that are left. The sum stays 1. The context moves towards the value of <q>{words[to]}</q>.
          </>
        }
      >
        <Hiding {...{ walk, settings, change }} />
      </Task>
      <Figures
        {...{ walk, previous, settings, change }}
        items={[item("scores", "scores"), item("weights", "weights: shares of attention", { shares: true, first: true }), item("v", "values"), item("context", "context"), item("W_Q.weight", "W_Q, weights")]}
        only="forward"
      />
    </>
  );
}

function divisors(of: number): number[] {
  return Array.from({ length: of }, (_, i) => i + 1).filter((i) => of % i === 0);
}

function Heads({ walk, previous, settings, change }: StopProps) {
  const { heads } = walk;
  return (
    <>
      <p>
        One row of shares can look in one direction only. So the numbers of Q, K and V are cut into groups, <b>heads</b>, each of which attends on its
        own with its {settings.d_model / heads} of the {settings.d_model} numbers. Their contexts are joined again side by side, and one more matrix
        mixes them.
      </p>
      <Equation walk={walk} terms={["attended", "=", "joined", "·", "out_proj.weight T"]} />
      <Task
        task="Try other numbers of heads, and of numbers for a word (d_model). Which shapes change, and which do not?"
        done={settings.heads !== null || settings.d_model !== 4}
        answer={`The weights have a table for each head, now ${walk.tensor("weights").value.shape.join(" × ")}, and each head has fewer numbers to compare. What goes in and what comes out keep one shape, ${walk.tensor("attended").value.shape.join(" × ")}, whatever the heads: so the rest of the block does not need to know.`}
      >
        <label>
          Heads{" "}
          <select value={heads} onChange={(event) => change({ heads: Number(event.currentTarget.value) })}>
            {divisors(settings.d_model).map((count) => (
              <option key={count}>{count}</option>
            ))}
          </select>
        </label>
        <label>
          Numbers for a word, d_model{" "}
          <select
            value={settings.d_model}
            onChange={(event) => {
              const d_model = Number(event.currentTarget.value);
              change({ d_model, heads: d_model % heads === 0 ? heads : 1, edits: [] });
            }}
          >
            {[2, 4, 6, 8].map((size) => (
              <option key={size}>{size}</option>
            ))}
          </select>
        </label>
      </Task>
      <Figures
        {...{ walk, previous, settings, change }}
        items={[item("weights", "weights of a head", { shares: true }), item("context", "context of a head"), item("joined", "joined"), item("out_proj.weight", "out_proj, weights"), item("attended", "attended", { first: true })]}
        only="forward"
      />
    </>
  );
}

/** The mean distance between rows of a tensor. */
function spread(walk: Walk, name: string): number {
  const rows = walk.words.map((_, place) => walk.row(name, place));
  const distances = rows.flatMap((a, i) => rows.slice(i + 1).map((b) => Math.hypot(...a.map((number, k) => number - b[k]))));
  return distances.reduce((sum, distance) => sum + distance, 0) / Math.max(1, distances.length);
}

function Norm({ walk, previous, settings, change }: StopProps) {
  return (
    <>
      <p>
        What attention gives is <b>added</b> to what came in, so that nothing of the word itself is lost and only the news has to be learned. This
        detour is the residual connection. Then each row is <b>normed</b>: its mean is taken away and it is divided by its spread. So numbers stay of one size however many
        layers follow.
      </p>
      <Equation walk={walk} terms={["normed_1", "=", "norm of each row of", ...(settings.residual ? ["x", "+"] : []), "attended"]} />
      <Task
        task="Take the residual away. How different are the words' rows then, before the norm?"
        done={!settings.residual}
        answer={`Two rows of attended are ${spread(walk, "attended").toFixed(3)} apart on average, two of x ${spread(walk, "x").toFixed(3)}. Every word looks at much the same words here, so what attention gives is much the same for all; the words themselves are in x. One layer can live without a residual; eight learn nothing then, as the last stop lets you try. Put it back before you go on.`}
      >
        <label>
          <input type="checkbox" checked={settings.residual} onChange={(event) => change({ residual: event.currentTarget.checked })} /> Residual
        </label>
      </Task>
      <Figures
        {...{ walk, previous, settings, change }}
        items={[
          ...(settings.residual ? [item("x", "x, what came in")] : []),
          item("attended", "attended"),
          ...(settings.residual ? [item("sum_1", "x + attended")] : []),
          item("normed_1", "normed", { first: true }),
          item("norm1.weight", "norm1, weights"),
          item("norm1.bias", "norm1, biases"),
        ]}
        only="forward"
      />
    </>
  );
}

function Feed({ walk, previous, settings, change }: StopProps) {
  const { shape } = walk.tensor("inner").value;
  const [rows, columns] = shape;
  const inner = walk.numbers("inner");
  const isDead = (column: number): boolean => Array.from({ length: rows }, (_, row) => inner[row * columns + column]).every((number) => number === 0);
  const dead = Array.from({ length: columns }, (_, column) => column).filter(isDead);
  const woken = settings.edits.filter(({ parameter, index, value }) => parameter === "linear1.bias" && value > 0 && !isDead(index));
  return (
    <>
      <p>
        So far words only mixed. Now each word thinks for itself, all with the same weights: its {settings.d_model} numbers become {columns} by a matrix
        product, the negative ones of these become 0 (<b>ReLU</b>, and without that bend two products would be no more than one), and a second product
        makes {settings.d_model} of them again. Then add and norm, as before. That is the whole block; large models stack dozens of it.
      </p>
      <div class="equations">
        <Equation walk={walk} terms={["inner", "= max(0,", "normed_1", "·", "linear1.weight T", "+", "linear1.bias", ")"]} />
        <Equation walk={walk} terms={["fed", "=", "inner", "·", "linear2.weight T", "+", "linear2.bias"]} />
        <Equation walk={walk} terms={["encoded", "=", "norm of each row of", ...(settings.residual ? ["normed_1", "+"] : []), "fed"]} />
      </div>
      <Task
        task={
          dead.length > 0
            ? `Column ${dead.join(", ")} of inner is 0 for every word: such a unit is called dead. Wake one by its bias.`
            : "No column of inner is 0 for every word. Make the bias of one −4, which kills it, and wake it again."
        }
        done={woken.length > 0}
        answer="A larger bias lifts the sums before ReLU, until some words get above 0. A dead unit adds nothing, and no gradient comes back to its weights through a 0: this sentence alone could not teach it anything."
      />
      <Figures
        {...{ walk, previous, settings, change }}
        items={[item("linear1.weight", "linear1, weights"), item("linear1.bias", "linear1, biases"), item("before_relu", "before ReLU"), item("inner", "inner, after ReLU"), item("fed", "fed", { first: true }), item("linear2.weight", "linear2, weights"), item("encoded", "encoded: what comes out of the block")]}
        only="forward"
      />
    </>
  );
}

export const walkStops: WalkStop[] = [
  { id: "words", title: "Words", question: "How does a word become numbers?", Body: Words },
  { id: "places", title: "Places", question: "How does it know where a word stands?", Body: Places },
  { id: "projections", title: "Q, K, V", question: "What does a word ask, and what does it offer?", Body: Projections },
  { id: "scores", title: "Scores", question: "Who fits whom?", Body: Scores },
  { id: "softmax", title: "Softmax", question: "How do scores become attention?", Body: Softmax },
  { id: "heads", title: "Heads", question: "Can a word look in several directions?", Body: Heads },
  { id: "norm", title: "Add & Norm", question: "Why is what came in added again?", Body: Norm },
  { id: "feed", title: "Feed-forward", question: "What does a word do with what it got?", Body: Feed },
];
