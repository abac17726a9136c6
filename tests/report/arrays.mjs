// Arrays as a report holds them, and reports as the library writes them into the page.

function base64(bytes) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

const dtypes = new Map([
  [Float32Array, "f32"],
  [Float64Array, "f64"],
  [BigInt64Array, "i64"],
  [Uint8Array, "u8"],
]);

export function stored(numbers, shape = [numbers.length]) {
  return { shape, dtype: dtypes.get(numbers.constructor), base64: base64(numbers) };
}

export function ids(numbers, shape = [numbers.length]) {
  return stored(BigInt64Array.from(numbers, BigInt), shape);
}

export function elementCount(shape) {
  return shape.reduce((product, length) => product * length, 1);
}

const finite = (number) => (Number.isFinite(number) ? number : null);

export function statistics(numbers) {
  let [min, max, sum, squares, nonfinite] = [Infinity, -Infinity, 0, 0, 0];
  for (const number of numbers) {
    if (!Number.isFinite(number)) {
      ++nonfinite;
      continue;
    }
    min = Math.min(min, number);
    max = Math.max(max, number);
    sum += number;
    squares += number * number;
  }
  const count = numbers.length - nonfinite;
  return { min: finite(min), max: finite(max), mean: finite(sum / count), rms: finite(Math.sqrt(squares / count)), nonfinite };
}

export function histogram(numbers, bins = 24) {
  const all = statistics(numbers);
  const [low, high] = [all.min ?? 0, all.max ?? 1];
  const counts = new Array(bins).fill(0);
  for (const number of numbers) {
    if (Number.isFinite(number)) ++counts[Math.min(bins - 1, Math.floor(((number - low) / (high - low || 1)) * bins))];
  }
  return { ...all, counts, norm: all.rms === null ? null : all.rms * Math.sqrt(numbers.length - all.nonfinite) };
}

/** The template with a report in it, as the library writes it. */
export function page(template, report) {
  const json = (typeof report === "string" ? report : JSON.stringify(report)).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return template.replace('"@XGRAD_REPORT@"', () => json);
}

export function report(...runs) {
  return { format: "xgrad-report", version: 1, runs };
}
