// Tensors side by side, with one chosen number: its exact value, its formula, and, if it is a weight, a way to change it.

import { useMemo, useState } from "preact/hooks";
import { type Numbers, type StoredArray, largestSize, numbersOf } from "../../../report/page/src/arrays";
import { shareScale, signScale } from "../../../report/page/src/colors";
import { FormulaPanel } from "../../../report/page/src/formula_panel";
import { Legend } from "../../../report/page/src/legend";
import { Matrix, type Place } from "../../../report/page/src/matrix";
import { useDark } from "../../../report/page/src/media";
import { exact } from "../../../report/page/src/numbers";
import { shapeText } from "../../../report/page/src/shapes";
import { useStateOf } from "../../../report/page/src/use_state_of";
import { type Settings, type Walk, symbolOf } from "./walk";

export interface Item {
  name: string;
  caption: string;
  gradient?: boolean;
  /** Shares of 1, which have a scale of their own. */
  shares?: boolean;
  /** Its first number is chosen at the beginning. */
  first?: boolean;
}

interface Props {
  walk: Walk;
  previous: Walk | null;
  items: Item[];
  settings: Settings;
  change: (part: Partial<Settings>) => void;
  only?: "forward" | "backward";
}

/** What there is to draw of an item. */
interface Figure {
  item: Item;
  array: StoredArray;
  numbers: Numbers;
  /** What is another number than before the last change. */
  changed: Set<number>;
  rowNames: string[];
  columnNames: string[];
  id: number | null;
}

function arrayOf(walk: Walk, { name, gradient = false }: Item): StoredArray | null {
  const tensor = walk.tensor(name);
  return gradient ? tensor.gradient : tensor.value;
}

function figureOf(walk: Walk, previous: Walk | null, item: Item): Figure | null {
  const array = arrayOf(walk, item);
  if (array === null) return null;
  const before = previous && arrayOf(previous, item);
  const numbers = numbersOf(array);
  const changed = new Set<number>();
  if (before && before.shape.join() === array.shape.join()) {
    const old = numbersOf(before);
    numbers.forEach((number, flat) => Object.is(number, old[flat]) || changed.add(flat));
  }
  const { rows, columns, id } = walk.tensor(item.name);
  return { item, array, numbers, changed, rowNames: rows, columnNames: columns, id };
}

export function Figures({ walk, previous, items, settings, change, only }: Props) {
  const dark = useDark();
  const first = Math.max(0, items.findIndex((item) => item.first));
  const names = items.map(({ name, gradient }) => `${name}${gradient ? "'" : ""}`).join();
  const [chosen, setChosen] = useStateOf(names, first);
  const [cursor, setCursor] = useStateOf<Place>(names, [0, 0]);
  const [head, setHead] = useState(0);
  const figures = useMemo(() => items.flatMap((item) => figureOf(walk, previous, item) ?? []), [walk, previous, names]);
  const heads = Math.max(1, ...figures.map(({ array: { shape } }) => (shape.length > 2 ? shape[0] : 1)));
  const shownHead = Math.min(head, heads - 1);
  const subject = figures[Math.min(chosen, figures.length - 1)];
  if (subject === undefined) return null;
  const placeIn = ({ array: { shape } }: Figure): { rows: number; columns: number; offset: number; place: Place } => {
    const [rows, columns] = shape.length > 1 ? shape.slice(-2) : [1, shape[0] ?? 1];
    const offset = shape.length > 2 ? shownHead * rows * columns : 0;
    return { rows, columns, offset, place: [Math.min(cursor[0], rows - 1), Math.min(cursor[1], columns - 1)] };
  };
  const { columns, offset, place } = placeIn(subject);
  const flat = offset + place[0] * columns + place[1];
  const parameter = subject.id !== null && walk.graph.values[subject.id].kind === "parameter" && !subject.item.gradient;
  return (
    <>
      {heads > 1 && (
        <p class="axes">
          <label>
            {figures.every(({ array: { shape } }) => shape.length < 3 || shape[0] === walk.heads) ? "Head" : "Part of the first axis"}{" "}
            <select value={shownHead} onChange={(event) => setHead(Number(event.currentTarget.value))}>
              {Array.from({ length: heads }, (_, k) => (
                <option key={k} value={k}>
                  {k}
                </option>
              ))}
            </select>
          </label>
        </p>
      )}
      <div class="walk-view">
        <div class="figures">
          {figures.map((figure, i) => {
            const { item, array, numbers, changed, rowNames, columnNames } = figure;
            const at = placeIn(figure);
            const largest = largestSize(numbers);
            const isIds = array.dtype === "i64";
            const scale = item.shares ? shareScale(1) : signScale(isIds ? 1e6 : largest, dark);
            const masked = numbers.includes(-Infinity) ? Float32Array.from(numbers, (number) => Number(number === -Infinity)) : null;
            return (
              <figure key={`${item.name}${item.gradient ? "'" : ""}`} class={figure === subject ? "chosen" : ""}>
                <figcaption>
                  {item.caption} <span class="quiet">{shapeText(array.shape)}</span>
                  {!isIds && <Legend scale={scale} />}
                </figcaption>
                <Matrix
                  name={`${item.caption}${at.offset > 0 ? `, head ${shownHead}` : ""}`}
                  picture={{ rows: at.rows, columns: at.columns, numbers, offset: at.offset, scale, masked, maskedOffset: at.offset }}
                  rowNames={rowNames.length > 0 ? rowNames : array.shape.length < 2 ? [walk.titleOf(item.name)] : []}
                  columnNames={columnNames}
                  cursor={at.place}
                  setCursor={(next) => {
                    setChosen(i);
                    setCursor(next);
                  }}
                  marked={([row, column]) => changed.has(at.offset + row * at.columns + column)}
                />
                {changed.size > 0 && (
                  <p class="changes">
                    {changed.size} of {numbers.length} numbers changed
                  </p>
                )}
              </figure>
            );
          })}
        </div>
        <div class="chosen-number">
          <h3>The chosen number</h3>
          <p class="readout" aria-live="polite">
            {subject.item.gradient && "gradient of "}
            {walk.titleOf(subject.item.name)} [{(subject.array.shape.length > 1 ? [...(subject.array.shape.length > 2 ? [shownHead] : []), ...place] : [place[1]]).join(", ")}]{" "}
            {subject.rowNames[place[0]] && <q>{subject.rowNames[place[0]]}</q>}
            {subject.columnNames[place[1]] && (
              <>
                {subject.rowNames[place[0]] && " and "}
                <q>{subject.columnNames[place[1]]}</q>
              </>
            )}{" "}
            <b data-exact={subject.item.name}>{exact(subject.numbers[flat], subject.array.dtype)}</b>
          </p>
          {parameter && <Change name={subject.item.name} index={flat} value={subject.numbers[flat]} settings={settings} change={change} />}
          {subject.id !== null && <FormulaPanel graph={walk.graph} snapshot={walk.snapshot} cell={{ id: subject.id, flat }} only={only} />}
        </div>
      </div>
    </>
  );
}

interface ChangeProps {
  name: string;
  index: number;
  value: number;
  settings: Settings;
  change: (part: Partial<Settings>) => void;
}

/** Another number for a weight. */
function Change({ name, index, value, settings, change }: ChangeProps) {
  const isThis = (edit: { parameter: string; index: number }): boolean => edit.parameter === name && edit.index === index;
  const others = settings.edits.filter((edit) => !isThis(edit));
  const set = (next: number): void => {
    const single = Math.fround(next); // infinite, if next is too large for it
    if (Number.isFinite(single)) change({ edits: [...others, { parameter: name, index, value: single }] });
  };
  const chosen = settings.edits.find(isThis)?.value ?? value; // the numbers of the figures may still be those before
  const rounded = Number(chosen.toPrecision(5));
  return (
    <div class="change" role="group" aria-label={`Change ${symbolOf(name)}`}>
      <span>This is a weight. Change it:</span>
      <input type="range" min={-4} max={4} step={0.05} value={rounded} aria-label={`${symbolOf(name)}, slider`} onInput={(event) => set(Number(event.currentTarget.value))} />
      <input type="number" step={0.05} value={rounded} aria-label={`${symbolOf(name)}, number`} onChange={(event) => set(event.currentTarget.valueAsNumber)} />
      {others.length < settings.edits.length && (
        <button type="button" onClick={() => change({ edits: others })}>
          As it was drawn
        </button>
      )}
    </div>
  );
}
