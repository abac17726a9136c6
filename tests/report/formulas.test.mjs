// The formulas of the page: each op computed again from its operands, backward checked by finite differences.

import assert from "node:assert/strict";
import test from "node:test";
import { elementCount, ids, stored } from "./arrays.mjs";
import { operands as operandNames } from "./descriptions.mjs";
import { random } from "./random.mjs";
import { trainedRun } from "./sample.mjs";
import { needPackages, pageModule } from "./tools.mjs";

needPackages("esbuild");

const { backward, difference, forward, total } = await pageModule(`
  export { backward, forward, total } from "./formulas";
  export { difference } from "./formulas/expression";
`);

const { uniform } = random(11);
const between = (low, high) => (shape) => Float64Array.from({ length: elementCount(shape) }, () => low + (high - low) * uniform());
const any = between(-2, 2);
const positive = between(0.3, 2);

const mask = stored(Uint8Array.of(0, 1, 0, 1), [4]);

/** Ops with the shapes of their operands, null for one that is not there: [name, shapes, shape of the result, attributes, numbers of the operands]. */
const cases = [
  ["add", [[3, 4], [4]], [3, 4]],
  ["add", [[3, 4]], [3, 4], { other: 0.5 }],
  ["sub", [[3, 1], [2, 1, 4]], [2, 3, 4]],
  ["mul", [[3, 4], [3, 1]], [3, 4]],
  ["mul", [[3, 4]], [3, 4], { other: -1 }],
  ["div", [[3, 4], [4]], [3, 4], {}, positive],
  ["div", [[3, 4]], [3, 4], { other: 3 }],
  ["pow", [[3, 4], [4]], [3, 4], {}, positive],
  ["pow", [[3, 4]], [3, 4], { exponent: 1.5 }, positive],
  ["maximum", [[3, 4], [4]], [3, 4]],
  ["minimum", [[3, 4], [4]], [3, 4]],
  ["squared_difference", [[3, 4], [4]], [3, 4]],
  ["exp", [[5]], [5]],
  ["log", [[5]], [5], {}, positive],
  ["sqrt", [[5]], [5], {}, positive],
  ["rsqrt", [[5]], [5], {}, positive],
  ["reciprocal", [[5]], [5], {}, positive],
  ["square", [[5]], [5]],
  ["cube", [[5]], [5]],
  ["abs", [[5]], [5]],
  ["tanh", [[5]], [5]],
  ["sigmoid", [[5]], [5]],
  ["erf", [[9]], [9], {}, between(-4, 4)],
  ["relu", [[5]], [5]],
  ["silu", [[5]], [5]],
  ["softplus", [[5]], [5], { beta: 2, threshold: 20 }],
  ["gelu", [[5]], [5], { approximate: "none" }],
  ["gelu", [[5]], [5], { approximate: "tanh" }],
  ["clamp", [[9]], [9], { min: -1, max: 1 }],
  ["sin", [[5]], [5]],
  ["cos", [[5]], [5]],
  ["tan", [[5]], [5], {}, between(-1, 1)],
  ["asin", [[5]], [5], {}, between(-0.9, 0.9)],
  ["acos", [[5]], [5], {}, between(-0.9, 0.9)],
  ["atan", [[5]], [5]],
  ["sinh", [[5]], [5]],
  ["cosh", [[5]], [5]],
  ["asinh", [[5]], [5]],
  ["acosh", [[5]], [5], {}, between(1.5, 3)],
  ["atanh", [[5]], [5], {}, between(-0.9, 0.9)],
  ["exp2", [[5]], [5]],
  ["expm1", [[5]], [5]],
  ["log1p", [[5]], [5], {}, positive],
  ["log2", [[5]], [5], {}, positive],
  ["log10", [[5]], [5], {}, positive],
  ["floor", [[5]], [5]],
  ["ceil", [[5]], [5]],
  ["round", [[5]], [5]],
  ["trunc", [[5]], [5]],
  ["sign", [[5]], [5]],
  ["log_sigmoid", [[5]], [5]],
  ["mish", [[5]], [5]],
  ["softsign", [[5]], [5]],
  ["leaky_relu", [[9]], [9], { negative_slope: 0.1 }],
  ["elu", [[9]], [9], { alpha: 0.5 }],
  ["celu", [[9]], [9], { alpha: 0.5 }],
  ["selu", [[9]], [9]],
  ["hardsigmoid", [[9]], [9], {}, between(-4, 4)],
  ["hardswish", [[9]], [9], {}, between(-4, 4)],
  ["hardtanh", [[9]], [9], { min_val: -1, max_val: 0.5 }],
  ["hypot", [[3, 4], [4]], [3, 4]],
  ["atan2", [[3, 4], [4]], [3, 4]],
  ["logaddexp", [[3, 4], [4]], [3, 4]],
  ["xlogy", [[3, 4], [4]], [3, 4], {}, positive],
  ["fmod", [[3, 4], [4]], [3, 4], {}, positive],
  ["remainder", [[3, 4], [4]], [3, 4], {}, positive],
  ["dropout", [[5]], [5], { p: 0 }],
  ["dropout", [[5]], [5], { p: 0.5, training: false }],
  ["dropout", [[5]], [5]],
  ["reshape", [[3, 4]], [2, 6], { shape: [2, 6] }],
  ["permute", [[2, 3, 4]], [4, 2, 3], { dims: [2, 0, 1] }],
  ["broadcast_to", [[3, 1]], [2, 3, 4], { shape: [2, 3, 4] }],
  ["sum_to", [[2, 3, 4]], [3, 1], { shape: [3, 1] }],
  ["select", [[3, 4]], [3], { dim: 1, start: 2, step: 1 }],
  ["slice", [[3, 6]], [3, 2], { dim: 1, start: 1, step: 3 }],
  ["index_select", [[3, 4]], [2, 4], { dim: 0, index: ids([2, 2]) }],
  ["gather", [[3, 4]], [3, 1], { dim: 1, index: ids([3, 0, 1], [3, 1]) }],
  ["index", [[3, 6, 2]], [3, 2], { starts: [2, 1], steps: [0, 2] }],
  ["flip", [[2, 3, 4]], [2, 3, 4], { dims: [0, 2] }],
  ["roll", [[3, 4]], [3, 4], { shifts: -5, dims: 1 }],
  ["repeat", [[2, 3]], [2, 4, 3], { repeats: [2, 2, 1] }],
  ["pad", [[3, 4]], [5, 3], { before: [1, -2], after: [1, 1], value: 7 }],
  ["embedding", [[5, 3]], [2, 2, 3], { ids: ids([4, 1, 1, 0], [2, 2]) }],
  ["cat", [[2, 3], [2, 2]], [2, 5], { dim: 1 }],
  ["stack", [[2, 3], [2, 3]], [2, 2, 3], { dim: 1 }],
  ["masked_fill", [[3, 4]], [3, 4], { mask, value: 7 }],
  ["tril", [[2, 3, 4]], [2, 3, 4], { diagonal: -1 }],
  ["triu", [[3, 4]], [3, 4], { diagonal: 1 }],
  ["where", [[3, 4], [3, 1]], [3, 4], { condition: mask }],
  ["sum", [[2, 3, 4]], [2, 4], { dim: [1], keepdim: false }],
  ["mean", [[2, 3, 4]], [2, 1, 1], { dim: [1, 2], keepdim: true }],
  ["amax", [[3, 4]], [3], { dim: [1], keepdim: false }],
  ["amin", [[3, 4]], [4], { dim: [0], keepdim: false }],
  ["logsumexp", [[3, 4]], [3], { dim: [1], keepdim: false }],
  ["prod", [[2, 3, 4]], [2, 4], { dim: [1], keepdim: false }],
  ["cumsum", [[2, 3, 4]], [2, 3, 4], { dim: 1 }],
  ["norm", [[3, 4]], [3, 1], { ord: 3, dim: [1], keepdim: true }],
  ["norm", [[3, 4]], [], { ord: 2, dim: [0, 1], keepdim: false }],
  ["std", [[3, 4]], [3], { dim: [1], keepdim: false, correction: 0 }],
  ["var", [[3, 4]], [3], { dim: [1], keepdim: false, correction: 1 }],
  ["softmax", [[2, 3, 4]], [2, 3, 4], { dim: -1 }],
  ["log_softmax", [[2, 3, 4]], [2, 3, 4], { dim: -1 }],
  ["matmul", [[2, 3, 4], [4, 5]], [2, 3, 5], { trans_b: false }],
  ["matmul", [[2, 1, 3, 4], [3, 5, 4]], [2, 3, 3, 5], { trans_a: false, trans_b: true }],
  ["matmul", [[4, 3], [4, 5]], [3, 5], { trans_a: true }],
  ["linear", [[2, 3, 4], [5, 4], [5]], [2, 3, 5]],
  ["linear_relu", [[2, 3, 4], [5, 4], [5]], [2, 3, 5]],
  ["linear", [[3, 4], [5, 4], null], [3, 5]],
  ["layer_norm", [[2, 3, 4], null, null], [2, 3, 4], { normalized_shape: [4], eps: 1e-5 }],
  ["layer_norm", [[2, 3, 4], [4], [4]], [2, 3, 4], { normalized_shape: [4], eps: 1e-5 }],
  ["cross_entropy", [[3, 4]], [], { target: ids([1, -100, 3]), ignore_index: -100, label_smoothing: 0, reduction: "mean" }],
  ["cross_entropy", [[3, 4]], [3], { target: ids([1, -100, 3]), label_smoothing: 0.1, reduction: "none", weight: [1, 2, 0.5, 3] }],
  ["cross_entropy", [[3, 4]], [], { target: ids([1, 2, 3]), label_smoothing: 0.1, reduction: "mean", weight: [1, 2, 0.5, 3] }],
];

/** A graph of the op alone, with Σ weights · result as its loss; the result is what the page's formula gives. */
function graphOf([name, operandShapes, shape, attributes = {}, numbers = any]) {
  const shapes = operandShapes.filter((one) => one !== null);
  const inputs = operandShapes.map((one) => (one === null ? null : shapes.indexOf(one)));
  const values = shapes.map((shape, slot) => ({ kind: "parameter", name: `x${slot}`, module: null, inputs: [], attributes: new Map(), shape }));
  values.push({ kind: "op", name, module: null, inputs, attributes: new Map(Object.entries(attributes)), shape });
  const graph = { name, loss: null, modules: new Map(), operands: new Map(Object.entries(operandNames)), values, snapshots: [] };
  const operands = shapes.map(numbers);
  const weights = any(shape);
  const op = shapes.length;
  const result = (arrays) => {
    const snapshot = {
      value: [], gradient: [], gradients: [],
      // What dropout multiplies with is told from its result: here 1.
      values: [
        ...arrays.map((array, slot) => stored(array, shapes[slot])),
        name === "dropout" ? stored(arrays[0], shape) : null,
      ],
    };
    return Float64Array.from({ length: elementCount(shape) }, (_, flat) => forward(graph, snapshot, op, flat).expression.value);
  };
  const loss = (arrays) => result(arrays).reduce((sum, y, i) => sum + y * weights[i], 0);
  const snapshot = {
    value: [],
    gradient: values.map(() => ({})),
    values: [...operands.map((array, slot) => stored(array, shapes[slot])), stored(result(operands), shape)],
    gradients: [...shapes.map(() => null), stored(weights, shape)],
  };
  return { graph, snapshot, operands, loss, op };
}

for (const one of cases) {
  test(`${one[0]} of ${JSON.stringify(one[1])} ${one[3] ? Object.keys(one[3]) : ""}`, () => {
    const { graph, snapshot, operands, loss } = graphOf(one);
    const step = 1e-5;
    operands.forEach((numbers, slot) => {
      numbers.forEach((number, flat) => {
        const moved = (by) => operands.map((other, i) => (i === slot ? Float64Array.from(other, (x, k) => (k === flat ? number + by : x)) : other));
        const expected = (loss(moved(step)) - loss(moved(-step))) / (2 * step);
        const found = total(graph, slot, backward(graph, snapshot, slot, flat));
        assert.notEqual(found, null, `operand ${slot} has a gradient`);
        const near = Math.abs(found.value - expected) <= 1e-7 * (1 + Math.abs(expected));
        assert.ok(near, `operand ${slot}[${flat}]: ${found.value}, expected ${expected}`);
      });
    });
  });
}

// Forward against numbers that were computed elsewhere.
test("single numbers", () => {
  const value = (name, x, attributes = {}) => {
    const { graph, snapshot } = graphOf([name, x.map(() => [1]), [1], attributes, positive]);
    x.forEach((number, slot) => (snapshot.values[slot] = stored(Float64Array.of(number))));
    return forward(graph, snapshot, x.length, 0).expression.value;
  };
  const near = (found, expected) =>
    assert.ok(Math.abs(found - expected) <= 1e-12 * Math.max(1, Math.abs(expected)), `${found}, expected ${expected}`);
  near(value("erf", [0.5]), 0.5204998778130465);
  near(value("erf", [3]), 0.9999779095030014);
  near(value("erf", [-2.5]), -0.999593047982555);
  near(value("gelu", [1], { approximate: "none" }), 0.8413447460685429);
  near(value("gelu", [1], { approximate: "tanh" }), 0.8411919906082768);
  near(value("silu", [1]), 0.7310585786300049);
  near(value("softplus", [1], { beta: 1, threshold: 20 }), 1.3132616875182228);
  near(value("pow", [2, 0.5]), Math.SQRT2);
  near(value("squared_difference", [1, 4]), 9);
  near(value("div", [1, 4]), 0.25);
  near(value("rsqrt", [4]), 0.5);
  near(value("masked_mul", [4, 0.5]), 2);
  near(value("masked_mul", [Infinity, 0]), 0);
});

test("an op without a formula says so", () => {
  const { graph, snapshot } = graphOf(["exp", [[1]], [1]]);
  graph.values[1].name = "unheard_of";
  assert.match(forward(graph, snapshot, 1, 0).missing, /no formula for unheard_of/);
});

test("an op with attributes that its formula does not expect says so", () => {
  const { graph, snapshot } = graphOf(["select", [[3, 4]], [3], { dim: 1, start: 2, step: 1 }]);
  graph.values[1].attributes.set("start", 99);
  assert.match(forward(graph, snapshot, 1, 2).missing, /does not fit this op/);
  graph.values[1].attributes.delete("start");
  assert.match(forward(graph, snapshot, 1, 2).missing, /the attribute start of this op is not in the file/);
});

test("the row of the padding gets no gradient", () => {
  const { graph, snapshot } = graphOf(["embedding", [[5, 3]], [2, 2, 3], { ids: ids([4, 1, 1, 0], [2, 2]), padding_idx: 1 }]);
  snapshot.gradients[1] = stored(Float64Array.from({ length: 12 }, (_, i) => i + 1), [2, 2, 3]);
  const row = (k) => [0, 1, 2].map((column) => total(graph, 0, backward(graph, snapshot, 0, 3 * k + column)).value);
  assert.deepEqual(row(1), [0, 0, 0]);
  assert.deepEqual(row(4), [1, 2, 3]);
  assert.deepEqual(row(0), [10, 11, 12]);
  assert.match(backward(graph, snapshot, 0, 3)[0].evaluation.rule, /but 0 in the row of the padding/);
});

test("dropout multiplies with what it drew in training alone", () => {
  const y = (attributes) => {
    const { graph, snapshot } = graphOf(["dropout", [[2]], [2], attributes]);
    snapshot.values = [stored(Float64Array.of(3, 3)), stored(Float64Array.of(0, 6))];
    snapshot.gradients = [null, stored(Float64Array.of(5, 5))];
    return [0, 1].map((flat) => [forward(graph, snapshot, 1, flat).expression.value, total(graph, 0, backward(graph, snapshot, 0, flat)).value]);
  };
  assert.deepEqual(y({ p: 0.5 }), [[0, 0], [6, 10]]);
  assert.deepEqual(y({ p: 0.5, training: true }), [[0, 0], [6, 10]]);
  assert.deepEqual(y({ p: 0.5, training: false }), [[3, 5], [3, 5]]);
  assert.deepEqual(y({}), [[3, 5], [3, 5]]);
});

test("what underflows is no difference, and what is larger is one", () => {
  const { graph, snapshot } = graphOf(["softmax", [[4]], [4], { dim: -1 }]);
  snapshot.values[0] = stored(Float32Array.of(0, -80, -88, -300));
  // exp(-88) is 6e-39, a denormal number, and exp(-300) is none at all: the library has 0 for both.
  const y = Float32Array.of(1, Math.exp(-80), 0, 0);
  snapshot.values[1] = stored(y);
  snapshot.gradients[1] = stored(Float32Array.of(1e-3, 2, 3, -4));
  for (const [flat, number] of y.entries()) {
    const { expression } = forward(graph, snapshot, 1, flat);
    assert.ok(difference(expression, number, "f32") <= 1e-6, `[${flat}]: ${expression.value}, stored ${number}`);
  }
  assert.ok(difference(forward(graph, snapshot, 1, 3).expression, 2e-38, "f32") > 1e-6, "a normal number where there is none");
  assert.ok(difference(forward(graph, snapshot, 1, 2).expression, 0, "f64") > 1e-6, "a double has room for exp(-88)");
  assert.ok(difference(forward(graph, snapshot, 1, 1).expression, y[1] * 1.001, "f32") > 1e-6);
  const back = total(graph, 0, backward(graph, snapshot, 0, 1));
  assert.ok(difference(back, 0, "f32") > 1e-6, "a gradient of 1e-35 that is missing");
});

test("every number of a trained encoder, forward and backward", async () => {
  const { readReport } = await pageModule(`export { readReport } from "./data";`);
  const { numbersOf } = await pageModule(`export { numbersOf } from "./arrays";`);
  const [run] = readReport(JSON.stringify({ format: "xgrad-report", version: 1, runs: [trainedRun()] }));
  const [graph] = run.graphs;
  const snapshot = graph.snapshots[3];
  graph.values.forEach(({ kind, name }, id) => {
    const values = numbersOf(snapshot.values[id]);
    const gradients = snapshot.gradients[id] && numbersOf(snapshot.gradients[id]);
    for (let flat = 0; flat < values.length; flat += 3) {
      if (kind === "op") {
        const { expression } = forward(graph, snapshot, id, flat);
        assert.ok(difference(expression, values[flat], "f32") <= 1e-6, `${name} #${id}[${flat}]: ${expression.value}, stored ${values[flat]}`);
      }
      if (gradients) {
        const all = total(graph, id, backward(graph, snapshot, id, flat));
        assert.ok(difference(all, gradients[flat], "f32") <= 1e-6, `gradient of ${name} #${id}[${flat}]: ${all.value}, stored ${gradients[flat]}`);
      }
    }
  });
});
