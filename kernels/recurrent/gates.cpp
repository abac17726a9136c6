#include "gates.hpp"

#include "../../base/detail/system/pieces.hpp"
#include "../pointwise/vectorized_math.hpp"

namespace xgrad::kernels {

using vectorized::sigmoid_of;

XGRAD_PARALLEL_KERNEL(rnn_tanh_step, rows, 2 * cols, (T * y, T* state, std::size_t rows, std::size_t cols),
                      (y, state, rows, cols)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin * cols; i < end * cols; ++i) state[i] = y[i] = vectorized::tanh(y[i]);
}

XGRAD_PARALLEL_KERNEL(rnn_relu_step, rows, cols, (T * y, T* state, std::size_t rows, std::size_t cols),
                      (y, state, rows, cols)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin * cols; i < end * cols; ++i) {
    const T sum = y[i];
    state[i] = y[i] = sum < T(0) ? T(0) : sum;
  }
}

XGRAD_PARALLEL_KERNEL(rnn_tanh_step_grad, rows, cols,
                      (const T* dy, const T* y, T* dgates, std::size_t rows, std::size_t cols),
                      (dy, y, dgates, rows, cols)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin * cols; i < end * cols; ++i) dgates[i] = dy[i] * (T(1) - y[i] * y[i]);
}

XGRAD_PARALLEL_KERNEL(rnn_relu_step_grad, rows, cols,
                      (const T* dy, const T* y, T* dgates, std::size_t rows, std::size_t cols),
                      (dy, y, dgates, rows, cols)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin * cols; i < end * cols; ++i) {
    const T g = dy[i];
    dgates[i] = y[i] <= T(0) ? T(0) : g;
  }
}

/// Three functions of an element.
XGRAD_PARALLEL_KERNEL(gru_step, rows, 8 * cols,
                      (T * gates, const T* recurrent, T* candidate, T* state, T* y, std::size_t rows,
                       std::size_t cols),
                      (gates, recurrent, candidate, state, y, rows, cols)) {
  for (std::size_t row = begin; row < end; ++row) {
    T *const r = gates + row * 3 * cols, *const z = r + cols, *const n = z + cols;
    const T *const to_r = recurrent + row * 3 * cols, *const to_z = to_r + cols, *const to_n = to_z + cols;
    T *const h = state + row * cols, *const out = y + row * cols, *const kept = candidate + row * cols;
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < cols; ++i) {
      const T reset = sigmoid_of(r[i] + to_r[i]), update = sigmoid_of(z[i] + to_z[i]);
      const T made = vectorized::tanh(n[i] + reset * to_n[i]);
      const T next = made + update * (h[i] - made);
      kept[i] = to_n[i];
      r[i] = reset;
      z[i] = update;
      n[i] = made;
      h[i] = next;
      out[i] = next;
    }
  }
}

XGRAD_PARALLEL_KERNEL(gru_step_grad, rows, 8 * cols,
                      (const T* gates, const T* candidate, const T* before, T* dstate, T* dgates,
                       T* drecurrent, std::size_t rows, std::size_t cols),
                      (gates, candidate, before, dstate, dgates, drecurrent, rows, cols)) {
  for (std::size_t row = begin; row < end; ++row) {
    const T *const r = gates + row * 3 * cols, *const z = r + cols, *const n = z + cols;
    const T *const kept = candidate + row * cols, *const h = before + row * cols;
    T *const dr = dgates + row * 3 * cols, *const dz = dr + cols, *const dn = dz + cols;
    T *const to_r = drecurrent + row * 3 * cols, *const to_z = to_r + cols, *const to_n = to_z + cols;
    T* const dh = dstate + row * cols;
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < cols; ++i) {
      const T reset = r[i], update = z[i], made = n[i], d = dh[i];
      const T of_made = d * (T(1) - update) * (T(1) - made * made);
      const T of_update = d * (h[i] - made) * update * (T(1) - update);
      const T of_reset = of_made * kept[i] * reset * (T(1) - reset);
      dr[i] = of_reset;
      to_r[i] = of_reset;
      dz[i] = of_update;
      to_z[i] = of_update;
      dn[i] = of_made;
      to_n[i] = of_made * reset;
      dh[i] = d * update;
    }
  }
}

/// Five functions of an element.
XGRAD_PARALLEL_KERNEL(lstm_step, rows, 12 * cols,
                      (T * gates, T* state, T* cell, T* h, std::size_t rows, std::size_t cols),
                      (gates, state, cell, h, rows, cols)) {
  for (std::size_t row = begin; row < end; ++row) {
    T *const i = gates + row * 4 * cols, *const f = i + cols, *const g = f + cols, *const o = g + cols;
    T *const c = state + row * cols, *const kept = cell + row * cols, *const out = h + row * cols;
    XGRAD_INDEPENDENT
    for (std::size_t k = 0; k < cols; ++k) {
      const T in = sigmoid_of(i[k]), forget = sigmoid_of(f[k]), made = vectorized::tanh(g[k]),
              shown = sigmoid_of(o[k]);
      const T next = forget * c[k] + vectorized::rounded(in * made);
      i[k] = in;
      f[k] = forget;
      g[k] = made;
      o[k] = shown;
      c[k] = next;
      kept[k] = next;
      out[k] = shown * vectorized::tanh(next);
    }
  }
}

XGRAD_PARALLEL_KERNEL(lstm_step_grad, rows, 10 * cols,
                      (const T* dh, const T* gates, const T* cell, const T* before, T* dstate, T* dgates,
                       std::size_t rows, std::size_t cols),
                      (dh, gates, cell, before, dstate, dgates, rows, cols)) {
  for (std::size_t row = begin; row < end; ++row) {
    const T *const i = gates + row * 4 * cols, *const f = i + cols, *const g = f + cols, *const o = g + cols;
    const T *const after = cell + row * cols, *const old = before + row * cols, *const dy = dh + row * cols;
    T *const di = dgates + row * 4 * cols, *const df = di + cols, *const dg = df + cols,
             *const d_o = dg + cols;
    T* const dc = dstate + row * cols;
    XGRAD_INDEPENDENT
    for (std::size_t k = 0; k < cols; ++k) {
      const T in = i[k], forget = f[k], made = g[k], shown = o[k], seen = vectorized::tanh(after[k]);
      const T d = dc[k] + vectorized::rounded(dy[k] * shown * (T(1) - seen * seen));
      di[k] = d * made * in * (T(1) - in);
      df[k] = d * old[k] * forget * (T(1) - forget);
      dg[k] = d * in * (T(1) - made * made);
      d_o[k] = dy[k] * seen * shown * (T(1) - shown);
      dc[k] = d * forget;
    }
  }
}

}  // namespace xgrad::kernels
