#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../../base/detail/arrays/mt19937.hpp"
#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/detail/system/parallel.hpp"
#include "../gemm/gemm.hpp"
#include "../lanes.hpp"
#include "../pointwise/vectorized_math.hpp"
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

/// Keys from `begin` on, up to `end`.
struct Keys {
  std::size_t begin, end;

  std::size_t count() const { return end - begin; }
};

/// The mask of one head, or of the queries that begin at one of its rows.
template <typename T>
struct HeadMask {
  const bool* allowed;
  const T* bias;
  std::ptrdiff_t query_stride, key_stride;
  KeyWindow window;

  /// Whether a query may be left without any key; a causal mask shows each query one.
  bool may_hide_all_keys() const {
    return allowed != nullptr || bias != nullptr || window.left != KeyWindow::unlimited;
  }

  HeadMask from(std::size_t query) const {
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(query) * query_stride;
    HeadMask rest = *this;
    if (allowed) rest.allowed += offset;
    if (bias) rest.bias += offset;
    rest.window.first += query;
    return rest;
  }

  /// The keys among `all` that come into question for query `row`.
  Keys keys(std::size_t row, const Keys& all) const {
    const std::size_t end = std::max(all.begin, window.end(row, all.end));
    return {std::clamp(window.begin(row), all.begin, end), end};
  }
};

/// Hides what query `row` may not see of these keys, and adds the bias.
template <typename T>
XGRAD_INLINE void mask_row(const HeadMask<T>& mask, std::size_t row, const Keys& keys, T* scores) {
  const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(row) * mask.query_stride +
                                static_cast<std::ptrdiff_t>(keys.begin) * mask.key_stride;
  if (mask.allowed) hide_keys(mask.allowed + offset, mask.key_stride, scores, keys.count());
  if (mask.bias) add_bias(mask.bias + offset, mask.key_stride, scores, keys.count());
}

/// scores, whose columns are these keys, <- softmax(scores + mask), in place; a row without any key becomes
/// zeros. `statistics` may be null. Bound by the exponentials.
XGRAD_KERNEL(void, masked_softmax_rows,
             (const HeadMask<T>& mask, const Keys& keys, const Matrix<T>& scores, T* statistics),
             (mask, keys, scores, statistics)) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  T* row = scores.data;
  for (std::size_t r = 0; r < scores.rows; ++r, row += scores.stride) {
    const Keys seen = mask.keys(r, keys);
    T* const first = row + (seen.begin - keys.begin);
    mask_row(mask, r, seen, first);
    std::fill(row, first, T(0));
    with_length(seen.count(), [&](auto n) XGRAD_INLINE_LAMBDA {
      T max = max_lanes(first, n), scale = 0;
      if (max == hidden && std::all_of(first, first + n, [&](T s) { return s == hidden; })) {
        std::fill_n(first, n, T(0));
        max = 0;
      } else {
        scale = softmax_row(first, first, n, max);
      }
      std::fill(first + n, row + scores.cols, T(0));
      if (statistics) {
        statistics[2 * r] = max;
        statistics[2 * r + 1] = scale;
      }
    });
  }
}

/// The same probabilities again, to the bit.
XGRAD_KERNEL(void, masked_softmax_from_statistics,
             (const HeadMask<T>& mask, const Keys& keys, const Matrix<T>& scores, const T* statistics),
             (mask, keys, scores, statistics)) {
  T* row = scores.data;
  for (std::size_t r = 0; r < scores.rows; ++r, row += scores.stride) {
    const Keys seen = mask.keys(r, keys);
    T* const first = row + (seen.begin - keys.begin);
    mask_row(mask, r, seen, first);
    const T max = statistics[2 * r], scale = statistics[2 * r + 1];
    std::fill(row, first, T(0));
    const std::size_t n = seen.count();
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) first[i] = vectorized::exp_nonpositive(first[i] - max) * scale;
    std::fill(first + n, row + scores.cols, T(0));
  }
}

/// s <- cap tanh(s / cap) for all scores; `slopes`, with the stride of the scores, may be null: the
/// derivative. Bound by tanh.
XGRAD_KERNEL(void, cap_scores, (T cap, const Matrix<T>& scores, T* slopes), (cap, scores, slopes)) {
  for (std::size_t r = 0; r < scores.rows; ++r) {
    T* const row = scores.data + r * scores.stride;
    if (slopes) {
      T* const slope = slopes + r * scores.stride;
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < scores.cols; ++i) {
        const T bounded = vectorized::tanh(row[i] / cap);
        row[i] = cap * bounded;
        slope[i] = T(1) - bounded * bounded;
      }
    } else {
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < scores.cols; ++i) row[i] = cap * vectorized::tanh(row[i] / cap);
    }
  }
}

/// slopes <- slopes dscores, both with the stride of dscores.
XGRAD_KERNEL(void, multiply_slopes, (const Matrix<const T>& dscores, T* slopes), (dscores, slopes)) {
  for (std::size_t r = 0; r < dscores.rows; ++r) {
    const T* const row = dscores.data + r * dscores.stride;
    T* const slope = slopes + r * dscores.stride;
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < dscores.cols; ++i) slope[i] *= row[i];
  }
}

/// dscores <- probs (dscores - sum(dscores probs)) of each row.
XGRAD_KERNEL(void, softmax_grad_in_place, (const Matrix<const T>& probs, const Matrix<T>& dscores),
             (probs, dscores)) {
  with_length(dscores.cols, [&](auto n) XGRAD_INLINE_LAMBDA {
    for (std::size_t r = 0; r < dscores.rows; ++r) {
      T* const row = dscores.data + r * dscores.stride;
      softmax_grad_row<T>(row, probs.data + r * probs.stride, row, n);
    }
  });
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

template <typename T>
void clear_rows(const Matrix<T>& y, std::size_t begin, std::size_t end) {
  for (std::size_t r = begin; r < end; ++r) std::fill_n(y.data + r * y.stride, y.cols, T(0));
}

/// The sum over queries of what blocks of them, and the heads that share keys, give to a range of the keys'
/// rows. What nothing was given to is 0.
template <typename T>
class KeyGradient {
 public:
  explicit KeyGradient(const Matrix<T>& sum) : sum_(sum) {}

  void add(const HeadMask<T>& mask, const Matrix<const T>& probs, T alpha, const Matrix<const T>& a,
           const Matrix<const T>& b, const Keys& keys) {
    const bool is_first = written_ <= keys.begin;
    clear_rows(sum_, written_, is_first ? keys.begin : keys.end);
    add_over_queries<T>(mask, probs, alpha, a, b, is_first ? T(0) : T(1),
                        sum_.some_rows(keys.begin, keys.count()));
    written_ = std::max(written_, keys.end);
  }
  /// Of a head's queries all are added.
  void finish() {
    clear_rows(sum_, written_, sum_.rows);
    written_ = sum_.rows;
  }

 private:
  Matrix<T> sum_;
  std::size_t written_ = 0;  // rows
};

/// y = x scale where a bit is set, else 0, for the rows of x; each begins at a byte of `bits`, `bit_stride`
/// after that of the row before. y, with the stride of x, may be x.
XGRAD_KERNEL(void, dropout_rows,
             (const std::uint8_t* bits, std::size_t bit_stride, T scale, const Matrix<const T>& x, T* y),
             (bits, bit_stride, scale, x, y)) {
  using Integer = std::make_signed_t<vectorized::Bits<T>>;
  constexpr std::size_t group = 8;
  typedef Integer Integers __attribute__((vector_size(group * sizeof(T))));
  typedef T Row __attribute__((vector_size(group * sizeof(T))));
  constexpr Integers places = {1, 2, 4, 8, 16, 32, 64, 128};
  for (std::size_t r = 0; r < x.rows; ++r) {
    const T* from = x.data + r * x.stride;
    T* to = y + r * x.stride;
    const std::uint8_t* byte = bits + r * bit_stride;
    for (std::size_t left = x.cols; left > 0; ++byte) {
      const std::size_t n = std::min(left, group);
      const Integers set = ((Integers{} + Integer{*byte}) & places) == places;  // all bits of the kept
      if (n == group) {
        Row row;
        std::memcpy(&row, from, sizeof row);
        row *= scale;
        Integers kept;
        std::memcpy(&kept, &row, sizeof kept);
        kept &= set;
        std::memcpy(to, &kept, sizeof kept);
      } else {
        for (std::size_t i = 0; i < n; ++i) to[i] = set[i] != 0 ? from[i] * scale : T(0);
      }
      from += n, to += n, left -= n;
    }
  }
}

/// How many queries are worked on at once: their scores, and the gradients of those, stay in the second-level
/// cache, and each product is large enough for its keys to be worth packing. Fewer in a window, as no block
/// computes what none of its queries sees.
std::size_t queries_at_once(const AttentionSizes& sizes, const KeyWindow& window) {
  constexpr std::size_t cached = std::size_t{1} << 17, least = 32, most_in_window = 64;
  std::size_t most = std::max(least, cached / std::max<std::size_t>(sizes.k_len, 1));
  if (window.is_limited()) most = std::min(most, std::clamp(sizes.q_len / 8, least, most_in_window));
  return std::clamp<std::size_t>(sizes.q_len, 1, most);
}

/// One head of the arrays of a call: matrices of some of its queries, or of all its keys.
template <typename T>
class Head {
 public:
  Head(const AttentionInput<T>& input, std::size_t number)
      : sizes_(input.sizes),
        layout_(input.layout),
        number_(number),
        batch_(number / sizes_.heads),
        head_(number % sizes_.heads) {}

  /// `rows` queries of q, out and the like; all rows of k and v.
  template <typename U>
  Matrix<U> q(U* array, std::size_t query, std::size_t rows) const {
    return of_head(array, layout_.q, head_, sizes_.head_dim).some_rows(query, rows);
  }
  template <typename U>
  Matrix<U> out(U* array, std::size_t query, std::size_t rows) const {
    const AttentionRows contiguous{sizes_.q_len, sizes_.heads * sizes_.v_dim};
    return of_head(array, contiguous, head_, sizes_.v_dim).some_rows(query, rows);
  }
  template <typename U>
  Matrix<U> k(U* array) const {
    return of_head(array, layout_.k, kv_head(), sizes_.head_dim);
  }
  template <typename U>
  Matrix<U> v(U* array) const {
    return of_head(array, layout_.v, kv_head(), sizes_.v_dim);
  }

  /// Those that `rows` queries may see at most, from a multiple of eight on: dropout has a bit for each.
  Keys keys(const KeyWindow& window, std::size_t query, std::size_t rows) const {
    const std::size_t end = window.end(query + rows - 1, sizes_.k_len);
    return {std::min(window.begin(query) / 8 * 8, end), end};
  }

  /// The scores of some queries and keys in an array like the scores; the row of `query` in the statistics,
  /// which may be null, and in the bits of dropout.
  template <typename U>
  Matrix<U> scores(U* array, std::size_t query, std::size_t rows, const Keys& keys) const {
    return {array + (number_ * sizes_.q_len + query) * sizes_.k_len + keys.begin, rows, keys.count(),
            sizes_.k_len};
  }
  template <typename U>
  U* statistics(U* array, std::size_t query) const {
    return array ? array + 2 * (number_ * sizes_.q_len + query) : nullptr;
  }
  const std::uint8_t* kept(const AttentionInput<T>& input, std::size_t query, const Keys& keys) const {
    return input.dropout.kept + (number_ * sizes_.q_len + query) * bytes_of_bits(sizes_.k_len) +
           keys.begin / 8;
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
    return {allowed, mask.bias ? mask.bias + offset : nullptr, mask.query_stride, mask.key_stride,
            input.window};
  }

 private:
  template <typename U>
  Matrix<U> of_head(U* array, const AttentionRows& rows, std::size_t head, std::size_t dim) const {
    return {array + batch_ * rows.length * rows.stride + head * dim, rows.length, dim, rows.stride};
  }
  std::size_t kv_head() const { return head_ / (sizes_.heads / sizes_.kv_heads); }

  const AttentionSizes& sizes_;
  const AttentionLayout& layout_;
  std::size_t number_, batch_, head_;
};

/// How many pieces of work all heads are, `together` of which are never divided, of more heads where these
/// are little work: then an even number, as that of parallel_pieces.
std::size_t head_pieces(const AttentionSizes& sizes, std::size_t together) {
  constexpr std::size_t piece_work = std::size_t{1} << 17, exponential = 32;  // in multiplications
  const std::size_t work =
      together * sizes.q_len * sizes.k_len * (sizes.head_dim + sizes.v_dim + exponential);
  const std::size_t units = sizes.batch * sizes.heads / together;
  if (work > piece_work) return units;
  return std::max<std::size_t>(units / (piece_work / std::max<std::size_t>(work, 1) + 1) / 2 * 2, 1);
}

/// Calls f(number, scratch) for the numbers of the heads of all batches, of which each `together` stay on one
/// thread, in order.
template <typename T, typename F>
void for_each_head(const AttentionInput<T>& input, std::size_t together, const AttentionWorkers<T>& workers,
                   const F& f) {
  const AttentionSizes& sizes = input.sizes;
  const std::size_t units = sizes.batch * sizes.heads / together, pieces = head_pieces(sizes, together);
  const std::size_t scratch = attention_scratch(sizes, input.window, input.cap != 0);
  const auto piece = [&](std::size_t i, std::size_t worker) {
    const std::size_t end = (i + 1) * units / pieces * together;
    for (std::size_t number = i * units / pieces * together; number < end; number += together)
      f(number, workers.scratch + worker * scratch);
  };
  parallel_for(pieces, piece, workers.count);
}

}  // namespace

std::size_t attention_workers(const AttentionSizes& sizes) {
  return std::clamp<std::size_t>(head_pieces(sizes, 1), 1, available_threads());
}

std::size_t attention_scratch(const AttentionSizes& sizes, const KeyWindow& window, bool is_capped) {
  if (sizes.batch * sizes.heads == 0) return 0;
  return (is_capped ? 3 : 2) * queries_at_once(sizes, window) * sizes.k_len;
}

template <typename T>
void attention_forward(const AttentionInput<T>& input, const AttentionRecord<T>& record,
                       const AttentionWorkers<T>& workers, T* out) {
  const AttentionSizes& sizes = input.sizes;
  const std::size_t k_len = sizes.k_len, block = queries_at_once(sizes, input.window);
  for_each_head<T>(input, 1, workers, [&](std::size_t number, T* own_scratch) {
    const Head<T> head(input, number);
    const HeadMask<T> mask = head.mask(input);
    for (std::size_t query = 0; query < sizes.q_len; query += block) {
      const std::size_t rows = std::min(block, sizes.q_len - query);
      const Keys keys = head.keys(input.window, query, rows);
      const Matrix<T> probs = record.probs ? head.scores(record.probs, query, rows, keys)
                                           : Matrix<T>(own_scratch + keys.begin, rows, keys.count(), k_len);
      gemm<T>(input.scale, head.q(input.q, query, rows),
              head.k(input.k).some_rows(keys.begin, keys.count()).transpose(), 0, probs);
      if (input.cap != 0) cap_scores<T>(input.cap, probs, nullptr);
      masked_softmax_rows<T>(mask.from(query), keys, probs, head.statistics(record.statistics, query));
      Matrix<T> weights = probs;
      if (input.dropout.kept) {
        weights.data = own_scratch + block * k_len + keys.begin;
        dropout_rows<T>(head.kept(input, query, keys), bytes_of_bits(k_len), input.dropout.scale, probs,
                        weights.data);
      }
      const Matrix<T> y = head.out(out, query, rows);
      gemm<T>(1, weights, head.v(input.v).some_rows(keys.begin, keys.count()), 0, y);
      clear_rows_without_keys<T>(mask, probs, y);
    }
  });
}

template <typename T>
void attention_backward(const T* dout, const AttentionInput<T>& input, const AttentionRecord<const T>& record,
                        const AttentionWorkers<T>& workers, const AttentionGrads<T>& grads) {
  const AttentionSizes& sizes = input.sizes;
  const std::size_t k_len = sizes.k_len, block = queries_at_once(sizes, input.window);
  if (sizes.batch * sizes.heads == 0) return;
  const std::size_t together = sizes.heads / sizes.kv_heads;  // heads that add to the same dk and dv
  const bool needs_scores = grads.dq || grads.dk;
  for_each_head<T>(input, together, workers, [&](std::size_t first, T* own_scratch) {
    const Head<T> shared(input, first);
    const Matrix<T> none(nullptr, 0, 0);
    KeyGradient<T> dk(grads.dk ? shared.k(grads.dk) : none), dv(grads.dv ? shared.v(grads.dv) : none);
    for (std::size_t number = first; number < first + together; ++number) {
      const Head<T> head(input, number);
      const HeadMask<T> mask = head.mask(input);
      for (std::size_t query = 0; query < sizes.q_len; query += block) {
        const std::size_t rows = std::min(block, sizes.q_len - query);
        const Keys keys = head.keys(input.window, query, rows);
        const Matrix<const T> q = head.q(input.q, query, rows), dy = head.out(dout, query, rows);
        const auto of_keys = [&](const Matrix<const T>& all) {
          return all.some_rows(keys.begin, keys.count());
        };
        const auto in_scratch = [&](std::size_t part) {
          return Matrix<T>(own_scratch + part * block * k_len + keys.begin, rows, keys.count(), k_len);
        };
        Matrix<const T> probs = in_scratch(0);
        if (record.statistics) {
          gemm<T>(input.scale, q, of_keys(head.k(input.k)).transpose(), 0, in_scratch(0));
          if (input.cap != 0)
            cap_scores<T>(input.cap, in_scratch(0), needs_scores ? in_scratch(2).data : nullptr);
          masked_softmax_from_statistics<T>(mask.from(query), keys, in_scratch(0),
                                            head.statistics(record.statistics, query));
        } else {
          probs = head.scores(record.probs, query, rows, keys);
        }
        const auto drop = [&](const Matrix<const T>& x, T* y) {
          dropout_rows<T>(head.kept(input, query, keys), bytes_of_bits(k_len), input.dropout.scale, x, y);
        };
        if (grads.dv) {
          Matrix<const T> weights = probs;
          if (input.dropout.kept) {
            weights = in_scratch(1);
            drop(probs, in_scratch(1).data);
          }
          dv.add(mask, probs, 1, weights, dy, keys);
        }
        Matrix<T> dscores = in_scratch(1);
        if (grads.dscores) {
          const Matrix<T> all = head.scores(grads.dscores, query, rows, {0, k_len});
          for (std::size_t r = 0; r < rows && keys.count() < k_len; ++r)
            std::fill_n(all.data + r * k_len, k_len, T(0));
          dscores = head.scores(grads.dscores, query, rows, keys);
        }
        if (needs_scores || grads.dscores) {
          gemm<T>(1, dy, of_keys(head.v(input.v)).transpose(), 0, dscores);
          if (input.dropout.kept) drop(dscores, dscores.data);
          softmax_grad_in_place<T>(probs, dscores);
          clear_rows_without_keys<T>(mask, probs, dscores);
        }
        Matrix<const T> dproducts = dscores;
        if (input.cap != 0 && needs_scores) {
          dproducts = in_scratch(2);
          multiply_slopes<T>(dscores, in_scratch(2).data);
        }
        if (grads.dq) {
          const Matrix<T> dq = head.q(grads.dq, query, rows);
          gemm<T>(input.scale, dproducts, of_keys(head.k(input.k)), 0, dq);
          clear_rows_without_keys<T>(mask, probs, dq);
        }
        if (grads.dk) dk.add(mask, probs, input.scale, dproducts, q, keys);
      }
      dk.finish();
      dv.finish();
    }
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
