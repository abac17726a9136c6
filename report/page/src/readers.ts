// Readers of JSON of which nothing is known: each gives a typed value or refuses with one sentence.

/** Why data cannot be shown, and where in it. */
export class Refusal extends Error {
  private place = "";

  constructor(private readonly what: string) {
    super(what);
  }

  within(segment: string): this {
    this.place = segment + (this.place === "" || this.place.startsWith("[") ? "" : ".") + this.place;
    return this;
  }

  get sentence(): string {
    return this.place === "" ? `The data ${this.what}.` : `${this.place} ${this.what}.`;
  }
}

export type Reader<T> = (value: unknown) => T;

export function refuse(what: string): never {
  throw new Refusal(what);
}

/** `read()`, whose refusals get the name of where it reads. */
export function at<T>(segment: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Refusal ? error.within(segment) : error;
  }
}

export const number: Reader<number> = (value) =>
  typeof value === "number" ? value : refuse("must be a number");

export const count: Reader<number> = (value) =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : refuse("must be a whole number of at least 0");

export const bool: Reader<boolean> = (value) => (typeof value === "boolean" ? value : refuse("must be true or false"));

export function textBy(escape: (text: string) => string): Reader<string> {
  return (value) => (typeof value === "string" ? escape(value) : refuse("must be text"));
}

export function optional<T, F>(read: Reader<T>, fallback: F): Reader<T | F> {
  return (value) => (value === undefined ? fallback : read(value));
}

export function orNull<T>(read: Reader<T>): Reader<T | null> {
  return (value) => (value === null ? null : read(value));
}

export function listOf<T>(read: Reader<T>): Reader<T[]> {
  return (value) => {
    if (value === undefined) return [];
    if (!Array.isArray(value)) return refuse("must be a list");
    let i = 0;
    try {
      const list: T[] = [];
      for (; i < value.length; ++i) list.push(read(value[i]));
      return list;
    } catch (error) {
      throw error instanceof Refusal ? error.within(`[${i}]`) : error;
    }
  };
}

function entries(value: unknown): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return refuse("must be an object");
  return Object.entries(value);
}

/** An object whose names are data themselves. */
export function mapOf<T>(readName: Reader<string>, read: Reader<T>): Reader<Map<string, T>> {
  return (value) => new Map(entries(value ?? {}).map(([name, item]) => [readName(name), at(readName(name), () => read(item))]));
}

export function object<T extends object>(fields: { [K in keyof T]: Reader<T[K]> }): Reader<T> {
  const names = Object.keys(fields) as (keyof T & string)[];
  return (value) => {
    entries(value);
    const source = value as Record<string, unknown>;
    const result = {} as T;
    let name = names[0];
    try {
      for (name of names) result[name] = fields[name](Object.hasOwn(source, name) ? source[name] : undefined);
    } catch (error) {
      throw error instanceof Refusal ? error.within(name) : error;
    }
    return result;
  };
}
