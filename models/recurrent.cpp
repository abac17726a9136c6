#include "recurrent.hpp"

#include <cmath>
#include <string>

#include "../base/random.hpp"
#include "detail/sizes.hpp"

namespace xgrad {
namespace detail {

template <class T>
RNNBase<T>::RNNBase(const char* type, std::size_t gates, std::size_t input_size, std::size_t hidden_size,
                    const RNNOptions& options)
    : Module<T>(type), options_(options) {
  checked_size(type, "input_size", input_size);
  checked_size(type, "hidden_size", hidden_size);
  checked_size(type, "num_layers", options.num_layers);
  checked_probability(type, "dropout", options.dropout);
  const std::size_t sums = checked_size(type, "gates' size", gates * hidden_size),
                    out = options.proj_size > 0 ? options.proj_size : hidden_size,
                    directions = options.bidirectional ? 2 : 1;
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (std::size_t layer = 0; layer < options.num_layers; ++layer) {
    for (std::size_t direction = 0; direction < directions; ++direction) {
      const std::string place = "_l" + std::to_string(layer) + (direction == 0 ? "" : "_reverse");
      const auto weight = [&](const char* name, const Shape& shape) {
        return this->parameter(name + place, uniform<T>(shape, -bound, bound));
      };
      RecurrentWeights<T>& made = weights_.emplace_back();
      made.weight_ih = weight("weight_ih", {sums, layer == 0 ? input_size : directions * out});
      made.weight_hh = weight("weight_hh", {sums, out});
      if (options.bias) {
        made.bias_ih = weight("bias_ih", {sums});
        made.bias_hh = weight("bias_hh", {sums});
      }
      if (options.proj_size > 0) made.weight_hr = weight("weight_hr", {out, hidden_size});
    }
  }
}

template <class T>
RecurrentOptions RNNBase<T>::call_options(const std::optional<Ids>& lengths) const {
  return {.bidirectional = options_.bidirectional,
          .batch_first = options_.batch_first,
          .lengths = lengths,
          .dropout_p = this->training() ? options_.dropout : 0};
}

template class RNNBase<float>;
template class RNNBase<double>;

}  // namespace detail

namespace {

const RNNOptions& without_projections(const char* type, const RNNOptions& options) {
  if (options.proj_size > 0)
    detail::fail<ValueError>(type, ": proj_size is of an LSTM only, got ", options.proj_size);
  return options;
}

const RNNOptions& of_tanh(const char* type, const RNNOptions& options) {
  if (options.nonlinearity != Nonlinearity::tanh)
    detail::fail<ValueError>(type, ": nonlinearity is of an RNN only");
  return options;
}

const RNNOptions& with_small_projections(std::size_t hidden_size, const RNNOptions& options) {
  if (options.proj_size > 0 && options.proj_size >= hidden_size) {
    detail::fail<ValueError>("LSTM: proj_size must be below hidden_size, got ", options.proj_size, " and ",
                             hidden_size);
  }
  return options;
}

}  // namespace

template <class T>
RNN<T>::RNN(std::size_t input_size, std::size_t hidden_size, const RNNOptions& options)
    : detail::RNNBase<T>("RNN", 1, input_size, hidden_size, without_projections("RNN", options)) {}

template <class T>
RecurrentResult<T> RNN<T>::operator()(const Variable<T>& x, const Variable<T>& h0,
                                      const std::optional<Ids>& lengths) const {
  const auto scope = this->scope();
  return rnn(x, h0, this->weights(), this->options().nonlinearity, this->call_options(lengths));
}

template <class T>
GRU<T>::GRU(std::size_t input_size, std::size_t hidden_size, const RNNOptions& options)
    : detail::RNNBase<T>("GRU", 3, input_size, hidden_size,
                         of_tanh("GRU", without_projections("GRU", options))) {}

template <class T>
RecurrentResult<T> GRU<T>::operator()(const Variable<T>& x, const Variable<T>& h0,
                                      const std::optional<Ids>& lengths) const {
  const auto scope = this->scope();
  return gru(x, h0, this->weights(), this->call_options(lengths));
}

template <class T>
LSTM<T>::LSTM(std::size_t input_size, std::size_t hidden_size, const RNNOptions& options)
    : detail::RNNBase<T>("LSTM", 4, input_size, hidden_size,
                         of_tanh("LSTM", with_small_projections(hidden_size, options))) {}

template <class T>
LSTMResult<T> LSTM<T>::operator()(const Variable<T>& x, const Variable<T>& h0, const Variable<T>& c0,
                                  const std::optional<Ids>& lengths) const {
  const auto scope = this->scope();
  return lstm(x, h0, c0, this->weights(), this->call_options(lengths));
}

template class RNN<float>;
template class RNN<double>;
template class GRU<float>;
template class GRU<double>;
template class LSTM<float>;
template class LSTM<double>;

}  // namespace xgrad
