#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../../base/detail/bit_cast.hpp"
#include "../../base/detail/mt19937.hpp"
#include "../../base/detail/parallel.hpp"
#include "../gemm/gemm.hpp"
#include "../lanes.hpp"
#include "../rows/softmax.hpp"
#include "../rows/softmax_row.hpp"

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
    row = (row & visible) | (bit_cast<Integer>(hidden) & ~visible);
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

  /// Whether a query may be left without any key; a causal mask shows each query one.
  bool may_hide_all_keys() const { return allowed != nullptr || bias != nullptr; }

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

/// scores (rows, cols) <- softmax(scores + mask), in place; a row without any key becomes zeros.
/// `statistics` may be null. Bound by the exponentials.
XGRAD_KERNEL(void, masked_softmax_rows,
             (const HeadMask<T>& mask, std::size_t rows, std::size_t cols, T* scores, T* statistics),
             (mask, rows, cols, scores, statistics)) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  for (std::size_t r = 0; r < rows; ++r, scores += cols) {
    const std::size_t visible = mask_row(mask, r, scores, cols);
    with_length(visible, [&](auto n) XGRAD_INLINE_LAMBDA {
      T max = max_lanes(scores, n), scale = 0;
      if (max == hidden && std::all_of(scores, scores + n, [&](T s) { return s == hidden; })) {
        std::fill_n(scores, cols, T(0));
        max = 0;
      } else {
        scale = softmax_row(scores, scores, n, max);
        std::fill(scores + n, scores + cols, T(0));
      }
      if (statistics) {
        statistics[2 * r] = max;
        statistics[2 * r + 1] = scale;
      }
    });
  }
}

/// The same probabilities again, to the bit.
XGRAD_KERNEL(void, masked_softmax_from_statistics,
             (const HeadMask<T>& mask, std::size_t rows, std::size_t cols, T* scores, const T* statistics),
             (mask, rows, cols, scores, statistics)) {
  for (std::size_t r = 0; r < rows; ++r, scores += cols) {
    const std::size_t visible = mask_row(mask, r, scores, cols);
    const T max = statistics[2 * r], scale = statistics[2 * r + 1];
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < visible; ++i)
      scores[i] = vectorized::exp_nonpositive(scores[i] - max) * scale;
    std::fill(scores + visible, scores + cols, T(0));
  }
}

/// Whether the probabilities of a query are all 0: it may attend to no key.
template <typename T>
bool has_no_key(const Matrix<const T>& probs, std::size_t query) {
  const T* row = probs.data + query * probs.stride;
  return std::all_of(row, row + probs.cols, [](T p) { return p == T(0); });
}

/// Zeroes the rows of y of queries without a key: what hidden keys and values hold, be it nan, has no part in
/// them.
template <typename T>
void clear_rows_without_keys(const HeadMask<T>& mask, const Matrix<const T>& probs, const Matrix<T>& y) {
  if (!mask.may_hide_all_keys()) return;
  for (std::size_t r = 0; r < y.rows; ++r)
    if (has_no_key(probs, r)) std::fill_n(y.data + r * y.stride, y.cols, T(0));
}

/// sum = beta sum + alpha a^T b over the queries, the rows of a and b. Those without a key are left out: they
/// may hold nan.
template <typename T>
void add_over_queries(const HeadMask<T>& mask, const Matrix<const T>& probs, T alpha,
                      const Matrix<const T>& a, const Matrix<const T>& b, T beta, const Matrix<T>& sum) {
  std::size_t begin = 0;
  do {  // once for all queries, or for each run of queries that have a key
    std::size_t end = mask.may_hide_all_keys() ? begin : a.rows;
    while (end < a.rows && !has_no_key(probs, end)) ++end;
    gemm<T>(alpha, a.some_rows(begin, end - begin).transpose(), b.some_rows(begin, end - begin), beta, sum);
    beta = 1;
    begin = end + 1;
  } while (begin < a.rows);
}

/// y = x scale where a bit is set, else 0, for the rows of x; each begins at a byte of `bits`. y may be x.
XGRAD_KERNEL(void, dropout_rows, (const std::uint8_t* bits, T scale, const Matrix<const T>& x, T* y),
             (bits, scale, x, y)) {
  using Integer = std::make_signed_t<vectorized::Bits<T>>;
  constexpr std::size_t group = 8;
  typedef Integer Integers __attribute__((vector_size(group * sizeof(T))));
  typedef T Row __attribute__((vector_size(group * sizeof(T))));
  constexpr Integers places = {1, 2, 4, 8, 16, 32, 64, 128};
  const T* from = x.data;
  for (std::size_t r = 0; r < x.rows; ++r) {
    for (std::size_t left = x.cols; left > 0; ++bits) {
      const std::size_t n = std::min(left, group);
      const Integers set = ((Integers{} + Integer{*bits}) & places) == places;  // all bits of the kept
      if (n == group) {
        Row row;
        std::memcpy(&row, from, sizeof row);
        row *= scale;
        Integers kept;
        std::memcpy(&kept, &row, sizeof kept);
        kept &= set;
        std::memcpy(y, &kept, sizeof kept);
      } else {
        for (std::size_t i = 0; i < n; ++i) y[i] = set[i] != 0 ? from[i] * scale : T(0);
      }
      from += n, y += n, left -= n;
    }
  }
}

/// How many queries are worked on at once: their scores, and the gradients of those, stay in the second-level
/// cache, and each product is large enough for its keys to be worth packing.
std::size_t queries_at_once(const AttentionSizes& sizes) {
  constexpr std::size_t cached = std::size_t{1} << 17, least = 32;
  const std::size_t most = std::max(least, cached / std::max<std::size_t>(sizes.k_len, 1));
  return std::clamp<std::size_t>(sizes.q_len, 1, most);
}

/// One head of the arrays of a call: matrices of some of its queries, or of all its keys.
template <typename T>
class Head {
 public:
  Head(const AttentionSizes& sizes, std::size_t number)
      : sizes_(sizes), number_(number), batch_(number / sizes.heads), head_(number % sizes.heads) {}

  /// `rows` queries of q, out and the like; the keys of k and v.
  template <typename U>
  Matrix<U> q(U* array, std::size_t query, std::size_t rows) const {
    return part(array, sizes_.q_len, sizes_.head_dim).some_rows(query, rows);
  }
  template <typename U>
  Matrix<U> out(U* array, std::size_t query, std::size_t rows) const {
    return part(array, sizes_.q_len, sizes_.v_dim).some_rows(query, rows);
  }
  template <typename U>
  Matrix<U> k(U* array) const {
    return part(array, sizes_.k_len, sizes_.head_dim);
  }
  template <typename U>
  Matrix<U> v(U* array) const {
    return part(array, sizes_.k_len, sizes_.v_dim);
  }

  /// The row of `query` in an array like the scores, in the statistics, which may be null, and in the bits of
  /// dropout.
  template <typename U>
  U* scores(U* array, std::size_t query) const {
    return array + (number_ * sizes_.q_len + query) * sizes_.k_len;
  }
  template <typename U>
  U* statistics(U* array, std::size_t query) const {
    return array ? array + 2 * (number_ * sizes_.q_len + query) : nullptr;
  }
  const std::uint8_t* kept(const AttentionInput<T>& input, std::size_t query) const {
    return input.dropout.kept + (number_ * sizes_.q_len + query) * bytes_of_bits(sizes_.k_len);
  }

  HeadMask<T> mask(const AttentionInput<T>& input) const {
    const MaskView<T>& mask = input.mask;
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(batch_) * mask.batch_stride +
                                  static_cast<std::ptrdiff_t>(head_) * mask.head_stride;
    const bool* allowed = mask.allowed ? mask.allowed + offset : nullptr;
    const bool for_all_queries = mask.query_stride == 0 && mask.key_stride == 1;
    if (allowed && for_all_queries &&
        std::find(allowed, allowed + sizes_.k_len, false) == allowed + sizes_.k_len) {
      allowed = nullptr;  // nothing is hidden
    }
    return {allowed,           mask.bias ? mask.bias + offset : nullptr,
            mask.query_stride, mask.key_stride,
            input.causal,      0};
  }

 private:
  template <typename U>
  Matrix<U> part(U* array, std::size_t length, std::size_t dim) const {
    return {array + (batch_ * length * sizes_.heads + head_) * dim, length, dim, sizes_.heads * dim};
  }

  const AttentionSizes& sizes_;
  std::size_t number_, batch_, head_;
};

/// How many pieces of work all heads are, of several heads where one is little: then an even number, as that
/// of parallel_pieces.
std::size_t head_pieces(const AttentionSizes& sizes) {
  constexpr std::size_t piece_work = std::size_t{1} << 17, exponential = 32;  // in multiplications
  const std::size_t work = sizes.q_len * sizes.k_len * (sizes.head_dim + sizes.v_dim + exponential);
  const std::size_t heads = sizes.batch * sizes.heads;
  if (work > piece_work) return heads;
  return std::max<std::size_t>(heads / (piece_work / std::max<std::size_t>(work, 1) + 1) / 2 * 2, 1);
}

/// Calls f(head, scratch) for each head of each batch.
template <typename T, typename F>
void for_each_head(const AttentionSizes& sizes, const AttentionWorkers<T>& workers, const F& f) {
  const std::size_t heads = sizes.batch * sizes.heads, pieces = head_pieces(sizes);
  const auto piece = [&](std::size_t i, std::size_t worker) {
    for (std::size_t number = i * heads / pieces; number < (i + 1) * heads / pieces; ++number)
      f(Head<T>(sizes, number), workers.scratch + worker * attention_scratch(sizes));
  };
  parallel_for(pieces, piece, workers.count);
}

}  // namespace

std::size_t attention_workers(const AttentionSizes& sizes) {
  return std::clamp<std::size_t>(head_pieces(sizes), 1, available_threads());
}

std::size_t attention_scratch(const AttentionSizes& sizes) {
  if (sizes.batch * sizes.heads == 0) return 0;
  return 2 * queries_at_once(sizes) * sizes.k_len;
}

template <typename T>
void attention_forward(const AttentionInput<T>& input, const AttentionRecord<T>& record,
                       const AttentionWorkers<T>& workers, T* out) {
  const AttentionSizes& sizes = input.sizes;
  const std::size_t k_len = sizes.k_len, block = queries_at_once(sizes);
  for_each_head(sizes, workers, [&](const Head<T>& head, T* own_scratch) {
    const HeadMask<T> mask = head.mask(input);
    for (std::size_t query = 0; query < sizes.q_len; query += block) {
      const std::size_t rows = std::min(block, sizes.q_len - query);
      const Matrix<T> probs(record.probs ? head.scores(record.probs, query) : own_scratch, rows, k_len);
      gemm<T>(input.scale, head.q(input.q, query, rows), head.k(input.k).transpose(), 0, probs);
      masked_softmax_rows<T>(mask.from(query), rows, k_len, probs.data,
                             head.statistics(record.statistics, query));
      Matrix<T> weights = probs;
      if (input.dropout.kept) {
        weights.data = own_scratch + block * k_len;
        dropout_rows<T>(head.kept(input, query), input.dropout.scale, probs, weights.data);
      }
      const Matrix<T> y = head.out(out, query, rows);
      gemm<T>(1, weights, head.v(input.v), 0, y);
      clear_rows_without_keys<T>(mask, probs, y);
    }
  });
}

template <typename T>
void attention_backward(const T* dout, const AttentionInput<T>& input, const AttentionRecord<const T>& record,
                        const AttentionWorkers<T>& workers, const AttentionGrads<T>& grads) {
  const AttentionSizes& sizes = input.sizes;
  const std::size_t k_len = sizes.k_len, block = queries_at_once(sizes);
  for_each_head(sizes, workers, [&](const Head<T>& head, T* own_scratch) {
    const HeadMask<T> mask = head.mask(input);
    std::size_t query = 0;
    do {  // once without any query, too: dk and dv are 0 then
      const std::size_t rows = std::min(block, sizes.q_len - query);
      const Matrix<const T> q = head.q(input.q, query, rows), dy = head.out(dout, query, rows);
      Matrix<const T> probs(own_scratch, rows, k_len);
      if (record.statistics) {
        gemm<T>(input.scale, q, head.k(input.k).transpose(), 0, {own_scratch, rows, k_len});
        masked_softmax_from_statistics<T>(mask.from(query), rows, k_len, own_scratch,
                                          head.statistics(record.statistics, query));
      } else {
        probs.data = head.scores(record.probs, query);
      }
      T* const scratch = own_scratch + block * k_len;
      const std::uint8_t* const kept = input.dropout.kept ? head.kept(input, query) : nullptr;
      const T beta = query > 0 ? T(1) : T(0);  // keeps what earlier queries added to dk and dv
      if (grads.dv) {
        Matrix<const T> weights = probs;
        if (kept) {
          dropout_rows<T>(kept, input.dropout.scale, probs, scratch);
          weights.data = scratch;
        }
        add_over_queries<T>(mask, probs, 1, weights, dy, beta, head.v(grads.dv));
      }
      const Matrix<T> dscores(grads.dscores ? head.scores(grads.dscores, query) : scratch, rows, k_len);
      if (grads.dq || grads.dk || grads.dscores) {
        gemm<T>(1, dy, head.v(input.v).transpose(), 0, dscores);
        if (kept) dropout_rows<T>(kept, input.dropout.scale, dscores, dscores.data);
        softmax_grad_rows<T>(dscores.data, probs.data, dscores.data, rows, k_len);
        clear_rows_without_keys<T>(mask, probs, dscores);
      }
      if (grads.dq) {
        const Matrix<T> dq = head.q(grads.dq, query, rows);
        gemm<T>(input.scale, dscores, head.k(input.k), 0, dq);
        clear_rows_without_keys<T>(mask, probs, dq);
      }
      if (grads.dk) add_over_queries<T>(mask, probs, input.scale, dscores, q, beta, head.k(grads.dk));
      query += block;
    } while (query < sizes.q_len);
  });
}

#define XGRAD_INSTANTIATE(T)                                                                            \
  template void attention_forward(const AttentionInput<T>&, const AttentionRecord<T>&,                  \
                                  const AttentionWorkers<T>&, T*);                                      \
  template void attention_backward(const T*, const AttentionInput<T>&, const AttentionRecord<const T>&, \
                                   const AttentionWorkers<T>&, const AttentionGrads<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
