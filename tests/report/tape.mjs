// A small autograd in float32, which gives the tests a graph with right values and gradients.

import { elementCount, stored, ids as storedIds, statistics } from "./arrays.mjs";
import { formulas, operands } from "./descriptions.mjs";

function indexOf(flat, shape) {
  const index = new Array(shape.length);
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

const flatOf = (index, shape) => shape.reduce((flat, length, axis) => flat * length + index[axis], 0);

function broadcastFlat(index, shape) {
  const shift = index.length - shape.length;
  return shape.reduce((flat, length, axis) => flat * length + (length === 1 ? 0 : index[axis + shift]), 0);
}

function broadcastShape(a, b) {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, axis) => {
    const [x, y] = [a[axis - rank + a.length] ?? 1, b[axis - rank + b.length] ?? 1];
    return x === 1 ? y : x;
  });
}

export class Tape {
  constructor() {
    this.values = [];
    this.module = null;
  }

  #add(value, data, back = null) {
    this.values.push({ ...value, data: Float32Array.from(data), back });
    return this.values.length - 1;
  }

  leaf(kind, name, shape, data) {
    return this.#add({ kind, name, inputs: [], attributes: {}, shape }, data);
  }

  #op(name, inputs, shape, data, back, attributes = {}) {
    return this.#add({ kind: "op", name, module: this.module, inputs, attributes, shape }, data, back);
  }

  shape(id) {
    return this.values[id].shape;
  }

  data(id) {
    return this.values[id].data;
  }

  /** Calls `body` with the ops in it belonging to a module. */
  within(module, body) {
    const outer = this.module;
    this.module = module;
    try {
      return body();
    } finally {
      this.module = outer;
    }
  }

  #binary(name, a, b, f, partials) {
    const [A, B] = [this.values[a], this.values[b]];
    const shape = broadcastShape(A.shape, B.shape);
    const places = Array.from({ length: elementCount(shape) }, (_, flat) => {
      const index = indexOf(flat, shape);
      return [broadcastFlat(index, A.shape), broadcastFlat(index, B.shape)];
    });
    const back = (dy) => {
      const grads = [new Float64Array(A.data.length), new Float64Array(B.data.length)];
      places.forEach(([i, j], flat) => {
        const [da, db] = partials(A.data[i], B.data[j]);
        grads[0][i] += dy[flat] * da;
        grads[1][j] += dy[flat] * db;
      });
      return grads;
    };
    return this.#op(name, [a, b], shape, places.map(([i, j]) => f(A.data[i], B.data[j])), back);
  }

  add(a, b) {
    return this.#binary("add", a, b, (x, y) => x + y, () => [1, 1]);
  }
  sub(a, b) {
    return this.#binary("sub", a, b, (x, y) => x - y, () => [1, -1]);
  }
  mul(a, b) {
    return this.#binary("mul", a, b, (x, y) => x * y, (x, y) => [y, x]);
  }
  div(a, b) {
    return this.#binary("div", a, b, (x, y) => x / y, (x, y) => [1 / y, -x / (y * y)]);
  }

  #unary(name, a, f, partial, attributes = {}) {
    const { data, shape } = this.values[a];
    return this.#op(name, [a], shape, data.map(f), (dy) => [dy.map((d, i) => d * partial(data[i]))], attributes);
  }

  addNumber(a, other) {
    return this.#unary("add", a, (x) => x + other, () => 1, { other });
  }
  mulNumber(a, other) {
    return this.#unary("mul", a, (x) => x * other, () => other, { other });
  }
  divNumber(a, other) {
    return this.#unary("div", a, (x) => x / other, () => 1 / other, { other });
  }
  sqrt(a) {
    return this.#unary("sqrt", a, Math.sqrt, (x) => 0.5 / Math.sqrt(x));
  }
  relu(a) {
    return this.#unary("relu", a, (x) => Math.max(0, x), (x) => (x > 0 ? 1 : 0));
  }

  /** An op that copies: source(flat) is where an element comes from. */
  #copy(name, a, shape, source, attributes) {
    const { data } = this.values[a];
    const from = Array.from({ length: elementCount(shape) }, (_, flat) => source(flat));
    const back = (dy) => {
      const grad = new Float64Array(data.length);
      from.forEach((place, flat) => (grad[place] += dy[flat]));
      return [grad];
    };
    return this.#op(name, [a], shape, from.map((place) => data[place]), back, attributes);
  }

  reshape(a, shape) {
    return this.#copy("reshape", a, shape, (flat) => flat, { shape });
  }
  permute(a, dims) {
    const from = this.shape(a);
    const shape = dims.map((axis) => from[axis]);
    const source = (flat) => {
      const index = [];
      indexOf(flat, shape).forEach((k, i) => (index[dims[i]] = k));
      return flatOf(index, from);
    };
    return this.#copy("permute", a, shape, source, { dims });
  }
  embedding(weight, tokens, shape) {
    const width = this.shape(weight)[1];
    const source = (flat) => tokens[Math.floor(flat / width)] * width + (flat % width);
    return this.#copy("embedding", weight, [...shape, width], source, { ids: storedIds(tokens, shape) });
  }
  select(a, dim, start) {
    const from = this.shape(a);
    const shape = from.filter((_, axis) => axis !== dim);
    const source = (flat) => {
      const index = indexOf(flat, shape);
      index.splice(dim, 0, start);
      return flatOf(index, from);
    };
    return this.#copy("select", a, shape, source, { dim, start, step: 1 });
  }

  maskedFill(a, mask, maskShape, value) {
    const { data, shape } = this.values[a];
    const masked = Array.from(data, (_, flat) => mask[broadcastFlat(indexOf(flat, shape), maskShape)] !== 0);
    const attributes = { mask: stored(Uint8Array.from(mask), maskShape), value: Number.isFinite(value) ? value : String(value).replace("Infinity", "inf") };
    const back = (dy) => [dy.map((d, i) => (masked[i] ? 0 : d))];
    return this.#op("masked_fill", [a], shape, data.map((x, i) => (masked[i] ? value : x)), back, attributes);
  }

  #rows(name, a, f, partial) {
    const { data, shape } = this.values[a];
    const width = shape.at(-1);
    const y = new Float32Array(data.length);
    const eachRow = (work) => {
      for (let start = 0; start < data.length; start += width) work(start, start + width);
    };
    eachRow((start, end) => y.set(f(Array.from(data.subarray(start, end))), start));
    const back = (dy) => {
      const grad = new Float64Array(data.length);
      eachRow((start, end) => grad.set(partial(y.subarray(start, end), dy.subarray(start, end)), start));
      return [grad];
    };
    return this.#op(name, [a], shape, y, back, { dim: -1 });
  }

  softmax(a) {
    const f = (row) => {
      const most = Math.max(...row);
      const powers = row.map((x) => Math.exp(x - most));
      const total = powers.reduce((sum, x) => sum + x, 0);
      return powers.map((x) => x / total);
    };
    return this.#rows("softmax", a, f, (y, dy) => {
      const dot = y.reduce((sum, value, k) => sum + value * dy[k], 0);
      return Array.from(y, (value, k) => value * (dy[k] - dot));
    });
  }
  logSoftmax(a) {
    const f = (row) => {
      const most = Math.max(...row);
      const total = Math.log(row.reduce((sum, x) => sum + Math.exp(x - most), 0));
      return row.map((x) => x - most - total);
    };
    return this.#rows("log_softmax", a, f, (y, dy) => {
      const total = dy.reduce((sum, d) => sum + d, 0);
      return Array.from(y, (value, k) => dy[k] - Math.exp(value) * total);
    });
  }

  /** The sum or the mean over the last axis, which stays as 1, or over all axes. */
  #reduce(name, a, all, average) {
    const { data, shape } = this.values[a];
    const width = all ? data.length : shape.at(-1);
    const divisor = average ? width : 1;
    const y = Array.from({ length: data.length / width }, (_, row) =>
      data.subarray(row * width, (row + 1) * width).reduce((sum, x) => sum + x, 0) / divisor);
    const back = (dy) => [Float64Array.from(data, (_, i) => dy[Math.floor(i / width)] / divisor)];
    const dim = all ? shape.map((_, axis) => axis) : [shape.length - 1];
    return this.#op(name, [a], all ? [] : [...shape.slice(0, -1), 1], y, back, { dim, keepdim: !all });
  }
  meanRows(a) {
    return this.#reduce("mean", a, false, true);
  }
  sum(a) {
    return this.#reduce("sum", a, true, false);
  }

  matmul(a, b) {
    const [A, B] = [this.values[a], this.values[b]];
    const [n, k, m] = [A.shape.at(-2), A.shape.at(-1), B.shape.at(-1)];
    const batches = elementCount(A.shape.slice(0, -2));
    const y = new Float64Array(batches * n * m);
    const each = (work) => {
      for (let batch = 0; batch < batches; ++batch)
        for (let i = 0; i < n; ++i)
          for (let j = 0; j < m; ++j)
            for (let l = 0; l < k; ++l) work((batch * n + i) * m + j, (batch * n + i) * k + l, (batch * k + l) * m + j);
    };
    each((out, left, right) => (y[out] += A.data[left] * B.data[right]));
    const back = (dy) => {
      const grads = [new Float64Array(A.data.length), new Float64Array(B.data.length)];
      each((out, left, right) => {
        grads[0][left] += dy[out] * B.data[right];
        grads[1][right] += dy[out] * A.data[left];
      });
      return grads;
    };
    return this.#op("matmul", [a, b], [...A.shape.slice(0, -1), m], y, back, { trans_a: false, trans_b: false });
  }

  linear(x, weight, bias) {
    const [X, W, b] = [this.values[x], this.values[weight], this.values[bias]];
    const [out, width] = W.shape;
    const rows = X.data.length / width;
    const y = new Float64Array(rows * out);
    const each = (work) => {
      for (let r = 0; r < rows; ++r) for (let j = 0; j < out; ++j) for (let k = 0; k < width; ++k) work(r * out + j, r * width + k, j * width + k);
    };
    each((to, from, place) => (y[to] += X.data[from] * W.data[place]));
    y.forEach((value, i) => (y[i] = value + b.data[i % out]));
    const back = (dy) => {
      const grads = [X, W, b].map(({ data }) => new Float64Array(data.length));
      each((to, from, place) => {
        grads[0][from] += dy[to] * W.data[place];
        grads[1][place] += dy[to] * X.data[from];
      });
      dy.forEach((d, i) => (grads[2][i % out] += d));
      return grads;
    };
    return this.#op("linear", [x, weight, bias], [...X.shape.slice(0, -1), out], y, back);
  }

  /** d(loss)/d(value) of every value, in float32; null where the loss does not depend on it. */
  gradients(loss) {
    const sums = this.values.map(() => null);
    const result = this.values.map(() => null);
    sums[loss] = Float64Array.of(1);
    for (let id = this.values.length - 1; id >= 0; --id) {
      const { back, inputs } = this.values[id];
      if (sums[id] === null) continue;
      result[id] = Float32Array.from(sums[id]);
      back?.(result[id]).forEach((grad, slot) => {
        const sum = (sums[inputs[slot]] ??= new Float64Array(grad.length));
        grad.forEach((d, i) => (sum[i] += d));
      });
    }
    return result;
  }

  /** The values without their numbers, as a graph of a report has them. */
  graph(name, loss, modules) {
    const values = this.values.map(({ kind, name, module, inputs, attributes, shape }) => ({
      kind, name, inputs, attributes, shape, ...(module === null || module === undefined ? {} : { module }),
    }));
    return { name, loss, modules, operands, formulas, values };
  }

  snapshot(gradients) {
    return {
      value: this.values.map(({ data }) => statistics(data)),
      gradient: gradients.map((grad) => grad && statistics(grad)),
      values: this.values.map(({ data, shape }) => stored(data, shape)),
      gradients: gradients.map((grad, id) => grad && stored(grad, this.values[id].shape)),
    };
  }
}
