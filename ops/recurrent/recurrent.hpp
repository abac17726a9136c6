#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "../../base/detail/by_name.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

// Recurrent layers: the state of a sequence, and what is read of it, step by step. Of L steps, N sequences, K
// layers and D directions (1, or 2 if bidirectional): x (L, N, in), or (N, L, in) if batch_first; a state (K
// D, N, H), zeros if undefined; the output (L, N, D H) or (N, L, D H), the states of the last layer after
// every step, those of the directions side by side. One sequence alone is x (L, in) with states (K D, H).
// Each further layer reads the output of the one before.
//
// The weights are a list of K D: of layer 0, of layer 0 reversed, of layer 1, ... Throws ShapeError for
// incompatible shapes and for no step, ValueError for another number of weights, for lengths outside [1, L]
// and for dropout_p outside [0, 1].

/// The weights of one direction of a layer with G gates: weight_ih (G H, in), weight_hh (G H, H), and biases
/// (G H) or undefined. weight_hr (P, H) is of an LSTM with projections, whose weight_hh is (G H, P).
template <class T>
struct RecurrentWeights {
  RecurrentWeights() = default;
  RecurrentWeights(Variable<T> ih, Variable<T> hh, Variable<T> bias_of_ih = {}, Variable<T> bias_of_hh = {},
                   Variable<T> hr = {})
      : weight_ih(std::move(ih)),
        weight_hh(std::move(hh)),
        bias_ih(std::move(bias_of_ih)),
        bias_hh(std::move(bias_of_hh)),
        weight_hr(std::move(hr)) {}

  Variable<T> weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
};

struct RecurrentOptions {
  detail::ByName by_name = {};
  bool bidirectional = false;  ///< a second direction, from the last step to the first
  bool batch_first = false;    ///< x and the output are (N, L, ...)
  /// (N), of the sequences: each ends at its length, where the other direction begins, as in PyTorch's packed
  /// sequences. What x has beyond is not read, and the output is 0 there.
  std::optional<Ids> lengths = {};
  double dropout_p = 0;  ///< dropout of the output of each layer but the last; 0 except in training
};

/// The output, and the states after the last step of every sequence.
template <class T>
struct [[nodiscard]] RecurrentResult {
  Variable<T> output, h;
};

template <class T>
struct [[nodiscard]] LSTMResult {
  Variable<T> output, h, c;
};

/// The function of a simple recurrent layer.
enum class Nonlinearity { tanh, relu };

/// h_t = f(weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh), with one gate (Elman 1990).
/// https://pytorch.org/docs/stable/generated/torch.nn.RNN.html
template <class T>
RecurrentResult<T> rnn(const Variable<T>& x, const std::type_identity_t<Variable<T>>& h0,
                       const std::vector<RecurrentWeights<std::type_identity_t<T>>>& weights,
                       Nonlinearity f = Nonlinearity::tanh, const RecurrentOptions& options = {});

/// h_t = (1 - z) n + z h_(t-1) with the gates r, z and n, in this order: with a = weight_ih x_t + bias_ih and
/// b = weight_hh h_(t-1) + bias_hh, r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z), n = tanh(a_n + r b_n)
/// (Cho et al. 2014, arXiv:1406.1078). https://pytorch.org/docs/stable/generated/torch.nn.GRU.html
template <class T>
RecurrentResult<T> gru(const Variable<T>& x, const std::type_identity_t<Variable<T>>& h0,
                       const std::vector<RecurrentWeights<std::type_identity_t<T>>>& weights,
                       const RecurrentOptions& options = {});

/// c_t = f c_(t-1) + i g, h_t = o tanh(c_t) with the gates i, f, g and o, in this order: i, f and o are
/// sigmoid, g is tanh, of weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh (Hochreiter and Schmidhuber
/// 1997). With projections, h_t = weight_hr o tanh(c_t): h0 (K D, N, P), c0 (K D, N, H) and the output (L, N,
/// D P) (Sak et al. 2014, arXiv:1402.1128). https://pytorch.org/docs/stable/generated/torch.nn.LSTM.html
template <class T>
LSTMResult<T> lstm(const Variable<T>& x, const std::type_identity_t<Variable<T>>& h0,
                   const std::type_identity_t<Variable<T>>& c0,
                   const std::vector<RecurrentWeights<std::type_identity_t<T>>>& weights,
                   const RecurrentOptions& options = {});

namespace ops {

// One direction of a layer. x (rows, in) are the steps one after the other, step t of batch_sizes[t]
// sequences, the longest first; a reverse one begins at the last step.
inline constexpr Op rnn("rnn", {"x", "h0", "weight_ih", "weight_hh", "bias_ih", "bias_hh"},
                        {"nonlinearity", "batch_sizes", "reverse"});
inline constexpr Op gru("gru", {"x", "h0", "weight_ih", "weight_hh", "bias_ih", "bias_hh"},
                        {"batch_sizes", "reverse"});
inline constexpr Op lstm("lstm",
                         {"x", "h0", "c0", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"},
                         {"batch_sizes", "reverse"});

}  // namespace ops
}  // namespace xgrad
