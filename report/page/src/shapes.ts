// Index arithmetic of row-major arrays.

export type Shape = readonly number[];

export function elementCount(shape: Shape): number {
  return shape.reduce((product, length) => product * length, 1);
}

export function shapeText(shape: Shape): string {
  return shape.length === 0 ? "scalar" : shape.join(" × ");
}

export function flatOf(index: readonly number[], shape: Shape): number {
  return shape.reduce((flat, length, axis) => flat * length + index[axis], 0);
}

export function indexOf(flat: number, shape: Shape): number[] {
  const index = new Array<number>(shape.length);
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

/** The place in an array of `shape` that broadcasting puts at `index` of a result. */
export function broadcastFlat(index: readonly number[], shape: Shape): number {
  const shift = index.length - shape.length;
  return shape.reduce((flat, length, axis) => flat * length + (length === 1 ? 0 : index[axis + shift]), 0);
}

/** The places in an array of shape `large` that broadcasting fills from `index` of one of shape `small`. */
export function fiber(index: readonly number[], small: Shape, large: Shape): number[] {
  const shift = large.length - small.length;
  let places = [0];
  large.forEach((length, axis) => {
    const from = axis < shift ? 1 : small[axis - shift];
    const stretched = from === 1 && length !== 1;
    const next: number[] = [];
    for (const place of places) {
      if (stretched) {
        for (let k = 0; k < length; ++k) next.push(place * length + k);
      } else {
        next.push(place * length + (axis < shift ? 0 : index[axis - shift]));
      }
    }
    places = next;
  });
  return places;
}

/** `shape` with length 1 on the axes that are reduced. */
export function kept(shape: Shape, axes: readonly number[]): number[] {
  return shape.map((length, axis) => (axes.includes(axis) ? 1 : length));
}

export function normalizedAxis(axis: number, rank: number): number {
  return axis < 0 ? axis + rank : axis;
}
