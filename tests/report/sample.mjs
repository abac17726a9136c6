// Runs for the tests: a tiny encoder that is really trained, and large ones for the budgets.

import { histogram, statistics, stored } from "./arrays.mjs";
import { random } from "./random.mjs";
import { Tape } from "./tape.mjs";

const vocabulary = ["<pad>", "____", "my", "shoes", "are", "small", "the", "house", "is", "warm", "new", "old"];
const word = (text) => vocabulary.indexOf(text);
const sentences = [
  { words: ["my", "____", "are", "small", "<pad>"], place: 1, truth: "shoes" },
  { words: ["the", "house", "____", "warm", "<pad>"], place: 2, truth: "is" },
];
const [batch, length, width, heads, inner, layers] = [2, 5, 8, 2, 16, 2];
const notches = [0, 1, 2, 5, 10, 20, 40, 80];

function firstParameters({ normal }) {
  const parameters = new Map();
  const add = (name, shape, scale) => {
    const count = shape.reduce((a, b) => a * b, 1);
    parameters.set(name, { shape, data: Float32Array.from({ length: count }, () => (scale === 1 ? 1 : scale * normal())) });
  };
  add("embedding.weight", [vocabulary.length, width], 0.6);
  add("position.weight", [length, width], 0.3);
  for (let layer = 0; layer < layers; ++layer) {
    const name = `encoder.layers.${layer}`;
    for (const part of ["W_Q", "W_K", "W_V", "W_O"]) {
      add(`${name}.self_attention.${part}.weight`, [width, width], 0.35);
      add(`${name}.self_attention.${part}.bias`, [width], 0.02);
    }
    for (const part of ["norm1", "norm2"]) {
      add(`${name}.${part}.weight`, [width], 1);
      add(`${name}.${part}.bias`, [width], 0.01);
    }
    add(`${name}.linear1.weight`, [inner, width], 0.35);
    add(`${name}.linear1.bias`, [inner], 0.02);
    add(`${name}.linear2.weight`, [width, inner], 0.25);
    add(`${name}.linear2.bias`, [width], 0.02);
  }
  add("head.weight", [vocabulary.length, width], 0.35);
  add("head.bias", [vocabulary.length], 0.02);
  return parameters;
}

const modules = {
  "": "ToyEncoder",
  embedding: "Embedding",
  position: "Embedding",
  encoder: "TransformerEncoder",
  head: "Linear",
};
for (let layer = 0; layer < layers; ++layer) {
  const name = `encoder.layers.${layer}`;
  Object.assign(modules, {
    [name]: "TransformerEncoderLayer",
    [`${name}.self_attention`]: "MultiheadAttention",
    [`${name}.norm1`]: "LayerNorm",
    [`${name}.norm2`]: "LayerNorm",
    [`${name}.linear1`]: "Linear",
    [`${name}.linear2`]: "Linear",
  });
  for (const part of ["W_Q", "W_K", "W_V", "W_O"]) modules[`${name}.self_attention.${part}`] = "Linear";
}

/** One forward pass of both sentences: the tape, and the ids of what the report shows of it. */
function forward(parameters) {
  const tape = new Tape();
  const known = new Map();
  const parameter = (name) => {
    if (!known.has(name)) known.set(name, tape.leaf("parameter", name, parameters.get(name).shape, parameters.get(name).data));
    return known.get(name);
  };
  const linear = (name, x) => tape.within(name, () => tape.linear(x, parameter(`${name}.weight`), parameter(`${name}.bias`)));
  const norm = (name, x) =>
    tape.within(name, () => {
      const centred = tape.sub(x, tape.meanRows(x));
      const variance = tape.meanRows(tape.mul(centred, centred));
      const scaled = tape.div(centred, tape.sqrt(tape.addNumber(variance, Math.fround(1e-5))));
      return tape.add(tape.mul(scaled, parameter(`${name}.weight`)), parameter(`${name}.bias`));
    });
  const tokens = sentences.flatMap(({ words }) => words.map(word));
  const padding = tokens.map((token) => (token === 0 ? 1 : 0));
  const attentionWeights = [];
  const attention = (name, x) =>
    tape.within(name, () => {
      const split = (part, dims) => tape.permute(tape.reshape(linear(`${name}.${part}`, x), [batch, length, heads, width / heads]), dims);
      const scores = tape.matmul(split("W_Q", [0, 2, 1, 3]), split("W_K", [0, 2, 3, 1]));
      const scaled = tape.mulNumber(scores, Math.fround(1 / Math.sqrt(width / heads)));
      const weights = tape.softmax(tape.maskedFill(scaled, padding, [batch, 1, 1, length], -Infinity));
      attentionWeights.push(weights);
      const context = tape.permute(tape.matmul(weights, split("W_V", [0, 2, 1, 3])), [0, 2, 1, 3]);
      return linear(`${name}.W_O`, tape.reshape(context, [batch, length, width]));
    });
  const places = tokens.map((_, i) => i % length);
  let x = tape.add(
    tape.within("embedding", () => tape.embedding(parameter("embedding.weight"), tokens, [batch, length])),
    tape.within("position", () => tape.embedding(parameter("position.weight"), places, [batch, length])),
  );
  for (let layer = 0; layer < layers; ++layer) {
    const name = `encoder.layers.${layer}`;
    tape.within(name, () => {
      x = norm(`${name}.norm1`, tape.add(x, attention(`${name}.self_attention`, x)));
      x = norm(`${name}.norm2`, tape.add(x, linear(`${name}.linear2`, tape.relu(linear(`${name}.linear1`, x)))));
    });
  }
  const logits = linear("head", x);
  const logProbs = tape.logSoftmax(logits);
  const targets = new Float32Array(tape.data(logProbs).length);
  sentences.forEach(({ place, truth }, row) => (targets[(row * length + place) * vocabulary.length + word(truth)] = -1));
  const loss = tape.divNumber(tape.sum(tape.mul(logProbs, tape.leaf("constant", "targets", tape.shape(logProbs), targets))), sentences.length);
  return { tape, known, loss, logProbs, attentionWeights };
}

/** Momentum and its squares, as Adam keeps them. */
class Adam {
  constructor(rate) {
    this.rate = rate;
    this.state = new Map();
    this.time = 0;
  }

  step(parameters, gradientOf) {
    ++this.time;
    const updates = new Map();
    for (const [name, { data }] of parameters) {
      const grad = gradientOf(name);
      const state = this.state.get(name) ?? { mean: new Float64Array(data.length), square: new Float64Array(data.length) };
      this.state.set(name, state);
      updates.set(name, Float32Array.from(data, (_, i) => {
        state.mean[i] = 0.9 * state.mean[i] + 0.1 * grad[i];
        state.square[i] = 0.98 * state.square[i] + 0.02 * grad[i] ** 2;
        const mean = state.mean[i] / (1 - 0.9 ** this.time);
        return (-this.rate * mean) / (Math.sqrt(state.square[i] / (1 - 0.98 ** this.time)) + 1e-8);
      }));
    }
    for (const [name, { data }] of parameters) updates.get(name).forEach((change, i) => (data[i] += change));
    return updates;
  }
}

function answersOf(tape, logProbs, row) {
  const { place } = sentences[row];
  const start = (row * length + place) * vocabulary.length;
  return vocabulary
    .map((label, i) => ({ label, probability: Math.exp(tape.data(logProbs)[start + i]) }))
    .sort((a, b) => b.probability - a.probability)
    .slice(0, 5);
}

/** A run of the tiny encoder, and the numbers that the page must show. */
export function trainedRun({ seed = 0, rate = 0.01, title = "toy encoder, seed 0" } = {}) {
  const parameters = firstParameters(random(seed + 1));
  const adam = new Adam(rate);
  const losses = [];
  const rates = [];
  const parameterSnapshots = new Map([...parameters.keys()].map((name) => [name, []]));
  const attention = Array.from({ length: layers }, () => []);
  const predictions = sentences.map(() => []);
  const graphSnapshots = [];
  let graph = null;
  let last = null;
  for (let step = 0; step <= notches.at(-1); ++step) {
    const { tape, known, loss, logProbs, attentionWeights } = forward(parameters);
    const gradients = tape.gradients(loss);
    losses.push(tape.data(loss)[0]);
    rates.push(rate * Math.min(1, (step + 1) / 10));
    adam.rate = rates.at(-1);
    const taken = notches.includes(step);
    const before = taken && new Map([...parameters].map(([name, { data }]) => [name, data.slice()]));
    const finished = step === notches.at(-1);
    const gradientOf = (name) => gradients[known.get(name)];
    const updates = finished ? null : adam.step(parameters, gradientOf);
    if (!taken) continue;
    graph = tape.graph("one batch", loss, modules);
    graphSnapshots.push(tape.snapshot(gradients));
    for (const name of parameters.keys()) {
      parameterSnapshots.get(name).push({
        weight: histogram(before.get(name)),
        gradient: finished ? null : histogram(gradientOf(name)),
        update: finished ? null : histogram(updates.get(name)),
      });
    }
    attentionWeights.forEach((id, layer) => {
      const first = (numbers) => stored(numbers.slice(0, heads * length * length), [heads, length, length]);
      attention[layer].push({ weights: first(tape.data(id)), gradient: first(gradients[id]) });
    });
    sentences.forEach((_, row) => predictions[row].push({ answers: answersOf(tape, logProbs, row) }));
    last = { tape, gradients, attentionWeights };
  }
  const { words } = sentences[0];
  const masked = Uint8Array.from({ length: length * length }, (_, i) => (words[i % length] === "<pad>" ? 1 : 0));
  const tensor = (section, name, id, axes, more = {}) => ({
    section, name, axes, graph: 0, id, ...more,
    value: stored(last.tape.data(id), last.tape.shape(id)),
    gradient: stored(last.gradients[id], last.tape.shape(id)),
  });
  const named = (name) => graph.values.findIndex((value) => value.name === name);
  const run = {
    title,
    program: "train_toy_encoder",
    options: { "--lr": String(rate), "--steps": "80", "--heads": String(heads), ...(seed === 0 ? { "--warmup": "10" } : {}) },
    seed: String(seed),
    versions: { xgrad: "0.2.0", compiler: "GCC 12.2.0", BLAS: "OpenBLAS 0.3.21" },
    parameter_count: [...parameters.values()].reduce((sum, { data }) => sum + data.length, 0),
    threads: 1,
    seconds: 0.84,
    memory_bytes: 21_400_000,
    notes: seed === 0 ? ["Attention is of the first sentence alone."] : [],
    steps: notches,
    curves: [
      { name: "loss", first: 0, values: stored(Float32Array.from(losses)) },
      { name: "learning rate", steps: stored(BigInt64Array.from(rates, (_, i) => BigInt(i))), values: stored(Float64Array.from(rates)) },
    ],
    parameters: [...parameters].map(([name, { shape }]) => ({ name, shape, snapshots: parameterSnapshots.get(name) })),
    attention: attention.map((snapshots, layer) => ({
      module: `encoder.layers.${layer}.self_attention`,
      example: words.join(" "),
      queries: words,
      keys: words,
      heads,
      masked: stored(masked, [length, length]),
      snapshots,
      graph: 0,
      value: last.attentionWeights[layer],
      row: 0,
    })),
    predictions: sentences.map(({ words, truth }, row) => ({ text: words.join(" "), truth, snapshots: predictions[row] })),
    graphs: [{ ...graph, snapshots: graphSnapshots }],
    tensors: [
      tensor("1) Tokens", "embeddings", named("embedding"), ["sentence", "token", "width"], { rows: words }),
      tensor("2) Q, K, V", "Q", named("linear"), ["sentence", "token", "width"], { rows: words }),
      tensor("3) Attention", "weights", last.attentionWeights[0], ["sentence", "head", "query", "key"], { rows: words, columns: words }),
    ],
    profile: {
      seconds: 0.61,
      ops: [
        { name: "linear", calls: 1053, forward_seconds: 0.11, backward_seconds: 0.19, bytes: 812_000 },
        { name: "softmax", calls: 162, forward_seconds: 0.02, backward_seconds: 0.03, bytes: 65_000 },
        { name: "matmul", calls: 324, forward_seconds: 0.05, backward_seconds: 0.09, bytes: 131_000 },
      ],
      modules: Array.from({ length: layers }, (_, layer) => ({
        name: `encoder.layers.${layer}`, calls: 81, forward_seconds: 0.1, backward_seconds: 0.16, bytes: 520_000,
      })),
    },
  };
  return run;
}

/** What a run must have; the rest may be missing. */
export const emptyRun = (title) => ({ title });

/** 12 layers of 12 heads of 128 tokens with their gradients, as a fine-tuned model has. */
export function largeAttentionRun() {
  const { uniform, normal } = random(7);
  const [count, tokens] = [12, 128];
  const size = count * tokens * tokens;
  const words = Array.from({ length: tokens }, (_, i) => `token${i}`);
  const noise = Float32Array.from({ length: size }, () => normal() * 1e-3);
  const weights = new Float32Array(size);
  for (let row = 0; row < count * tokens; ++row) {
    let total = 0;
    for (let k = 0; k < tokens; ++k) total += weights[row * tokens + k] = uniform() ** 6 + (k === row % tokens ? 1 : 0);
    for (let k = 0; k < tokens; ++k) weights[row * tokens + k] /= total;
  }
  const attention = Array.from({ length: count }, (_, layer) => ({
    module: `encoder.layers.${layer}.attention`,
    example: "a long text",
    queries: words,
    keys: words,
    heads: count,
    snapshots: [{ weights: stored(weights, [count, tokens, tokens]), gradient: stored(noise, [count, tokens, tokens]) }],
  }));
  return { title: "twelve layers of twelve heads", steps: [0], attention };
}

/** A graph of about 2,000 ops: twelve equal layers. */
export function largeGraphRun() {
  const { normal } = random(3);
  const values = [{ kind: "constant", name: "input", inputs: [], shape: [128, 768] }];
  const names = { "": "Model", encoder: "TransformerEncoder", head: "Linear" };
  const add = (value) => values.push({ shape: [128, 768], attributes: {}, ...value }) - 1;
  let x = 0;
  for (let layer = 0; layer < 12; ++layer) {
    const name = `encoder.layers.${layer}`;
    names[name] = "TransformerEncoderLayer";
    for (let part = 0; part < 11; ++part) {
      const module = `${name}.part${String.fromCharCode(97 + part)}`;
      names[module] = "Part";
      const weight = add({ kind: "parameter", name: `${module}.weight`, inputs: [], shape: [768, 768] });
      for (let i = 0; i < 15; ++i) {
        x = add({ kind: "op", name: ["linear", "add", "mul", "relu"][i % 4], module, inputs: i === 0 ? [x, weight] : [x] });
      }
    }
  }
  const loss = add({ kind: "op", name: "sum", inputs: [x], shape: [] });
  const some = statistics(Float32Array.from({ length: 50 }, normal));
  const list = values.map(() => some);
  const snapshot = { value: list, gradient: list };
  const graph = { name: "large", loss, modules: names, values, snapshots: [snapshot, snapshot] };
  return { title: "two thousand ops", steps: [0, 100], graphs: [graph] };
}
