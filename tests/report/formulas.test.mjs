// The formulas of the page: each op computed again from its operands, backward checked by finite differences.

import assert from "node:assert/strict";
import test from "node:test";
import { elementCount, ids, stored } from "./arrays.mjs";
import { attributes as attributeNames, formulaLines, formulas, operands as operandNames } from "./descriptions.mjs";
import { random } from "./random.mjs";
import { trainedRun } from "./sample.mjs";
import { needPackages, pageModule } from "./tools.mjs";

needPackages("esbuild");

const { backward, difference, forward, parsed, total } = await pageModule(`
  export { backward, forward, total } from "./formulas";
  export { difference } from "./formulas/expression";
  export { parsed } from "./formulas/term";
`);

const { uniform } = random(11);
const between = (low, high) => (shape) => Float64Array.from({ length: elementCount(shape) }, () => low + (high - low) * uniform());
const any = between(-2, 2);
const positive = between(0.3, 2);
const pick = (list) => list[Math.floor(list.length * uniform())];

const mask = stored(Uint8Array.of(0, 1, 0, 1), [4]);

/** Ops with the shapes of their operands, null for one that is not there: [name, shapes, shape of the result, attributes, numbers of the operands]. */
const cases = [
  ["add", [[3, 4], [4]], [3, 4]],
  ["sub", [[3, 1], [2, 1, 4]], [2, 3, 4]],
  ["mul", [[3, 4], [3, 1]], [3, 4]],
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
  const graph = { name, loss: null, modules: new Map(), operands: new Map(Object.entries(operandNames)), formulas: new Map(Object.entries(formulas)), values, snapshots: [] };
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

/** Checks what flows back against central differences where the loss is finite, and gives how many numbers it checked. */
function checkBackward({ graph, snapshot, operands, loss }) {
  let checked = 0;
  operands.forEach((numbers, slot) => {
    numbers.forEach((number, flat) => {
      const at = (by) => loss(operands.map((other, i) => (i === slot ? Float64Array.from(other, (x, k) => (k === flat ? number + by : x)) : other)));
      const slope = (step) => (at(step) - at(-step)) / (2 * step);
      const step = 1e-5;
      const [near, far] = [slope(step), slope(2 * step)];
      if (!Number.isFinite(near) || !Number.isFinite(far)) return;
      const expected = (4 * near - far) / 3;
      const found = total(graph, slot, backward(graph, snapshot, slot, flat));
      assert.notEqual(found, null, `operand ${slot} has a gradient`);
      const error = Math.abs(found.value - expected);
      assert.ok(error <= 1e-7 * (1 + Math.abs(expected)) + 4 * Math.abs(near - far), `operand ${slot}[${flat}]: ${found.value}, expected ${expected}`);
      ++checked;
    });
  });
  return checked;
}

for (const one of cases) {
  test(`${one[0]} of ${JSON.stringify(one[1])} ${one[3] ? Object.keys(one[3]) : ""}`, () => {
    const graph = graphOf(one);
    assert.equal(checkBackward(graph), graph.operands.reduce((sum, { length }) => sum + length, 0));
  });
}

/** Attributes of an op: numbers that ascend, as bounds must, and for one that is compared with a text, this or another one. */
function drawnAttributes(op, formula) {
  const names = attributeNames[op];
  const numbers = Array.from(positive([names.length])).sort();
  return Object.fromEntries(names.map((name, i) => {
    const [, text] = new RegExp(`\\b${name} == "(\\w+)"`).exec(formula) ?? [];
    return [name, text === undefined ? numbers[i] : pick([text, "another"])];
  }));
}

const namesIn = ({ kind, name, parts = [] }) => (kind === "name" ? [name] : parts.flatMap(namesIn));

for (const { place, op, formula } of formulaLines) {
  test(`${place}: ${op}`, () => {
    const names = operandNames[op];
    assert.ok(names, `${op} is no op`);
    assert.ok(formula, "a line must be OP: y; dy/d(first operand); ...");
    const [y, ...derivatives] = formula.split(";").map((text) => namesIn(parsed(text)));
    assert.equal(derivatives.length, names.length, `a derivative for each of ${names}`);
    assert.ok(!y.includes("y"), "y is of derivatives alone");
    const used = [y, ...derivatives].flat();
    const known = [...names, ...attributeNames[op], "y", "pi", "inf"];
    for (const name of used) assert.ok(known.includes(name), `${name} is none of ${known}`);
    const inPlace = attributeNames[op].filter((name) => !used.includes(name)); // of the second operand
    let checked = 0;
    for (let repetition = 0; repetition < 50; ++repetition) {
      const isNumber = inPlace.length > 0 && repetition % 2 === 0;
      const attributes = inPlace.length > 0 && !isNumber ? {} : drawnAttributes(op, formula);
      const one = graphOf([op, isNumber ? [[]] : names.map(() => []), [], attributes]);
      assert.equal(forward(one.graph, one.snapshot, one.op, 0).missing, undefined);
      checked += checkBackward(one);
    }
    assert.ok(checked >= 10, `only ${checked} numbers of random operands were finite`);
  });
}

test("malformed formulas say what is wrong", () => {
  const errors = {
    "1 +": "ends where an operand must be",
    "(x": 'must have ")" at its end',
    "x )": 'has ")" behind its end',
    "x y": 'has "y" behind its end',
    "x + * y": 'must have an operand in place of "*"',
    "x % y": 'has "%" behind its end',
    "gamma(x)": "calls gamma, which is none of the functions",
    "max(x)": "must call max with 2 arguments, got 1",
    "where(x, 1)": "must call where with 3 arguments, got 2",
    "default(1, 2)": "must call default with the name of an attribute",
    [`1${" + 1".repeat(300)}`]: "must have at most 500 numbers, names and signs, got 601",
  };
  for (const [text, message] of Object.entries(errors)) assert.throws(() => parsed(text), { message });
});

test("a formula that is malformed is none, one of other operands says so", () => {
  const { graph, snapshot, op } = graphOf(["exp", [[1]], [1]]);
  const missing = (formula) => {
    graph.formulas.set("exp", formula);
    return [forward(graph, snapshot, op, 0), ...backward(graph, snapshot, 0, 0).map(({ evaluation }) => evaluation)].map((one) => one.missing);
  };
  const none = "this page has no formula for exp";
  assert.deepEqual(missing("exp(x; y"), [none, none]);
  assert.deepEqual(missing("exp(x)"), [undefined, "this page has no formula for the gradient of this operand"]);
  assert.deepEqual(missing("exp(z); y"), ["the attribute z of this op is not in the file", undefined]);
});

test("signs bind as in Python", () => {
  const numbers = { "2 + 3 * 4": 14, "2 * 3 ^ 2": 18, "-2 ^ 2": -4, "2 ^ -1": 0.5, "2 ^ 3 ^ 2": 512, "8 / 4 / 2": 1, "8 - 4 - 2": 2, "1 < 2": 1, "(1 + 2) * 3": 9, "7 - -1": 8 };
  for (const [text, expected] of Object.entries(numbers)) {
    const { graph, snapshot, op } = graphOf(["exp", [[1]], [1]]);
    graph.formulas.set("exp", text);
    assert.equal(forward(graph, snapshot, op, 0).expression.value, expected, text);
  }
});

test("rules are written as on paper", () => {
  const rules = (op, attributes = {}) => {
    const shapes = operandNames[op].map(() => [2]);
    const { graph, snapshot, op: id } = graphOf([op, shapes, [2], attributes, positive]);
    const back = shapes.flatMap((_, slot) => backward(graph, snapshot, slot, 0).map(({ evaluation }) => evaluation.rule));
    return [forward(graph, snapshot, id, 0).rule, ...back];
  };
  const expected = {
    softsign: ["y = x / (1 + |x|)", "dy · 1 / (1 + |x|)²"],
    rsqrt: ["y = 1 / √x", "dy · (−½ y³)"],
    pow: ["y = aᵇ", "dy · (0 where b = 0, else b · aᵇ⁻¹)", "dy · (0 where a = 0, else y · log a)"],
    div: ["y = a / b", "dy · 1 / b", "dy · (−y / b)"],
    add: ["y = a + b", "dy", "dy"],
    sub: ["y = a − b", "dy", "dy · (−1)"],
    erf: ["y = erf x", "dy · 2 / √π · exp(−x²)"],
    relu: ["y = max(0, x)", "dy · [y > 0]"],
    silu: ["y = x · σ(x)", "dy · (σ(x) + y · (1 − σ(x)))"],
    log1p: ["y = log(1 + x)", "dy · 1 / (1 + x)"],
    log2: ["y = log₂ x", "dy · 1 / (x · log 2)"],
    exp2: ["y = 2ˣ", "dy · y · log 2"],
    expm1: ["y = exp x − 1", "dy · exp x"],
    squared_difference: ["y = (a − b)²", "dy · 2 (a − b)", "dy · 2 (b − a)"],
    remainder: ["y = a − b · ⌊a / b⌋", "dy", "dy · (−⌊a / b⌋)"],
  };
  for (const [op, texts] of Object.entries(expected)) assert.deepEqual(rules(op), texts);
  assert.deepEqual(rules("elu", { alpha: 1 }), ["y = x where x > 0, else α · (exp x − 1)", "dy · (1 where x > 0, else α · exp x)"]);
  assert.deepEqual(rules("gelu", { approximate: "none" }), ["y = x · Φ(x)", "dy · (Φ(x) + x · φ(x))"]);
  assert.equal(rules("gelu", { approximate: "tanh" })[0], "y = x / 2 · (1 + tanh(√(2 / π) · (x + 0.044715 x³)))");
  assert.deepEqual(rules("clamp", { min: 0 }), ["y = min(max(x, min), max)", "dy · [x ≥ min] · [x ≤ max]"]);
});

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
