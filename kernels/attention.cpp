#include "attention.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gemm.hpp"
#include "parallel.hpp"
#include "softmax.hpp"
#include "softmax_row.hpp"

namespace xgrad::kernels {

namespace {

/// scores[i] = -inf wherever the query may not attend to key i. Eight at a time: left alone, the compiler
/// takes as many numbers at once as fit bools into a vector, and short rows never fill one.
template <typename T>
XGRAD_INLINE void hide_keys(const bool* allowed, std::ptrdiff_t stride, T* scores, std::size_t n) {
  using Integer = std::make_signed_t<vectorized::Bits<T>>;
  constexpr std::size_t group = 8;
  typedef std::int8_t Bytes __attribute__((vector_size(group)));
  typedef Integer Integers __attribute__((vector_size(group * sizeof(T))));
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  std::size_t i = 0;
  for (; stride == 1 && i + group <= n; i += group) {
    Bytes bytes;
    Integers row;
    std::memcpy(&bytes, allowed + i, sizeof bytes);
    std::memcpy(&row, scores + i, sizeof row);
    const Integers visible = -__builtin_convertvector(bytes, Integers);  // all bits
    row = (row & visible) | (std::bit_cast<Integer>(hidden) & ~visible);
    std::memcpy(scores + i, &row, sizeof row);
  }
  for (; i < n; ++i) {
    const T score = scores[i];
    scores[i] = allowed[static_cast<std::ptrdiff_t>(i) * stride] ? score : hidden;
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

/// The mask of one head, or of the queries that begin at one of its rows.
template <typename T>
struct HeadMask {
  const bool* allowed;
  const T* bias;
  std::ptrdiff_t query_stride, key_stride;
  bool causal;
  std::size_t first_query;

  HeadMask from(std::size_t query) const {
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(query) * query_stride;
    return {allowed ? allowed + offset : nullptr,
            bias ? bias + offset : nullptr,
            query_stride,
            key_stride,
            causal,
            query};
  }
};

/// Hides what query `row` may not see, adds the bias, and returns how many keys come into question.
template <typename T>
XGRAD_INLINE std::size_t mask_row(const HeadMask<T>& mask, std::size_t row, T* scores, std::size_t cols) {
  const std::size_t visible = mask.causal ? std::min(cols, mask.first_query + row + 1) : cols;
  const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(row) * mask.query_stride;
  if (mask.allowed) hide_keys(mask.allowed + offset, mask.key_stride, scores, visible);
  if (mask.bias) add_bias(mask.bias + offset, mask.key_stride, scores, visible);
  return visible;
}

/// scores (rows, cols) <- softmax(scores + mask), in place; a row without any key becomes zeros. `scales` may
/// be null. Bound by the exponentials.
XGRAD_KERNEL(void, masked_softmax_rows,
             (const HeadMask<T>& mask, std::size_t rows, std::size_t cols, T* scores, T* scales),
             (mask, rows, cols, scores, scales)) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  for (std::size_t r = 0; r < rows; ++r, scores += cols) {
    const std::size_t visible = mask_row(mask, r, scores, cols);
    T max = max_lanes(scores, visible), scale = 0;
    if (max == hidden && std::all_of(scores, scores + visible, [](T s) { return s == hidden; })) {
      std::fill_n(scores, cols, T(0));
      max = 0;
    } else {
      scale = softmax_row(scores, scores, visible, max);
      std::fill(scores + visible, scores + cols, T(0));
    }
    if (scales) {
      scales[2 * r] = max;
      scales[2 * r + 1] = scale;
    }
  }
}

/// The same probabilities again, to the bit.
XGRAD_KERNEL(void, masked_exp_rows,
             (const HeadMask<T>& mask, std::size_t rows, std::size_t cols, T* scores, const T* scales),
             (mask, rows, cols, scores, scales)) {
  for (std::size_t r = 0; r < rows; ++r, scores += cols) {
    const std::size_t visible = mask_row(mask, r, scores, cols);
    const T max = scales[2 * r], scale = scales[2 * r + 1];
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < visible; ++i) scores[i] = vectorized::exp_nonpositive(scores[i] - max) * scale;
    std::fill(scores + visible, scores + cols, T(0));
  }
}

/// How many queries are worked on at once: their scores, and the gradients of those, stay in the second-level
/// cache, and each product is large enough for its keys to be worth packing.
std::size_t queries_at_once(const AttentionSizes& sizes) {
  constexpr std::size_t cached = std::size_t{1} << 17, least = 32;
  const std::size_t most = std::max(least, cached / std::max<std::size_t>(sizes.k_len, 1));
  return std::clamp<std::size_t>(sizes.q_len, 1, most);
}

/// One head of the arrays of a call: where its rows begin, and the leading dimensions.
template <typename T>
class Head {
 public:
  Head(const AttentionSizes& sizes, std::size_t number)
      : sizes_(sizes), number_(number), batch_(number / sizes.heads), head_(number % sizes.heads) {}

  std::size_t number() const { return number_; }
  std::size_t ld_qk() const { return sizes_.heads * sizes_.head_dim; }
  std::size_t ld_v() const { return sizes_.heads * sizes_.v_dim; }

  /// Row `query` of q, out and the like, row `key` of k and v; null in a null array.
  template <typename U>
  U* q(U* array, std::size_t query = 0) const {
    return at(array, sizes_.q_len, query, sizes_.head_dim);
  }
  template <typename U>
  U* out(U* array, std::size_t query = 0) const {
    return at(array, sizes_.q_len, query, sizes_.v_dim);
  }
  template <typename U>
  U* k(U* array) const {
    return at(array, sizes_.k_len, 0, sizes_.head_dim);
  }
  template <typename U>
  U* v(U* array) const {
    return at(array, sizes_.k_len, 0, sizes_.v_dim);
  }

  T* probs(const AttentionRecord<T>& record, std::size_t query) const {
    return record.probs ? record.probs + (number_ * sizes_.q_len + query) * sizes_.k_len : nullptr;
  }
  T* scales(const AttentionRecord<T>& record, std::size_t query) const {
    return record.scales ? record.scales + 2 * (number_ * sizes_.q_len + query) : nullptr;
  }

  HeadMask<T> mask(const MaskView<T>& mask, bool causal) const {
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(batch_) * mask.batch_stride +
                                  static_cast<std::ptrdiff_t>(head_) * mask.head_stride;
    const bool* allowed = mask.allowed ? mask.allowed + offset : nullptr;
    const bool for_all_queries = mask.query_stride == 0 && mask.key_stride == 1;
    if (allowed && for_all_queries &&
        std::find(allowed, allowed + sizes_.k_len, false) == allowed + sizes_.k_len) {
      allowed = nullptr;  // nothing is hidden
    }
    return {allowed, mask.bias ? mask.bias + offset : nullptr, mask.query_stride, mask.key_stride, causal, 0};
  }

 private:
  template <typename U>
  U* at(U* array, std::size_t length, std::size_t row, std::size_t dim) const {
    return array ? array + ((batch_ * length + row) * sizes_.heads + head_) * dim : nullptr;
  }

  const AttentionSizes& sizes_;
  std::size_t number_, batch_, head_;
};

/// How many heads are a piece of work: several where one is little.
std::size_t heads_at_once(const AttentionSizes& sizes) {
  constexpr std::size_t piece_work = std::size_t{1} << 17, exponential = 32;  // in multiplications
  const std::size_t work = sizes.q_len * sizes.k_len * (sizes.head_dim + sizes.v_dim + exponential);
  return piece_work / std::max<std::size_t>(work, 1) + 1;
}

/// Calls f(head, scratch) for each head of each batch.
template <typename T, typename F>
void for_each_head(const AttentionSizes& sizes, const AttentionWorkers<T>& workers, const F& f) {
  const auto heads = [&](std::size_t begin, std::size_t end, std::size_t worker) {
    for (std::size_t number = begin; number < end; ++number)
      f(Head<T>(sizes, number), workers.scratch + worker * attention_scratch(sizes));
  };
  parallel_chunks(sizes.batch * sizes.heads, heads_at_once(sizes), heads, workers.count);
}

}  // namespace

std::size_t attention_workers(const AttentionSizes& sizes) {
  const std::size_t pieces = sizes.batch * sizes.heads / heads_at_once(sizes);
  return std::clamp<std::size_t>(pieces, 1, available_threads());
}

std::size_t attention_scratch(const AttentionSizes& sizes) {
  if (sizes.batch * sizes.heads == 0) return 0;
  return 2 * queries_at_once(sizes) * sizes.k_len;
}

template <typename T>
void attention_forward(const AttentionSizes& sizes, const T* q, const T* k, const T* v,
                       std::type_identity_t<T> scale, const MaskView<T>& mask, bool causal,
                       const AttentionRecord<T>& record, const AttentionWorkers<T>& workers, T* out) {
  const std::size_t k_len = sizes.k_len, head_dim = sizes.head_dim, v_dim = sizes.v_dim;
  const std::size_t block = queries_at_once(sizes);
  for_each_head(sizes, workers, [&](const Head<T>& head, T* own_scratch) {
    const HeadMask<T> head_mask = head.mask(mask, causal);
    for (std::size_t query = 0; query < sizes.q_len; query += block) {
      const std::size_t rows = std::min(block, sizes.q_len - query);
      T* const probs = record.probs ? head.probs(record, query) : own_scratch;
      gemm<T>(false, true, rows, k_len, head_dim, scale, head.q(q, query), head.ld_qk(), head.k(k),
              head.ld_qk(), 0, probs, k_len);
      masked_softmax_rows<T>(head_mask.from(query), rows, k_len, probs, head.scales(record, query));
      gemm<T>(false, false, rows, v_dim, k_len, 1, probs, k_len, head.v(v), head.ld_v(), 0,
              head.out(out, query), head.ld_v());
    }
  });
}

template <typename T>
void attention_backward(const AttentionSizes& sizes, const T* dout, const T* q, const T* k, const T* v,
                        std::type_identity_t<T> scale, const MaskView<T>& mask, bool causal,
                        const AttentionRecord<T>& record, const AttentionWorkers<T>& workers, T* dq, T* dk,
                        T* dv) {
  const std::size_t k_len = sizes.k_len, head_dim = sizes.head_dim, v_dim = sizes.v_dim;
  const std::size_t block = queries_at_once(sizes);
  for_each_head(sizes, workers, [&](const Head<T>& head, T* own_scratch) {
    const std::size_t ld_qk = head.ld_qk(), ld_v = head.ld_v();
    const HeadMask<T> head_mask = head.mask(mask, causal);
    T* const dscores = own_scratch + block * k_len;
    std::size_t query = 0;
    do {  // once without any query, too: dk and dv are 0 then
      const std::size_t rows = std::min(block, sizes.q_len - query);
      const T* const q_rows = head.q(q, query);
      const T* const dout_rows = head.out(dout, query);
      const T* probs = head.probs(record, query);
      if (record.scales) {
        gemm<T>(false, true, rows, k_len, head_dim, scale, q_rows, ld_qk, head.k(k), ld_qk, 0, own_scratch,
                k_len);
        masked_exp_rows<T>(head_mask.from(query), rows, k_len, own_scratch, head.scales(record, query));
        probs = own_scratch;
      }
      const T keep = query > 0 ? T(1) : T(0);  // what earlier queries added to dk and dv
      if (dv)
        gemm<T>(true, false, k_len, v_dim, rows, 1, probs, k_len, dout_rows, ld_v, keep, head.v(dv), ld_v);
      if (dq || dk) {
        gemm<T>(false, true, rows, k_len, v_dim, 1, dout_rows, ld_v, head.v(v), ld_v, 0, dscores, k_len);
        softmax_grad_rows(dscores, probs, dscores, rows, k_len);
      }
      if (dq) {
        gemm<T>(false, false, rows, head_dim, k_len, scale, dscores, k_len, head.k(k), ld_qk, 0,
                head.q(dq, query), ld_qk);
      }
      if (dk) {
        gemm<T>(true, false, k_len, head_dim, rows, scale, dscores, k_len, q_rows, ld_qk, keep, head.k(dk),
                ld_qk);
      }
      query += block;
    } while (query < sizes.q_len);
  });
}

#define XGRAD_INSTANTIATE(T)                                                                         \
  template void attention_forward(const AttentionSizes&, const T*, const T*, const T*, T,            \
                                  const MaskView<T>&, bool, const AttentionRecord<T>&,               \
                                  const AttentionWorkers<T>&, T*);                                   \
  template void attention_backward(const AttentionSizes&, const T*, const T*, const T*, const T*, T, \
                                   const MaskView<T>&, bool, const AttentionRecord<T>&,              \
                                   const AttentionWorkers<T>&, T*, T*, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
