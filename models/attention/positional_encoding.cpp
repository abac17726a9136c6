#include "positional_encoding.hpp"

#include <cmath>

#include "../../ops/index/indexing.hpp"
#include "../detail/sizes.hpp"

namespace xgrad {
namespace {

/// x plus the first rows of table (max_len, d_model), a row for each position.
template <class T>
Variable<T> add_rows(const char* name, const Variable<T>& x, const Variable<T>& table) {
  const std::size_t max_len = table.shape()[0], d_model = table.shape()[1], rank = x.dimension();
  if (rank < 2 || x.shape()[rank - 1] != d_model) {
    detail::fail<ShapeError>(name, ": x must be (..., seq, ", d_model, "), got ", x.shape());
  }
  const std::size_t length = x.shape()[rank - 2];
  if (length > max_len) {
    detail::fail<ShapeError>(name, ": x may have max_len ", max_len, " positions at most, got ", length,
                             " in ", x.shape());
  }
  return x + (length == max_len ? table : slice(table, 0, 0, static_cast<std::ptrdiff_t>(length)));
}

template <class T>
Array<T> waves(std::size_t max_len, std::size_t d_model) {
  Array<T> table = Array<T>::from_shape({max_len, d_model});
  for (std::size_t position = 0; position < max_len; ++position) {
    for (std::size_t i = 0; i < d_model; ++i) {
      const double exponent = static_cast<double>(i - i % 2) / static_cast<double>(d_model);
      const double angle = static_cast<double>(position) / std::pow(10000.0, exponent);
      table(position, i) = static_cast<T>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

}  // namespace

template <class T>
LearnedPositionalEncoding<T>::LearnedPositionalEncoding(std::size_t max_len, std::size_t d_model)
    : Module<T>("LearnedPositionalEncoding"),
      pos_embedding_(
          this->child("pos_embedding",
                      Embedding<T>(detail::checked_size("LearnedPositionalEncoding", "max_len", max_len),
                                   detail::checked_size("LearnedPositionalEncoding", "d_model", d_model)))) {}

template <class T>
Variable<T> LearnedPositionalEncoding<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return add_rows("LearnedPositionalEncoding", x, pos_embedding_.weight());
}

template <class T>
Variable<T> LearnedPositionalEncoding<T>::operator()(const Variable<T>& x, const Ids& positions) const {
  const auto scope = this->scope();
  return x + pos_embedding_(positions);
}

template <class T>
SinusoidalPositionalEncoding<T>::SinusoidalPositionalEncoding(std::size_t max_len, std::size_t d_model)
    : Module<T>("SinusoidalPositionalEncoding"),
      table_(waves<T>(detail::checked_size("SinusoidalPositionalEncoding", "max_len", max_len),
                      detail::checked_size("SinusoidalPositionalEncoding", "d_model", d_model))) {}

template <class T>
Variable<T> SinusoidalPositionalEncoding<T>::operator()(const Variable<T>& x) const {
  const auto scope = this->scope();
  return add_rows("SinusoidalPositionalEncoding", x, table_);
}

template class LearnedPositionalEncoding<float>;
template class LearnedPositionalEncoding<double>;
template class SinusoidalPositionalEncoding<float>;
template class SinusoidalPositionalEncoding<double>;

}  // namespace xgrad
