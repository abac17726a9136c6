// Arrays as the data holds them, base64 of little-endian elements, and their numbers, decoded once when needed.

import type { Dtype } from "./numbers";
import { type Reader, Refusal, count, listOf, number, object, optional, refuse } from "./readers";
import { type Shape, elementCount, shapeText } from "./shapes";

export interface StoredArray {
  shape: Shape;
  dtype: Dtype;
  base64: string;
  low: number;
  high: number;
}

export type Numbers = Float32Array | Float64Array | Uint8Array;

const elementBytes: Record<Dtype, number> = { f32: 4, f64: 8, i64: 8, u8: 1, u16: 2 };

const dtype: Reader<Dtype> = (value) =>
  typeof value === "string" && Object.hasOwn(elementBytes, value)
    ? (value as Dtype)
    : refuse("must be one of f32, f64, i64, u8 and u16");

const base64: Reader<string> = (value) => (typeof value === "string" ? value : refuse("must be text"));

const readFields = object<StoredArray>({
  shape: listOf(count),
  dtype,
  base64,
  low: optional(number, 0),
  high: optional(number, 1),
});

function byteCount(text: string): number {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return (text.length / 4) * 3 - padding;
}

export const storedArray: Reader<StoredArray> = (value) => {
  const array = readFields(value);
  const held = byteCount(array.base64) / elementBytes[array.dtype];
  if (held !== elementCount(array.shape)) {
    refuse(`has the shape (${array.shape.join(", ")}) of ${elementCount(array.shape)} elements, but its base64 holds ${held}`);
  }
  return array;
};

/** An array of a shape that something else gives. */
export function expectShape(array: StoredArray, shape: Shape): void {
  if (array.shape.length !== shape.length || array.shape.some((length, axis) => length !== shape[axis])) {
    refuse(`must have the shape ${shapeText(shape)}, but has ${shapeText(array.shape)}`);
  }
}

export function decodedBytes(text: string): Uint8Array<ArrayBuffer> {
  const native = Uint8Array as unknown as { fromBase64?(text: string): Uint8Array<ArrayBuffer> };
  try {
    if (native.fromBase64) return native.fromBase64(text);
    const binary = atob(text);
    const result = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) result[i] = binary.charCodeAt(i);
    return result;
  } catch {
    throw new Refusal("holds an array whose base64 has characters that are none of base64");
  }
}

function decode(array: StoredArray): Numbers {
  const data = decodedBytes(array.base64);
  switch (array.dtype) {
    case "f32":
      return new Float32Array(data.buffer);
    case "f64":
      return new Float64Array(data.buffer);
    case "i64":
      return Float64Array.from(new BigInt64Array(data.buffer), Number);
    case "u8":
      return data;
    case "u16": {
      const step = (array.high - array.low) / 65535;
      return Float32Array.from(new Uint16Array(data.buffer), (code) => array.low + code * step);
    }
  }
}

const decoded = new WeakMap<StoredArray, Numbers>();

export function numbersOf(array: StoredArray): Numbers {
  let numbers = decoded.get(array);
  if (numbers === undefined) {
    numbers = decode(array);
    decoded.set(array, numbers);
  }
  return numbers;
}

/** The largest size of a finite element, or 0. */
export function largestSize(numbers: Numbers): number {
  let largest = 0;
  for (let i = 0; i < numbers.length; ++i) {
    const size = Math.abs(numbers[i]);
    if (size > largest && size < Infinity) largest = size;
  }
  return largest;
}
