// A matrix to walk through: a table of cells while it is small, else a canvas with a cursor.

import { useEffect, useRef } from "preact/hooks";
import { Canvas, type Picture } from "./canvas";
import { colorOf, css, inkOn } from "./colors";
import { brief } from "./numbers";

export type Place = [row: number, column: number];

interface MatrixProps {
  name: string;
  picture: Picture;
  rowNames: string[];
  columnNames: string[];
  cursor: Place;
  setCursor: (place: Place) => void;
  /** Whether a cell of a table is to be told from the others. */
  marked?: (place: Place) => boolean;
}

const largestTable = 32;

/** Where a key moves the cursor, or null for other keys. */
function moved([row, column]: Place, key: string, control: boolean, rows: number, columns: number): Place | null {
  switch (key) {
    case "ArrowUp":
      return [Math.max(0, row - 1), column];
    case "ArrowDown":
      return [Math.min(rows - 1, row + 1), column];
    case "ArrowLeft":
      return [row, Math.max(0, column - 1)];
    case "ArrowRight":
      return [row, Math.min(columns - 1, column + 1)];
    case "Home":
      return [control ? 0 : row, 0];
    case "End":
      return [control ? rows - 1 : row, columns - 1];
    default:
      return null;
  }
}

function keyHandler({ picture, cursor, setCursor }: MatrixProps): (event: KeyboardEvent) => void {
  return (event) => {
    const place = moved(cursor, event.key, event.ctrlKey, picture.rows, picture.columns);
    if (place === null) return;
    event.preventDefault();
    setCursor(place);
  };
}

export function isMasked({ columns, masked, maskedOffset = 0 }: Picture, [row, column]: Place): boolean {
  return masked != null && masked[maskedOffset + row * columns + column] !== 0;
}

export function valueAt({ columns, numbers, offset }: Picture, [row, column]: Place): number {
  return numbers[offset + row * columns + column];
}

export function Matrix(props: MatrixProps) {
  const { rows, columns } = props.picture;
  if (rows === 0 || columns === 0) return <p class="quiet">This array has no elements.</p>;
  return rows <= largestTable && columns <= largestTable ? <Table {...props} /> : <LargeMatrix {...props} />;
}

function Table(props: MatrixProps) {
  const { name, picture, rowNames, columnNames, cursor, setCursor, marked } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  // The focus follows the cursor if it was in this table.
  useEffect(() => {
    if (body.current?.contains(document.activeElement)) {
      body.current.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: false });
    }
  }, [cursor[0], cursor[1]]);
  const rows = Array.from({ length: picture.rows }, (_, row) => row);
  const digits = picture.columns > 16 ? 1 : 2;
  const columns = Array.from({ length: picture.columns }, (_, column) => column);
  return (
    <div class="scroll">
      <table role="grid" aria-label={name} class={`matrix${picture.columns > 10 ? " dense" : ""}`} onKeyDown={keyHandler(props)}>
        <thead>
          <tr>
            <td />
            {columns.map((column) => (
              <th key={column} scope="col">
                <span>{columnNames[column] ?? column}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row) => (
            <tr key={row}>
              <th scope="row">{rowNames[row] ?? row}</th>
              {columns.map((column) => {
                const here = row === cursor[0] && column === cursor[1];
                const select = (): void => setCursor([row, column]);
                const mark = marked?.([row, column]) ? "marked" : "";
                const common = { role: "gridcell" as const, tabIndex: here ? 0 : -1, "aria-selected": here, onClick: select };
                if (isMasked(picture, [row, column])) {
                  return (
                    <td key={column} {...common} class={`masked ${mark}`}>
                      <span aria-label="masked">·</span>
                    </td>
                  );
                }
                const value = valueAt(picture, [row, column]);
                const color = colorOf(picture.scale, value);
                return (
                  <td key={column} {...common} class={mark} style={{ background: css(color), color: inkOn(color) }}>
                    {brief(value, digits)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LargeMatrix(props: MatrixProps) {
  const { name, picture, cursor, setCursor } = props;
  const { rows, columns } = picture;
  const percent = (part: number, whole: number): string => `${(100 * part) / whole}%`;
  return (
    <div
      class="large-matrix"
      role="application"
      aria-roledescription="matrix"
      aria-label={`${name}, ${rows} rows and ${columns} columns; arrow keys move the cursor`}
      tabIndex={0}
      onKeyDown={keyHandler(props)}
      onClick={(event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const place = (share: number, length: number): number => Math.max(0, Math.min(length - 1, Math.floor(share * length)));
        setCursor([place((event.clientY - box.top) / box.height, rows), place((event.clientX - box.left) / box.width, columns)]);
      }}
    >
      <Canvas picture={picture} name={name} />
      <i
        class="cursor"
        style={{
          left: percent(cursor[1], columns),
          top: percent(cursor[0], rows),
          width: percent(1, columns),
          height: percent(1, rows),
        }}
      />
    </div>
  );
}
