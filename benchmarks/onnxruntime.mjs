// ONNX Runtime, forward only: the encoder that bench_encoder measures, or a file as bench_onnx does.
// Needs node and npm, which installs the runtime into the folder that is the only argument.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { npmPackage } from './npm_package.mjs';

const PACKAGE = 'onnxruntime-node';
const VERSION = '1.30.0';
const OPSET = 17;
const PAD_ID = 0;

// Protocol buffers, as far as a model needs them: https://protobuf.dev/programming-guides/encoding
function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
const integer = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);
const text = (field, value) => bytes(field, Buffer.from(value));
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));
function float32(field, value) {
  const buffer = Buffer.alloc(4);
  buffer.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), buffer]);
}

// The messages of a model: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
const FLOAT = 1;
const INT64 = 7;

function attribute(name, value) {
  const types = { float: 1, integer: 2, integers: 7 };
  const typed = (type, ...values) => message(5, text(1, name), ...values, integer(20, types[type]));
  if (Array.isArray(value)) return typed('integers', ...value.map((number) => integer(8, number)));
  return Number.isInteger(value) ? typed('integer', integer(3, value)) : typed('float', float32(2, value));
}

function valueInfo(field, name, type, shape) {
  const dims = shape.map((size) => message(1, integer(1, size)));
  return message(field, text(1, name), message(2, message(1, integer(1, type), message(2, ...dims))));
}

class Graph {
  #nodes = [];
  #tensors = [];

  tensor(name, type, shape, data) {
    const dims = shape.map((size) => integer(1, size));
    this.#tensors.push(message(5, ...dims, integer(2, type), text(8, name), bytes(9, data)));
    return name;
  }
  number(value) {
    const data = Buffer.from(Float32Array.of(value).buffer);
    return this.tensor(`number${this.#tensors.length}`, FLOAT, [], data);
  }
  integers(...values) {
    const data = Buffer.from(BigInt64Array.from(values, BigInt).buffer);
    return this.tensor(`integers${this.#tensors.length}`, INT64, [values.length], data);
  }
  node(op, inputs, attributes = {}) {
    const output = `${op}${this.#nodes.length}`;
    const names = inputs.map((name) => text(1, name));
    const options = Object.entries(attributes).map(([name, value]) => attribute(name, value));
    this.#nodes.push(message(1, ...names, text(2, output), text(4, op), ...options));
    return output;
  }
  model(input, output) {
    const graph = message(7, ...this.#nodes, text(2, 'encoder'), ...this.#tensors, input, output);
    return Buffer.concat([integer(1, 8), graph, message(8, text(1, ''), integer(2, OPSET))]);
  }
}

function encoder(size, parameters, weights) {
  const graph = new Graph();
  let offset = 0;
  for (const { name, shape } of parameters) {
    const end = offset + 4 * shape.reduce((a, b) => a * b, 1);
    graph.tensor(name, FLOAT, shape, weights.subarray(offset, end));
    offset = end;
  }
  if (offset !== weights.length) throw new Error(`the file must have ${offset} bytes, got ${weights.length}`);

  const project = (x, name) =>
    graph.node('MatMul', [x, graph.node('Transpose', [`${name}.weight`], { perm: [1, 0] })]);
  const linear = (x, name) => graph.node('Add', [project(x, name), `${name}.bias`]);
  const norm = (x, name) =>
    graph.node('LayerNormalization', [x, `${name}.weight`, `${name}.bias`], { axis: -1, epsilon: 1e-5 });
  const split = graph.integers(0, 0, size.heads, size.d_model / size.heads);
  const joined = graph.integers(0, 0, size.d_model);
  const scale = graph.number(Math.sqrt(size.heads / size.d_model));
  const heads = (x, perm) => graph.node('Transpose', [graph.node('Reshape', [x, split])], { perm });

  const padding = graph.node('Equal', ['ids', graph.integers(PAD_ID)]);
  const wide = graph.node('Unsqueeze', [padding, graph.integers(1, 2)]);
  const mask = graph.node('Where', [wide, graph.number(-Infinity), graph.number(0)]);

  const tokens = graph.node('Gather', ['token_embedding.weight', 'ids']);
  let x = graph.node('Add', [tokens, 'position_embedding.pos_embedding.weight']);
  for (let i = 0; i < size.layers; ++i) {
    const layer = `encoder.layers.${i}`;
    const q = heads(project(x, `${layer}.self_attn.W_Q`), [0, 2, 1, 3]);
    const k = heads(project(x, `${layer}.self_attn.W_K`), [0, 2, 3, 1]);
    const v = heads(project(x, `${layer}.self_attn.W_V`), [0, 2, 1, 3]);
    const scores = graph.node('MatMul', [graph.node('Mul', [q, scale]), k]);
    const shares = graph.node('Softmax', [graph.node('Add', [scores, mask])], { axis: -1 });
    const mixed = graph.node('Transpose', [graph.node('MatMul', [shares, v])], { perm: [0, 2, 1, 3] });
    const attended = project(graph.node('Reshape', [mixed, joined]), `${layer}.self_attn.out_proj`);
    const y = norm(graph.node('Add', [x, attended]), `${layer}.norm1`);
    const inner = graph.node('Relu', [linear(y, `${layer}.feed_forward.linear1`)]);
    const fed = linear(inner, `${layer}.feed_forward.linear2`);
    x = norm(graph.node('Add', [y, fed]), `${layer}.norm2`);
  }
  const pooled = graph.node('ReduceMean', [x], { axes: [1], keepdims: 0 });
  const logits = linear(pooled, 'class_head');
  return {
    logits,
    model: graph.model(
      valueInfo(11, 'ids', INT64, [size.batch, size.seq]),
      valueInfo(12, logits, FLOAT, [size.batch, size.classes]),
    ),
  };
}

function crossEntropy(logits, labels) {
  const classes = logits.length / labels.length;
  const losses = labels.map((label, row) => {
    const values = logits.subarray(row * classes, (row + 1) * classes);
    return Math.log(values.reduce((sum, value) => sum + Math.exp(value), 0)) - values[label];
  });
  return losses.reduce((a, b) => a + b) / labels.length;
}

let forward; // async, of the model that was started

const library = `ONNX Runtime ${VERSION}, node ${process.versions.node}`;

// Of a model's bytes or its path, and arrays of integers by the names of its inputs; returns its outputs.
async function startModel(model, threads, inputs) {
  const { InferenceSession, Tensor } = npmPackage(PACKAGE, VERSION, join(process.argv[2], VERSION));
  const session = await InferenceSession.create(model, { intraOpNumThreads: threads, interOpNumThreads: 1 });
  const tensor = ({ shape, data }) => new Tensor('int64', BigInt64Array.from(data, BigInt), shape);
  const feeds = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, tensor(input)]));
  forward = () => session.run(feeds);
  return forward();
}

async function start({ size, threads, weights, parameters, ids, labels }) {
  const { logits, model } = encoder(size, parameters, readFileSync(weights));
  const inputs = { ids: { shape: [size.batch, size.seq], data: ids } };
  const outputs = await startModel(model, threads, inputs);
  return { library, loss: crossEntropy(outputs[logits].data, labels) };
}

async function startFile({ path, threads, inputs, output }) {
  const outputs = await startModel(path, threads, inputs);
  return { library, output: Array.from(outputs[output].data) };
}

async function timed({ calls, batches, warm_up }) {
  const times = { wall: [], cpu: [] };
  for (const until = performance.now() + warm_up; performance.now() < until; ) await forward();
  for (let batch = 0; batch < batches; ++batch) {
    const wall = performance.now();
    const cpu = process.cpuUsage();
    for (let call = 0; call < calls; ++call) await forward();
    const { user, system } = process.cpuUsage(cpu);
    times.wall.push((performance.now() - wall) / calls);
    times.cpu.push((user + system) / 1e3 / calls);
  }
  return times;
}

async function answer(request) {
  if (request.do === 'start') return start(request);
  if (request.do === 'start file') return startFile(request);
  if (request.do === 'forward' && forward) return timed(request);
  throw new Error(`cannot do '${request.do}' now`);
}

for await (const line of createInterface({ input: process.stdin })) {
  const reply = await Promise.resolve(line)
    .then(JSON.parse)
    .then(answer)
    .catch((error) => ({ error: error.message }));
  process.stdout.write(JSON.stringify(reply) + '\n');
}
