// Ops on the rows of the last axis.

import { elementCount, flatOf } from "../shapes";
import { type Expression, exp, log, minus, number, over, power, product, root, sum, zero } from "./expression";
import type { Formula, Operand, Operation } from "./operation";

function rowOf(operand: Operand, index: number[]): Expression[] {
  const length = index.length === 0 ? 1 : operand.shape[operand.shape.length - 1];
  const start = flatOf(index, operand.shape) - (index[index.length - 1] ?? 0);
  return Array.from({ length }, (_, k) => operand.at(start + k));
}

function exponentials(row: Expression[]): { largest: Expression; total: Expression } {
  const largest = row.reduce((a, b) => (b.value > a.value ? b : a));
  return { largest, total: sum(row.map((x) => exp(minus(x, largest)))) };
}

function at(operand: Operand, index: number[]): Expression {
  return operand.at(flatOf(index, operand.shape));
}

const softmax: Formula = {
  rule: "yⱼ = exp(xⱼ − m) / Σₖ exp(xₖ − m), where m is the largest x of the row",
  value: (op, index) => {
    const { largest, total } = exponentials(rowOf(op.input(0), index));
    return over(exp(minus(at(op.input(0), index), largest)), total);
  },
  backRule: () => "dxⱼ = yⱼ · (dyⱼ − Σₖ dyₖ · yₖ)",
  back: (op, _, index) => {
    const y = rowOf(op.output, index);
    const dy = rowOf(op.gradient, index);
    return product(at(op.output, index), minus(at(op.gradient, index), sum(y.map((value, k) => product(dy[k], value)))));
  },
};

const logSoftmax: Formula = {
  rule: "yⱼ = xⱼ − m − log Σₖ exp(xₖ − m), where m is the largest x of the row",
  value: (op, index) => {
    const { largest, total } = exponentials(rowOf(op.input(0), index));
    return minus(minus(at(op.input(0), index), largest), log(total));
  },
  backRule: () => "dxⱼ = dyⱼ − exp(yⱼ) · Σₖ dyₖ",
  back: (op, _, index) =>
    minus(at(op.gradient, index), product(exp(at(op.output, index)), sum(rowOf(op.gradient, index)))),
};

/** A row of layer_norm, centred and scaled. */
interface NormalizedRow {
  parts: Expression[];
  deviation: Expression;
}

function rowWidth(op: Operation): number {
  const weight = op.named("weight");
  return elementCount(weight ? weight.shape : Array.from(op.array("normalized_shape").numbers));
}

function normalizedRow(op: Operation, row: number, width: number): NormalizedRow {
  const x = Array.from({ length: width }, (_, k) => op.input(0).at(row * width + k));
  const mean = over(sum(x), number(width));
  const variance = over(sum(x.map((part) => power(minus(part, mean), number(2)))), number(width));
  const deviation = root(sum([variance, op.constant("eps")]));
  return { parts: x.map((part) => over(minus(part, mean), deviation)), deviation };
}

const layerNorm: Formula = {
  rule: "y = n · weight + bias, where n = (x − mean) / √(variance + eps) of each row",
  value: (op, index) => {
    const width = rowWidth(op);
    const flat = flatOf(index, op.shape);
    const column = flat % width;
    const weight = op.named("weight");
    const bias = op.named("bias");
    const centred = normalizedRow(op, Math.floor(flat / width), width).parts[column];
    const scaled = weight ? product(centred, weight.at(column)) : centred;
    return bias ? sum([scaled, bias.at(column)]) : scaled;
  },
  backRule: (op, slot) =>
    ({
      x: "dx = (g − mean g − n · mean(g n)) / √(variance + eps), where g = dy · weight",
      weight: "dweight = Σ dy · n over the rows",
      bias: "dbias = Σ dy over the rows",
    })[op.nameOf(slot)] ?? "",
  back: (op, slot, index) => {
    const width = rowWidth(op);
    const flat = flatOf(index, op.input(slot).shape);
    const column = flat % width;
    const name = op.nameOf(slot);
    if (name !== "x") {
      const rows = Array.from({ length: elementCount(op.shape) / width }, (_, row) => row);
      const dy = (row: number): Expression => op.gradient.at(row * width + column);
      return sum(rows.map((row) => (name === "bias" ? dy(row) : product(dy(row), normalizedRow(op, row, width).parts[column]))));
    }
    const row = Math.floor(flat / width);
    const weight = op.named("weight");
    const { parts, deviation } = normalizedRow(op, row, width);
    const g = parts.map((_, k) => {
      const dy = op.gradient.at(row * width + k);
      return weight ? product(dy, weight.at(k)) : dy;
    });
    const meanOf = (terms: Expression[]): Expression => over(sum(terms), number(width));
    const withoutMean = minus(g[column], meanOf(g));
    return over(minus(withoutMean, product(parts[column], meanOf(g.map((part, k) => product(part, parts[k]))))), deviation);
  },
};

/** How much each class counts in the loss of a row, and what the sum of the losses is divided by. */
interface Targets {
  rows: number;
  counts(row: number): boolean;
  share(row: number, column: number): number;
  divisor: number;
}

function targetsOf(op: Operation): Targets {
  const ids = op.array("target").numbers;
  const classes = op.input(0).shape[1];
  const smoothing = op.number("label_smoothing", 0);
  const weights = op.has("weight") ? op.array("weight").numbers : null;
  const weight = (column: number): number => weights?.[column] ?? 1;
  const counts = (row: number): boolean => ids[row] !== op.number("ignore_index", -100);
  const counted = Array.from(ids, (id, row) => (counts(row) ? weight(id) : 0));
  return {
    rows: ids.length,
    counts,
    share: (row, column) => weight(column) * ((1 - smoothing) * (ids[row] === column ? 1 : 0) + smoothing / classes),
    divisor: op.text("reduction") === "mean" ? counted.reduce((a, b) => a + b, 0) : 1,
  };
}

const times = (factor: number, x: Expression): Expression => (factor === 1 ? x : product(number(factor), x));

const crossEntropy: Formula = {
  rule: "y = Σᵣ Σⱼ qᵣⱼ (log Σₖ exp xᵣₖ − xᵣⱼ) / n, where qᵣⱼ is 1 at the target and else 0, or what weights and smoothing make of it",
  value: (op, index) => {
    const { rows, counts, share, divisor } = targetsOf(op);
    const loss = (row: number): Expression[] => {
      if (!counts(row)) return [];
      const x = rowOf(op.input(0), [row, 0]);
      const { largest, total } = exponentials(x);
      const logTotal = sum([log(total), largest]);
      return x.flatMap((logit, j) => (share(row, j) === 0 ? [] : [times(share(row, j), minus(logTotal, logit))]));
    };
    if (op.shape.length > 0) return sum(loss(index[0]));
    return over(sum(Array.from({ length: rows }, (_, row) => row).flatMap(loss)), number(divisor));
  },
  backRule: () => "dxᵣⱼ = dy · (softmax(xᵣ)ⱼ · Σₖ qᵣₖ − qᵣⱼ) / n",
  back: (op, _, index) => {
    const { counts, share, divisor } = targetsOf(op);
    const [row, column] = index;
    if (!counts(row)) return zero;
    const x = rowOf(op.input(0), index);
    const { largest, total } = exponentials(x);
    const probability = over(exp(minus(x[column], largest)), total);
    const all = x.reduce((shares, _, j) => shares + share(row, j), 0);
    const dy = op.gradient.at(op.shape.length > 0 ? row : 0);
    return over(product(dy, minus(times(all, probability), number(share(row, column)))), number(divisor));
  },
};

export const rowFormulas: Record<string, Formula> = {
  softmax,
  log_softmax: logSoftmax,
  layer_norm: layerNorm,
  cross_entropy: crossEntropy,
};
