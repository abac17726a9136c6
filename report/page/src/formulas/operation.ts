// What formulas read: an op's operands, its attributes, its result and the gradient of its result.

import { type Numbers, numbersOf } from "../arrays";
import type { Attribute, Graph, GraphSnapshot } from "../data";
import { type Shape, normalizedAxis } from "../shapes";
import { type Expression, number, operand } from "./expression";

/** Thrown where a formula needs what the data does not hold. */
export class NotStored extends Error {}

export class Operand {
  constructor(
    readonly shape: Shape,
    private readonly id: number,
    private readonly gradient: boolean,
    private readonly read: () => Numbers,
  ) {}

  at(flat: number): Expression {
    const numbers = this.read();
    if (!(flat < numbers.length)) throw new RangeError("a formula reads beyond its operand");
    return operand({ id: this.id, flat, gradient: this.gradient }, numbers[flat]);
  }
}

export class Operation {
  readonly inputs: (Operand | null)[];
  readonly output: Operand;
  /** d(loss)/d(output) */
  readonly gradient: Operand;
  readonly shape: Shape;
  private readonly names: string[];
  private readonly attributes: Map<string, Attribute>;

  constructor(graph: Graph, snapshot: GraphSnapshot, id: number) {
    const value = graph.values[id];
    this.shape = value.shape;
    this.names = graph.operands.get(value.name) ?? [];
    this.attributes = value.attributes;
    this.inputs = value.inputs.map((input) => (input === null ? null : operandOf(graph, snapshot, input, false)));
    this.output = operandOf(graph, snapshot, id, false);
    this.gradient = operandOf(graph, snapshot, id, true);
  }

  input(slot: number): Operand {
    const result = this.inputs[slot];
    if (!result) throw new NotStored(`operand ${slot + 1} of this op is not in the file`);
    return result;
  }

  /** An operand that may be missing. */
  named(name: string): Operand | null {
    this.nameOf(0);
    return this.inputs[this.names.indexOf(name)] ?? null;
  }

  nameOf(slot: number): string {
    const name = this.names[slot];
    if (name === undefined) throw new NotStored("the names of the operands of this op are not in the file");
    return name;
  }

  /** Whether the op has an operand of this name, be it missing. */
  takes(name: string): boolean {
    this.nameOf(0);
    return this.names.includes(name);
  }

  has(name: string): boolean {
    return this.attributes.has(name);
  }

  number(name: string, fallback?: number): number {
    const value = this.attributes.get(name) ?? fallback;
    if (typeof value !== "number") throw new NotStored(`the attribute ${name} of this op is not in the file`);
    return value;
  }

  flag(name: string, fallback = false): boolean {
    return (this.attributes.get(name) ?? fallback) === true;
  }

  text(name: string): string | null {
    const value = this.attributes.get(name);
    return typeof value === "string" ? value : null;
  }

  /** An attribute that is a list of axes or one axis, of an array with so many. */
  axes(name: string, rank: number): number[] {
    const value = this.attributes.get(name);
    const list = Array.isArray(value) ? value : [this.number(name)];
    return list.map((axis) => normalizedAxis(axis, rank));
  }

  array(name: string): { shape: Shape; numbers: Numbers } {
    const value = this.attributes.get(name);
    if (typeof value !== "object") throw new NotStored(`the attribute ${name} of this op is not in the file`);
    if (Array.isArray(value)) return { shape: [value.length], numbers: Float64Array.from(value) };
    return { shape: value.shape, numbers: numbersOf(value) };
  }

  constant(name: string): Expression {
    return number(this.number(name));
  }

  /** The number among the attributes. */
  onlyNumber(): Expression {
    const [found] = [...this.attributes].filter(([, value]) => typeof value === "number");
    if (found === undefined) throw new NotStored("an operand of this op is not in the file");
    return this.constant(found[0]);
  }
}

function operandOf(graph: Graph, snapshot: GraphSnapshot, id: number, gradient: boolean): Operand {
  const stored = (gradient ? snapshot.gradients : snapshot.values)[id];
  const { name, shape } = graph.values[id];
  return new Operand(shape, id, gradient, () => {
    if (!stored) throw new NotStored(`the ${gradient ? "gradients" : "numbers"} of ${name || "a constant"} #${id} are not in the file`);
    return numbersOf(stored);
  });
}

/** What an op is, as symbols and for one cell at a time with numbers. */
export interface Formula {
  rule: string | ((op: Operation) => string);
  value(op: Operation, index: number[]): Expression;
  /** The rule of what flows back to an operand. */
  backRule(op: Operation, slot: number): string;
  /** What flows back to the cell at `index` of an operand. */
  back(op: Operation, slot: number, index: number[]): Expression;
}
