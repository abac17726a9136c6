// Ops that copy elements, and those that choose between two.

import { broadcastFlat, elementCount, fiber, flatOf, indexOf, normalizedAxis } from "../shapes";
import { type Expression, sum, zero } from "./expression";
import { type Formula, NotStored, type Operation } from "./operation";

/** From which operand, and where in it, the element at `index` of the result comes. */
type Source = (op: Operation, index: number[]) => { slot: number; flat: number };

function copies(rule: string, source: Source): Formula {
  return {
    rule,
    value: (op, index) => {
      const { slot, flat } = source(op, index);
      return op.input(slot).at(flat);
    },
    backRule: () => "Σ dy over the places it was copied to",
    back: (op, slot, index) => {
      const wanted = flatOf(index, op.input(slot).shape);
      const terms: Expression[] = [];
      const size = elementCount(op.shape);
      for (let flat = 0; flat < size; ++flat) {
        const from = source(op, indexOf(flat, op.shape));
        if (from.slot === slot && from.flat === wanted) terms.push(op.gradient.at(flat));
      }
      return terms.length === 1 ? terms[0] : sum(terms);
    },
  };
}

function from(op: Operation, index: number[], slot = 0): { slot: number; flat: number } {
  return { slot, flat: flatOf(index, op.input(slot).shape) };
}

/** `index` with its element on an axis replaced. */
function along(index: number[], axis: number, place: number): number[] {
  return index.map((k, i) => (i === axis ? place : k));
}

function axisOf(op: Operation): number {
  return normalizedAxis(op.number("dim", 0), op.input(0).shape.length);
}

/** Where a selection begins on an axis; a negative start counts from the end. */
function startOf(op: Operation, axis: number): number {
  return Math.max(0, normalizedAxis(op.number("start"), op.input(0).shape[axis]));
}

const select: Source = (op, index) => {
  const axis = axisOf(op);
  return from(op, [...index.slice(0, axis), startOf(op, axis), ...index.slice(axis)]);
};

const slice: Source = (op, index) => {
  const axis = axisOf(op);
  return from(op, along(index, axis, startOf(op, axis) + index[axis] * op.number("step", 1)));
};

const indexSelect: Source = (op, index) => {
  const axis = axisOf(op);
  return from(op, along(index, axis, op.array("index").numbers[index[axis]]));
};

const gather: Source = (op, index) => {
  const places = op.array("index");
  return from(op, along(index, axisOf(op), places.numbers[flatOf(index, places.shape)]));
};

const embedding: Source = (op, index) => {
  const ids = op.array("ids");
  return from(op, [ids.numbers[flatOf(index.slice(0, -1), ids.shape)], index[index.length - 1]]);
};

const embeddingCopies = copies("y is the row of the weight that the token's id names", embedding);

/** The row of the padding is copied, but not trained. */
const isPadding = (op: Operation, row: number): boolean => op.has("padding_idx") && row === op.number("padding_idx");

const permute: Source = (op, index) => {
  const dims = op.array("dims").numbers;
  const place = new Array<number>(index.length);
  index.forEach((k, i) => (place[dims[i]] = k));
  return from(op, place);
};

const cat: Source = (op, index) => {
  const axis = axisOf(op);
  let place = index[axis];
  for (let slot = 0; slot < op.inputs.length; ++slot) {
    const length = op.input(slot).shape[axis];
    if (place < length) return from(op, along(index, axis, place), slot);
    place -= length;
  }
  throw new NotStored("the operands of this op do not fill its result");
};

const stack: Source = (op, index) => {
  const axis = normalizedAxis(op.number("dim", 0), op.shape.length);
  return from(op, index.filter((_, i) => i !== axis), index[axis]);
};

const index: Source = (op, place) => {
  const starts = op.array("starts").numbers;
  const steps = op.array("steps").numbers;
  let axis = 0;
  const items = Array.from(starts, (start, i) => (steps[i] === 0 ? start : start + place[axis++] * steps[i]));
  return from(op, [...items, ...place.slice(axis)]);
};

const flip: Source = (op, index) => {
  const { shape } = op.input(0);
  const dims = op.axes("dims", shape.length);
  return from(op, index.map((k, axis) => (dims.includes(axis) ? shape[axis] - 1 - k : k)));
};

const roll: Source = (op, index) => {
  const axis = normalizedAxis(op.number("dims"), op.shape.length);
  const length = op.shape[axis];
  return from(op, along(index, axis, (((index[axis] - op.number("shifts")) % length) + length) % length));
};

const repeat: Source = (op, index) => {
  const { shape } = op.input(0);
  return from(op, index.slice(index.length - shape.length).map((k, axis) => k % shape[axis]));
};

/** x within a border of a number. */
const pad: Formula = {
  rule: "y = x within a border of the value",
  value: (op, index) => {
    const { shape } = op.input(0);
    const place = index.map((k, axis) => k - op.array("before").numbers[axis]);
    const isInside = place.every((k, axis) => k >= 0 && k < shape[axis]);
    return isInside ? op.input(0).at(flatOf(place, shape)) : op.constant("value");
  },
  backRule: () => "dy where x went, 0 for what was cut off",
  back: (op, _, index) => {
    const place = index.map((k, axis) => k + op.array("before").numbers[axis]);
    const isInside = place.every((k, axis) => k >= 0 && k < op.shape[axis]);
    return isInside ? op.gradient.at(flatOf(place, op.shape)) : zero;
  },
};

/** Whether the mask of an op is true at `index` of its result. */
function masked(op: Operation, name: string, index: number[]): boolean {
  const mask = op.array(name);
  return mask.numbers[broadcastFlat(index, mask.shape)] !== 0;
}

/** A choice between two operands, or between an operand and a number. */
function choice(rule: string, name: string, backRules: string[], slotAt: (mask: boolean) => number | null): Formula {
  return {
    rule,
    value: (op, index) => {
      const slot = slotAt(masked(op, name, index));
      if (slot === null) return op.constant("value");
      const input = op.input(slot);
      return input.at(broadcastFlat(index, input.shape));
    },
    backRule: (_, slot) => backRules[slot],
    back: (op, slot, index) => {
      const terms = fiber(index, op.input(slot).shape, op.shape).map((flat) =>
        slotAt(masked(op, name, indexOf(flat, op.shape))) === slot ? op.gradient.at(flat) : zero,
      );
      return terms.length === 1 ? terms[0] : sum(terms);
    },
  };
}

/** Copies where the column minus the row keeps to the diagonal; elsewhere 0. */
function triangle(part: string, keeps: (distance: number, diagonal: number) => boolean): Formula {
  const inside = (op: Operation, index: number[]): boolean =>
    keeps(index[index.length - 1] - index[index.length - 2], op.number("diagonal"));
  return {
    rule: `y = x ${part}, else 0`,
    value: (op, index) => (inside(op, index) ? op.input(0).at(flatOf(index, op.shape)) : zero),
    backRule: () => `dy ${part}, else 0`,
    back: (op, _, index) => (inside(op, index) ? op.gradient.at(flatOf(index, op.shape)) : zero),
  };
}

const copy = (op: Operation, index: number[]): { slot: number; flat: number } => ({ slot: 0, flat: flatOf(index, op.shape) });
const broadcast: Source = (op, index) => ({ slot: 0, flat: broadcastFlat(index, op.input(0).shape) });

export const indexingFormulas: Record<string, Formula> = {
  reshape: copies("y is x with another shape", copy),
  permute: copies("y is x with its axes in another order", permute),
  broadcast_to: copies("y is x, repeated", broadcast),
  select: copies("y is x at one index of an axis", select),
  slice: copies("y is a part of x", slice),
  index: copies("y is x at elements and ranges of axes", index),
  flip: copies("y is x with axes reversed", flip),
  roll: copies("y is x moved on along an axis", roll),
  repeat: copies("y is x, several times", repeat),
  pad,
  index_select: copies("y is x at the given indices of an axis", indexSelect),
  gather: copies("y is x at the given index of each place", gather),
  embedding: {
    ...embeddingCopies,
    backRule: (op, slot) => embeddingCopies.backRule(op, slot) + (op.has("padding_idx") ? ", but 0 in the row of the padding" : ""),
    back: (op, slot, index) => (isPadding(op, index[0]) ? zero : embeddingCopies.back(op, slot, index)),
  },
  cat: copies("y is the operands, one after the other", cat),
  stack: copies("y is the operands along a new axis", stack),
  masked_fill: choice("y = the fill value where masked, else x", "mask", ["dy where not masked, else 0"], (mask) => (mask ? null : 0)),
  tril: triangle("up to the diagonal", (distance, diagonal) => distance <= diagonal),
  triu: triangle("from the diagonal on", (distance, diagonal) => distance >= diagonal),
  where: choice(
    "y = a where the condition holds, else b",
    "condition",
    ["dy where the condition holds, else 0", "dy where the condition does not hold, else 0"],
    (mask) => (mask ? 0 : 1),
  ),
};
