#include <algorithm>
#include <limits>
#include <xgrad/ops/kernels/attention.hpp>
#include <xgrad/ops/kernels/gemm.hpp>
#include <xgrad/ops/kernels/softmax.hpp>
#include <xgrad/ops/kernels/softmax_row.hpp>

namespace xgrad::kernels {

namespace {

/// scores[i] = -inf wherever the query may not attend to key i. In groups of 8: left alone, the compiler
/// takes as many numbers at once as fit bools into a vector, and short rows never fill one.
template <typename T>
XGRAD_INLINE void hide_keys(const bool* allowed, std::ptrdiff_t stride, T* scores, std::size_t n) {
  constexpr std::size_t group = 8;
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  std::size_t i = 0;
  for (; stride == 1 && i + group <= n; i += group) {
#pragma GCC unroll 1
    for (std::size_t l = 0; l < group; ++l) {
      const T score = scores[i + l];
      scores[i + l] = allowed[i + l] ? score : hidden;
    }
  }
  for (; i < n; ++i) {
    if (!allowed[static_cast<std::ptrdiff_t>(i) * stride]) scores[i] = hidden;
  }
}

/// scores[i] += bias of key i.
template <typename T>
XGRAD_INLINE void add_bias(const T* bias, std::ptrdiff_t stride, T* scores, std::size_t n) {
  if (stride == 1) {
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) scores[i] += bias[i];
  } else {
    for (std::size_t i = 0; i < n; ++i) scores[i] += bias[static_cast<std::ptrdiff_t>(i) * stride];
  }
}

/// scores (rows, cols) <- softmax(scores + mask), in place; a row without any key becomes zeros. The mask is
/// that of one head. Bound by the exponentials.
XGRAD_KERNEL(void, masked_softmax_rows,
             (T * scores, std::size_t rows, std::size_t cols, const bool* allowed, const T* bias,
              std::ptrdiff_t query_stride, std::ptrdiff_t key_stride, bool causal),
             (scores, rows, cols, allowed, bias, query_stride, key_stride, causal)) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  for (std::size_t r = 0; r < rows; ++r, scores += cols) {
    const std::size_t visible = causal ? std::min(cols, r + 1) : cols;
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(r) * query_stride;
    if (allowed) hide_keys(allowed + row, key_stride, scores, visible);
    if (bias) add_bias(bias + row, key_stride, scores, visible);
    const T max = max_lanes(scores, visible);
    if (max == hidden && std::all_of(scores, scores + visible, [](T s) { return s == hidden; })) {
      std::fill_n(scores, cols, T(0));
      continue;
    }
    softmax_row(scores, scores, visible, max);
    std::fill(scores + visible, scores + cols, T(0));
  }
}

/// Calls head(batch, head) for each of them.
template <typename Head>
void for_each_head(const AttentionSizes& sizes, Head head) {
  for (std::size_t b = 0; b < sizes.batch; ++b) {
    for (std::size_t h = 0; h < sizes.heads; ++h) head(b, h);
  }
}

/// Where the rows of one head of a (batch, len, heads * dim) array begin; the leading dimension is heads *
/// dim.
template <typename T>
T* at_head(T* array, const AttentionSizes& sizes, std::size_t len, std::size_t dim, std::size_t b,
           std::size_t h) {
  return array ? array + (b * len * sizes.heads + h) * dim : nullptr;
}

}  // namespace

template <typename T>
void attention_forward(const AttentionSizes& sizes, const T* q, const T* k, const T* v,
                       std::type_identity_t<T> scale, const MaskView<T>& mask, bool causal, T* probs,
                       bool keep_probs, T* out) {
  const std::size_t q_len = sizes.q_len, k_len = sizes.k_len, head_dim = sizes.head_dim, v_dim = sizes.v_dim;
  const std::size_t ld_qk = sizes.heads * head_dim, ld_v = sizes.heads * v_dim;
  for_each_head(sizes, [&](std::size_t b, std::size_t h) {
    const T* q_head = at_head(q, sizes, q_len, head_dim, b, h);
    const T* k_head = at_head(k, sizes, k_len, head_dim, b, h);
    const T* v_head = at_head(v, sizes, k_len, v_dim, b, h);
    const std::ptrdiff_t mask_offset = static_cast<std::ptrdiff_t>(b) * mask.batch_stride +
                                       static_cast<std::ptrdiff_t>(h) * mask.head_stride;
    gemm<T>(false, true, q_len, k_len, head_dim, scale, q_head, ld_qk, k_head, ld_qk, 0, probs, k_len);
    masked_softmax_rows<T>(probs, q_len, k_len, mask.allowed ? mask.allowed + mask_offset : nullptr,
                           mask.bias ? mask.bias + mask_offset : nullptr, mask.query_stride, mask.key_stride,
                           causal);
    gemm<T>(false, false, q_len, v_dim, k_len, 1, probs, k_len, v_head, ld_v, 0,
            at_head(out, sizes, q_len, v_dim, b, h), ld_v);
    if (keep_probs) probs += q_len * k_len;
  });
}

template <typename T>
void attention_backward(const AttentionSizes& sizes, const T* dout, const T* q, const T* k, const T* v,
                        const T* probs, std::type_identity_t<T> scale, T* dq, T* dk, T* dv, T* scratch) {
  const std::size_t q_len = sizes.q_len, k_len = sizes.k_len, head_dim = sizes.head_dim, v_dim = sizes.v_dim;
  const std::size_t ld_qk = sizes.heads * head_dim, ld_v = sizes.heads * v_dim;
  for_each_head(sizes, [&](std::size_t b, std::size_t h) {
    const T* dout_head = at_head(dout, sizes, q_len, v_dim, b, h);
    if (dv) {
      gemm<T>(true, false, k_len, v_dim, q_len, 1, probs, k_len, dout_head, ld_v, 0,
              at_head(dv, sizes, k_len, v_dim, b, h), ld_v);
    }
    if (dq || dk) {
      gemm<T>(false, true, q_len, k_len, v_dim, 1, dout_head, ld_v, at_head(v, sizes, k_len, v_dim, b, h),
              ld_v, 0, scratch, k_len);
      softmax_grad_rows(scratch, probs, scratch, q_len, k_len);
    }
    if (dq) {
      gemm<T>(false, false, q_len, head_dim, k_len, scale, scratch, k_len,
              at_head(k, sizes, k_len, head_dim, b, h), ld_qk, 0, at_head(dq, sizes, q_len, head_dim, b, h),
              ld_qk);
    }
    if (dk) {
      gemm<T>(true, false, k_len, head_dim, q_len, scale, scratch, k_len,
              at_head(q, sizes, q_len, head_dim, b, h), ld_qk, 0, at_head(dk, sizes, k_len, head_dim, b, h),
              ld_qk);
    }
    probs += q_len * k_len;
  });
}

template void attention_forward(const AttentionSizes&, const float*, const float*, const float*, float,
                                const MaskView<float>&, bool, float*, bool, float*);
template void attention_forward(const AttentionSizes&, const double*, const double*, const double*, double,
                                const MaskView<double>&, bool, double*, bool, double*);
template void attention_backward(const AttentionSizes&, const float*, const float*, const float*,
                                 const float*, const float*, float, float*, float*, float*, float*);
template void attention_backward(const AttentionSizes&, const double*, const double*, const double*,
                                 const double*, const double*, double, double*, double*, double*, double*);

}  // namespace xgrad::kernels
