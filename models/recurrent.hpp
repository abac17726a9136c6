#pragma once

#include <optional>
#include <vector>

#include "../ops/recurrent/recurrent.hpp"
#include "module.hpp"

namespace xgrad {

/// Options of RNN, GRU and LSTM.
struct RNNOptions {
  detail::ByName by_name = {};
  std::size_t num_layers = 1;
  Nonlinearity nonlinearity = Nonlinearity::tanh;  ///< of an RNN
  bool bias = true;
  bool batch_first = false;  ///< x and the output are (N, L, ...), not (L, N, ...)
  double dropout = 0;        ///< of the output of each layer but the last
  bool bidirectional = false;
  std::size_t proj_size = 0;  ///< of an LSTM: the size of its states, below hidden_size; 0: no projections
};

namespace detail {

/// What the recurrent modules share: the weights of each layer and direction, `weight_ih_l0`, `weight_hh_l0`,
/// `bias_ih_l0`, `bias_hh_l0`, `weight_hr_l0`, `weight_ih_l0_reverse`, ..., initialized uniformly in
/// [-1 / sqrt(hidden_size), 1 / sqrt(hidden_size)).
template <class T>
class RNNBase : public Module<T> {
 protected:
  RNNBase(const char* type, std::size_t gates, std::size_t input_size, std::size_t hidden_size,
          const RNNOptions& options);

  const RNNOptions& options() const { return options_; }
  const std::vector<RecurrentWeights<T>>& weights() const { return weights_; }
  RecurrentOptions call_options(const std::optional<Ids>& lengths) const;

 private:
  RNNOptions options_;
  std::vector<RecurrentWeights<T>> weights_;
};

}  // namespace detail

/// Layers of rnn(): h_t = f(weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh).
///
/// x (L, N, input_size), or (N, L, input_size) with batch_first, or (L, input_size) of one sequence; h0
/// (num_layers D, N, hidden_size), zeros if undefined, with D = 2 if bidirectional, else 1; the output (L, N,
/// D hidden_size). With lengths (N), each sequence ends at its length, and the output is 0 beyond. Throws
/// ValueError for a size of 0 and for proj_size, and as rnn() does.
/// https://pytorch.org/docs/stable/generated/torch.nn.RNN.html
template <class T>
class RNN : public detail::RNNBase<T> {
 public:
  RNN(std::size_t input_size, std::size_t hidden_size, const RNNOptions& options = {});

  RecurrentResult<T> operator()(const Variable<T>& x, const Variable<T>& h0 = {},
                                const std::optional<Ids>& lengths = {}) const;
  /// Lengths are integers: xt::cast<std::int64_t>(lengths).
  template <detail::NoIds E>
  RecurrentResult<T> operator()(const Variable<T>& x, const Variable<T>& h0, const E& lengths) const = delete;
};

/// Layers of gru(), with the shapes of RNN. The weights are those of the gates r, z and n, one below the
/// other. Throws ValueError for a size of 0, for proj_size and a nonlinearity other than tanh, and as gru()
/// does. https://pytorch.org/docs/stable/generated/torch.nn.GRU.html
template <class T>
class GRU : public detail::RNNBase<T> {
 public:
  GRU(std::size_t input_size, std::size_t hidden_size, const RNNOptions& options = {});

  RecurrentResult<T> operator()(const Variable<T>& x, const Variable<T>& h0 = {},
                                const std::optional<Ids>& lengths = {}) const;
  /// Lengths are integers: xt::cast<std::int64_t>(lengths).
  template <detail::NoIds E>
  RecurrentResult<T> operator()(const Variable<T>& x, const Variable<T>& h0, const E& lengths) const = delete;
};

/// Layers of lstm(), with the shapes of RNN, and c0 like h0. The weights are those of the gates i, f, g and
/// o, one below the other. With proj_size, h0 and the output have proj_size in place of hidden_size. Throws
/// ValueError for a size of 0, for proj_size not below hidden_size and a nonlinearity other than tanh, and as
/// lstm() does. https://pytorch.org/docs/stable/generated/torch.nn.LSTM.html
template <class T>
class LSTM : public detail::RNNBase<T> {
 public:
  LSTM(std::size_t input_size, std::size_t hidden_size, const RNNOptions& options = {});

  LSTMResult<T> operator()(const Variable<T>& x, const Variable<T>& h0 = {}, const Variable<T>& c0 = {},
                           const std::optional<Ids>& lengths = {}) const;
  /// Lengths are integers: xt::cast<std::int64_t>(lengths).
  template <detail::NoIds E>
  LSTMResult<T> operator()(const Variable<T>& x, const Variable<T>& h0, const Variable<T>& c0,
                           const E& lengths) const = delete;
};

}  // namespace xgrad
