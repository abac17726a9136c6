#pragma once

// Layers and directions of passes, and what a caller's sequences are to them.

#include "../../index/scatter.hpp"
#include "../../pointwise/dropout.hpp"
#include "pass.hpp"

namespace xgrad::detail {

/// The sequences of x as the rows of passes.
struct Sequences {
  /// Throws ShapeError and ValueError in the name of `op`.
  Sequences(const char* op, const Shape& x, const RecurrentOptions& options);

  std::size_t length, count;        // L and N
  bool single, batch_first;         // x is (L, in), or (N, L, in)
  std::vector<std::size_t> counts;  // of the sequences that have step t
  bool packed = false;              // not all have L steps
  Ids rows = {};                    // if packed: where in x each row is,
  Ids order = {}, places = {};      // the sequences, the longest first, and the place of each in that order
};

template <class T>
Variable<T> rows_of_sequences(const Sequences& sequences, const Variable<T>& x);
/// The inverse: 0 beyond the ends.
template <class T>
Variable<T> sequences_of_rows(const Sequences& sequences, const Variable<T>& rows);

/// A state (passes, N, width) in the order of the passes. Throws ShapeError for another shape.
template <class T>
Variable<T> ordered_state(const char* op, const char* name, const Sequences& sequences,
                          const Variable<T>& state, std::size_t passes, std::size_t width);
/// The states of all passes, for the caller.
template <class T>
Variable<T> callers_state(const Sequences& sequences, const std::vector<Variable<T>>& states);

/// Sizes of the states: h (N, out) and, of an LSTM, c (N, cell).
struct StateSizes {
  std::size_t out, cell;
};

/// What the weights of layers with so many gates give for an input (..., in). Throws ValueError for another
/// number of weights than that of whole layers and for a projection without `may_project`, ShapeError unless
/// they fit each other.
template <class T>
StateSizes checked_layers(const char* op, std::size_t gates, bool may_project, std::size_t in,
                          const std::vector<RecurrentWeights<T>>& weights, const RecurrentOptions& options);

/// The output and S states of all layers; one_pass(x, states, weights, pass) gives those of one direction of
/// a layer. `initial`, which may be undefined, are named `names`.
template <class T, std::size_t S, class OnePass>
std::array<Variable<T>, S + 1> run_layers(const char* op, std::size_t gates, const Variable<T>& x,
                                          std::array<Variable<T>, S> initial,
                                          const std::array<const char*, S>& names,
                                          const std::vector<RecurrentWeights<T>>& weights,
                                          const RecurrentOptions& options, const OnePass& one_pass) {
  const Sequences sequences(op, x.shape(), options);
  const StateSizes sizes = checked_layers(op, gates, S == 2, x.shape().back(), weights, options);
  const SharedPass forward = std::make_shared<const Pass>(sequences.counts, false),
                   reverse =
                       options.bidirectional ? std::make_shared<const Pass>(sequences.counts, true) : nullptr;
  for (std::size_t s = 0; s < S; ++s) {
    initial[s] =
        ordered_state(op, names[s], sequences, initial[s], weights.size(), s == 0 ? sizes.out : sizes.cell);
  }
  const std::size_t directions = options.bidirectional ? 2 : 1;
  Variable<T> rows = rows_of_sequences(sequences, x);
  std::array<std::vector<Variable<T>>, S> last;
  for (std::size_t k = 0; k < weights.size(); k += directions) {
    if (k > 0) rows = dropout_if_training(rows, options.dropout_p, true);
    std::vector<Variable<T>> outputs;
    for (std::size_t d = 0; d < directions; ++d) {
      std::array<Variable<T>, S> states;
      for (std::size_t s = 0; s < S; ++s)
        if (initial[s].defined()) states[s] = select(initial[s], 0, k + d);
      std::array<Variable<T>, S + 1> results =
          one_pass(rows, states, weights[k + d], d == 0 ? forward : reverse);
      outputs.push_back(std::move(results[0]));
      for (std::size_t s = 0; s < S; ++s) last[s].push_back(std::move(results[s + 1]));
    }
    rows = directions == 1 ? outputs[0] : cat(outputs, 1);
  }
  std::array<Variable<T>, S + 1> results{sequences_of_rows(sequences, rows)};
  for (std::size_t s = 0; s < S; ++s) results[s + 1] = callers_state(sequences, last[s]);
  return results;
}

}  // namespace xgrad::detail
