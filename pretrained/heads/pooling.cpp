#include "pooling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../../ops/index/indexing.hpp"
#include "../../ops/index/masked_fill.hpp"
#include "../../ops/pointwise/arithmetic.hpp"
#include "../../ops/product/matmul.hpp"
#include "../../ops/reduce/reductions.hpp"
#include "../../ops/shape/shapes.hpp"

namespace xgrad::pretrained {
namespace {

/// Where the tokens of a batch are.
struct Tokens {
  std::size_t batch, length;
  std::vector<bool> pooled;         // of each place, whether its token counts
  std::vector<std::size_t> begins;  // of each row, its first token's place

  Tokens(const Shape& shape, const Input& input, std::size_t left_out)
      : batch(shape[0]), length(shape[1]), pooled(batch * length, true), begins(batch) {
    for (std::size_t row = 0; row < batch; ++row) {
      const auto is_token = [&](std::size_t i) {
        return !input.attention_mask || (*input.attention_mask)(row, i) != 0;
      };
      std::size_t& begin = begins[row];
      while (begin < length && !is_token(begin)) ++begin;
      if (begin == length) begin = 0;
      for (std::size_t i = 0; i < length; ++i)
        pooled[row * length + i] = i >= begin + left_out && is_token(i);
    }
  }

  bool counts(std::size_t row, std::size_t i) const { return pooled[row * length + i]; }
};

/// The sum of hidden states with weights, which f(row, place) gives, over the sum that g(sum) makes of
/// theirs.
template <class T, class F, class G>
Variable<T> weighted(const Variable<T>& hidden, const Tokens& tokens, const F& f, const G& g) {
  constexpr T least = T(1e-9);
  Array<T> weights(Shape{tokens.batch, 1, tokens.length}, T(0));
  for (std::size_t row = 0; row < tokens.batch; ++row) {
    T sum = 0;
    for (std::size_t i = 0; i < tokens.length; ++i)
      if (tokens.counts(row, i)) sum += weights(row, 0, i) = f(row, i);
    const T scale = 1 / g(std::max(sum, least));
    for (std::size_t i = 0; i < tokens.length; ++i) weights(row, 0, i) *= scale;
  }
  return squeeze(matmul(Variable<T>(std::move(weights)), hidden), 1);
}

/// The hidden state of one place of each row.
template <class T, class F>
Variable<T> at_place(const Variable<T>& hidden, const Tokens& tokens, const F& place) {
  Ids rows = Ids::from_shape({tokens.batch});
  for (std::size_t row = 0; row < tokens.batch; ++row)
    rows(row) = static_cast<std::int64_t>(row * tokens.length + place(row));
  return index_select(flatten(hidden, 0, 1), 0, rows);
}

template <class T>
Variable<T> maximum(const Variable<T>& hidden, const Tokens& tokens) {
  Mask hide = Mask::from_shape({tokens.batch, tokens.length, 1});
  std::transform(tokens.pooled.begin(), tokens.pooled.end(), hide.begin(),
                 [](bool counts) { return !counts; });
  return amax(masked_fill(hidden, hide, -std::numeric_limits<T>::infinity()), 1);
}

template <class T>
Variable<T> pooled(const Variable<T>& hidden, const Tokens& tokens, Pooling pooling) {
  const auto one = [](std::size_t, std::size_t) { return T(1); };
  const auto same = [](T sum) { return sum; };
  const auto first = [&](std::size_t row) {
    std::size_t i = 0;
    while (i < tokens.length && !tokens.counts(row, i)) ++i;
    return i == tokens.length ? 0 : i;
  };
  const auto last = [&](std::size_t row) {
    std::size_t i = tokens.length - 1;
    while (i > 0 && !tokens.counts(row, i)) --i;
    return i;
  };
  switch (pooling) {
    case Pooling::cls_token:
      return at_place(hidden, tokens, first);
    case Pooling::max:
      return maximum(hidden, tokens);
    case Pooling::mean_sqrt:
      return weighted(hidden, tokens, one, [](T sum) { return std::sqrt(sum); });
    case Pooling::weighted_mean:
      return weighted(
          hidden, tokens, [&](std::size_t row, std::size_t i) { return T(i + 1 - tokens.begins[row]); },
          same);
    case Pooling::last_token: {
      Array<T> any = Array<T>::from_shape({tokens.batch, 1});  // without a token the vector is 0
      for (std::size_t row = 0; row < tokens.batch; ++row)
        any(row, 0) = tokens.counts(row, last(row)) ? 1 : 0;
      return at_place(hidden, tokens, last) * Variable<T>(std::move(any));
    }
    case Pooling::mean:
      break;
  }
  return weighted(hidden, tokens, one, same);
}

}  // namespace

template <class T>
Variable<T> pool(const Variable<T>& hidden, const Input& input, std::span<const Pooling> poolings,
                 std::size_t left_out) {
  const Tokens tokens(hidden.shape(), input, left_out);
  std::vector<Variable<T>> vectors;
  for (const Pooling pooling : poolings) vectors.push_back(pooled(hidden, tokens, pooling));
  return vectors.size() == 1 ? vectors.front() : cat(vectors, 1);
}

template <class T>
Variable<T> pool(const Variable<T>& hidden, const Input& input, Pooling pooling, std::size_t left_out) {
  return pool(hidden, input, std::span(&pooling, 1), left_out);
}

#define XGRAD_INSTANTIATE(T)                                                                          \
  template Variable<T> pool(const Variable<T>&, const Input&, std::span<const Pooling>, std::size_t); \
  template Variable<T> pool(const Variable<T>&, const Input&, Pooling, std::size_t);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained
