#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace xgrad::kernels {

/// q is (batch, q_len, heads * head_dim), k (batch, k_len, kv_heads * head_dim), v (batch, k_len, kv_heads *
/// v_dim), out (batch, q_len, heads * v_dim), the probabilities (batch, heads, q_len, k_len). kv_heads
/// divides heads: each head of k and v serves heads / kv_heads heads of q that follow each other.
struct AttentionSizes {
  std::size_t batch, heads, kv_heads, q_len, k_len, head_dim, v_dim;
};

/// Where the rows of q, k or v are: each `stride` elements behind the one before, in sequences of `length`
/// rows, of which k and v may have more than k_len. Those of their gradients are where their own are.
struct AttentionRows {
  std::size_t length, stride;
};
struct AttentionLayout {
  AttentionRows q, k, v;
};

/// The keys that a query sees beside what a mask hides: query i, which stands at `first` + i, the keys from
/// `left` before to `right` behind its place. `first` is at most most_first.
struct KeyWindow {
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max(),
                               most_first = unlimited / 4;

  std::size_t left = unlimited, right = unlimited, first = 0;

  bool is_limited() const { return left != unlimited || right != unlimited; }
  /// The first key of a query, and the one behind its last, of `keys`; begin may be beyond end.
  std::size_t begin(std::size_t query) const {
    const std::size_t place = first + query;
    return place > left ? place - left : 0;
  }
  std::size_t end(std::size_t query, std::size_t keys) const {
    return right >= keys ? keys : std::min(keys, first + query + right + 1);
  }
};

/// Either `allowed` (true: the query may attend to the key), or `bias`, added to the scores, or neither. The
/// strides count elements and are 0 on a broadcast axis.
template <typename T>
struct MaskView {
  const bool* allowed = nullptr;
  const T* bias = nullptr;
  std::ptrdiff_t batch_stride = 0, head_stride = 0, query_stride = 0, key_stride = 0;
};

/// Which probabilities dropout keeps, multiplied by `scale`, as bernoulli_bits() draws them: a row of bits
/// for each row of (batch, heads, q_len). No dropout if null.
template <typename T>
struct DropoutView {
  const std::uint8_t* kept = nullptr;
  T scale = 1;
};

/// What attention is computed from. A score s before the mask is cap tanh(s / cap), if `cap` is not 0.
template <typename T>
struct AttentionInput {
  AttentionSizes sizes;
  AttentionLayout layout;
  const T *q, *k, *v;
  T scale, cap;
  MaskView<T> mask;
  KeyWindow window;
  DropoutView<T> dropout;
};

/// What the forward keeps for the backward: the probabilities before dropout, or where their memory would be
/// too large or the scores are capped, the statistics of each query's softmax, from which they are computed
/// again (as FlashAttention does, arXiv:2205.14135): its largest score and 1 / the sum of its exponentials
/// (batch, heads, q_len, 2). Both are null if there is no backward.
template <typename T>
struct AttentionRecord {
  T* probs = nullptr;
  T* statistics = nullptr;
};

/// Where the gradients go, each of which may be null: dscores (batch, heads, q_len, k_len) is that of a bias
/// before it was broadcast.
template <typename T>
struct AttentionGrads {
  T *dq, *dk, *dv, *dscores;
};

/// How many threads a call may use, and memory for each of them, attention_scratch() elements, more of which
/// are needed if scores are capped.
template <typename T>
struct AttentionWorkers {
  std::size_t count;
  T* scratch;
};

/// As many threads as there are and there is work for.
std::size_t attention_workers(const AttentionSizes& sizes);
std::size_t attention_scratch(const AttentionSizes& sizes, const KeyWindow& window, bool is_capped);

/// out = dropout(softmax(cap(scale q k^T) + mask)) v in each head. A query that may attend to nothing has
/// zeros for probabilities and output.
template <typename T>
void attention_forward(const AttentionInput<T>& input, const AttentionRecord<T>& record,
                       const AttentionWorkers<T>& workers, T* out);

/// dv = dropout(probs)^T dout; ds = probs (dp - sum(dp probs)) with dp = dropout(dout v^T); dq = scale dr k
/// and dk = scale dr^T q, where dr = ds (1 - tanh(s / cap)^2), or ds if nothing is capped. What dk and dv
/// have beyond k_len rows becomes 0.
template <typename T>
void attention_backward(const T* dout, const AttentionInput<T>& input, const AttentionRecord<const T>& record,
                        const AttentionWorkers<T>& workers, const AttentionGrads<T>& grads);

}  // namespace xgrad::kernels
