#pragma once

// One direction of a recurrent layer: a pass over the steps of sequences.

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "../../../base/creation.hpp"
#include "../../../kernels/gemm/repeated_factor.hpp"
#include "../../../kernels/matrix.hpp"
#include "../../index/indexing.hpp"
#include "../../shape/shapes.hpp"
#include "../recurrent.hpp"

namespace xgrad::detail {

/// The steps in the order of the pass. The rows of a step are those of the sequences that have it, the
/// longest first: in either direction, those of one step are the first of another.
struct Pass {
  struct Step {
    std::size_t time, row, count;        ///< `count` rows from `row` on
    std::size_t before_row, continuing;  ///< rows of the step before in the pass; the others begin here
  };

  /// Step t is of counts[t] sequences, all of them first.
  Pass(const std::vector<std::size_t>& counts, bool reverse);

  std::vector<std::size_t> counts;
  std::vector<Step> steps;
  std::size_t sequences, rows;
  bool reverse;
};

using SharedPass = std::shared_ptr<const Pass>;

/// A copy of `initial` that a pass changes: (sequences, width), zeros if undefined.
template <class T>
Variable<T> fresh_state(const Variable<T>& initial, const Pass& pass, std::size_t width);

/// x weight_ih^T + bias_ih + bias for all steps (rows, the rows of weight_ih).
template <class T>
Variable<T> input_products(const char* op, const Variable<T>& x, const RecurrentWeights<T>& weights,
                           const Variable<T>& bias);

template <class T>
kernels::Matrix<const T> matrix_of(const Variable<T>& v) {
  return {data(v), v.shape()[0], v.shape()[1]};
}

/// A weight b that the rows of every step are multiplied by, in the order in which products read it.
template <class T>
class StepWeight {
 public:
  StepWeight(const kernels::Matrix<const T>& b, const Pass& pass);

  /// c = a b + beta c.
  void multiply(const kernels::Matrix<const T>& a, T beta, const kernels::Matrix<T>& c) const {
    factor_.multiply(a, beta, c);
  }

 private:
  kernels::RepeatedFactor<T> factor_;
  Variable<T> packed_;
};

/// The rows of a step in an array (rows, width).
template <class T>
kernels::Matrix<T> rows_of(const Pass::Step& step, T* rows, std::size_t width) {
  return {rows + step.row * width, step.count, width};
}

/// The states before every step (rows, width), of `initial` and of the states after every step.
template <class T>
Variable<T> states_before(const Pass& pass, const Variable<T>& initial, const Variable<T>& after);

/// dstate += dy at the step; dy (rows, width) may be undefined.
template <class T>
void add_step_gradient(const Variable<T>& dy, const Pass::Step& step, std::size_t width, T* dstate);

/// The gradients of a pass, those that are needed.
template <class T>
struct PassGrads {
  Variable<T>&dx, &dweight_ih, &dweight_hh, &dbias_ih, &dbias_hh;
};

/// The gradients of all steps' products, from those of the inputs' and the states' products.
template <class T>
void product_grads(const Variable<T>& dinputs, const Variable<T>& dstates, const Variable<T>& x,
                   const Variable<T>& before, const Variable<T>& weight_ih, const Variable<T>& weight_hh,
                   const PassGrads<T>& grads);

/// A pass composed of ops: cell(sums, states) gives the states after a step from the products of its inputs
/// and the states before, each of the rows of the step. Returns the first states after every step, and all
/// states after the last. `states` of the given widths may be undefined.
template <class T, std::size_t S, class Cell>
std::array<Variable<T>, S + 1> composed_pass(const Pass& pass, const Variable<T>& sums,
                                             std::array<Variable<T>, S> states,
                                             const std::array<std::size_t, S>& widths, const Cell& cell) {
  for (std::size_t s = 0; s < S; ++s)
    if (!states[s].defined()) states[s] = Variable<T>(zeros<T>({pass.sequences, widths[s]}));
  std::vector<Variable<T>> outputs(pass.steps.size());
  for (const Pass::Step& step : pass.steps) {
    const std::size_t ended = pass.sequences - step.count;
    std::array<Variable<T>, S> now = states;
    for (Variable<T>& state : now)
      if (ended > 0) state = narrow(state, 0, 0, step.count);
    now = cell(narrow(sums, 0, step.row, step.count), now);
    outputs[step.time] = now[0];
    for (std::size_t s = 0; s < S; ++s)
      states[s] = ended > 0 ? cat({now[s], narrow(states[s], 0, step.count, ended)}) : now[s];
  }
  std::array<Variable<T>, S + 1> results{cat(outputs)};
  std::move(states.begin(), states.end(), results.begin() + 1);
  return results;
}

}  // namespace xgrad::detail
