#pragma once

#include "../layers/embedding.hpp"
#include "../module.hpp"

namespace xgrad {

/// y = x + weight[0 ... seq - 1]: a learned vector for each position; x and y (..., seq, d_model), weight
/// (max_len, d_model), initialized standard normal.
///
/// Throws ShapeError
/// "LearnedPositionalEncoding: x may have max_len 10 positions at most, got 12 in (1, 12, 4)".
template <class T>
class LearnedPositionalEncoding : public Module<T> {
 public:
  LearnedPositionalEncoding(std::size_t max_len, std::size_t d_model);

  Variable<T> operator()(const Variable<T>& x) const;
  /// x plus the vectors of these positions, (..., seq). Throws IndexError for one that is not below max_len.
  Variable<T> operator()(const Variable<T>& x, const Ids& positions) const;

 private:
  Embedding<T> pos_embedding_;
};

/// y = x + table[0 ... seq - 1] with table[p, 2i] = sin(p / 10000^(2i / d_model)) and table[p, 2i + 1] = cos
/// of the same (Vaswani et al. 2017, arXiv:1706.03762, section 3.5); x and y (..., seq, d_model). It has no
/// parameters. Throws as LearnedPositionalEncoding does.
template <class T>
class SinusoidalPositionalEncoding : public Module<T> {
 public:
  SinusoidalPositionalEncoding(std::size_t max_len, std::size_t d_model);

  Variable<T> operator()(const Variable<T>& x) const;

 private:
  Variable<T> table_;
};

}  // namespace xgrad
