// A tensor with its gradient beside it, two axes at a time, and the formula of the chosen element.

import { useMemo } from "preact/hooks";
import { type StoredArray, largestSize, numbersOf } from "./arrays";
import { signScale } from "./colors";
import type { Graph, GraphSnapshot } from "./data";
import { FormulaPanel } from "./formula_panel";
import { Legend } from "./legend";
import { Matrix, type Place } from "./matrix";
import { useDark } from "./media";
import { exact } from "./numbers";
import { Rounded } from "./rounded";
import { flatOf, shapeText } from "./shapes";
import { useStateOf } from "./use_state_of";

export interface TensorSource {
  graph: Graph;
  snapshot: GraphSnapshot;
  id: number;
}

interface Props {
  name: string;
  value: StoredArray;
  gradient: StoredArray | null;
  axes?: string[];
  rows?: string[];
  columns?: string[];
  source: TensorSource | null;
}

/** The rows and columns of the last two axes; a vector is one row. */
function lastAxes(shape: readonly number[]): [number, number] {
  const { length } = shape;
  return [length > 1 ? shape[length - 2] : 1, length > 0 ? shape[length - 1] : 1];
}

export function TensorView({ name, value, gradient, axes = [], rows: rowNames = [], columns: columnNames = [], source }: Props) {
  const dark = useDark();
  const { shape } = value;
  const key = `${name} ${shape.join()}`;
  const [lead, setLead] = useStateOf<number[]>(key, []);
  const [cursor, setCursor] = useStateOf<Place>(key, [0, 0]);
  const [rows, columns] = lastAxes(shape);
  const leading = shape.slice(0, -2).map((length, axis) => Math.min(lead[axis] ?? 0, length - 1));
  const offset = flatOf(leading, shape.slice(0, -2)) * rows * columns;
  const place: Place = [Math.min(cursor[0], rows - 1), Math.min(cursor[1], columns - 1)];
  const flat = offset + place[0] * columns + place[1];
  const parts = useMemo(() => {
    const titled = [{ title: "value", array: value }, ...(gradient ? [{ title: "gradient", array: gradient }] : [])];
    return titled.map((part) => {
      const numbers = numbersOf(part.array);
      return { ...part, numbers, scale: signScale(largestSize(numbers), dark) };
    });
  }, [value, gradient, dark]);
  const where = [...leading, ...place].slice(-Math.max(shape.length, 1)).join(", ");
  return (
    <div class="tensor">
      {leading.length > 0 && (
        <p class="axes">
          {leading.map((index, axis) => (
            <label key={axis}>
              {axes[axis] ?? `axis ${axis}`}{" "}
              <select value={index} onChange={(event) => setLead(Object.assign([...leading], { [axis]: Number(event.currentTarget.value) }))}>
                {Array.from({ length: shape[axis] }, (_, k) => (
                  <option key={k} value={k}>
                    {k}
                  </option>
                ))}
              </select>
            </label>
          ))}
        </p>
      )}
      <div class="beside">
        {parts.map(({ title, numbers, scale }) => (
          <figure key={title}>
            <figcaption>
              {title} <span class="quiet">{shapeText(shape)}</span>
              <Legend scale={scale} />
            </figcaption>
            <Matrix
              name={`${title} of ${name}`}
              picture={{ rows, columns, numbers, offset, scale }}
              rowNames={rowNames}
              columnNames={columnNames}
              cursor={place}
              setCursor={setCursor}
            />
          </figure>
        ))}
      </div>
      {rows * columns > 0 && (
        <p class="readout" aria-live="polite">
          [{where}] {parts.map(({ title, array, numbers }, i) => (
            <span key={title}>
              {i > 0 && ", "}
              {title} <b data-exact={title}>{exact(numbers[flat], array.dtype)}</b>
            </span>
          ))}
          <Rounded array={value} />
        </p>
      )}
      {source?.snapshot.values[source.id] && <FormulaPanel graph={source.graph} snapshot={source.snapshot} cell={{ id: source.id, flat }} />}
    </div>
  );
}
