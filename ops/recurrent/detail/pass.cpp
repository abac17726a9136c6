#include "pass.hpp"

#include "../../../kernels/gemm/linear.hpp"
#include "../../../kernels/pointwise/binary.hpp"
#include "../../detail/kernel_grads.hpp"

namespace xgrad::detail {

Pass::Pass(const std::vector<std::size_t>& of_times, bool backward)
    : counts(of_times), sequences(of_times.front()), rows(0), reverse(backward) {
  for (std::size_t time = 0; time < counts.size(); ++time) {
    steps.push_back({time, rows, counts[time], 0, 0});
    rows += counts[time];
  }
  if (reverse) std::reverse(steps.begin(), steps.end());
  for (std::size_t i = 1; i < steps.size(); ++i) {
    steps[i].before_row = steps[i - 1].row;
    steps[i].continuing = std::min(steps[i - 1].count, steps[i].count);
  }
}

template <class T>
Variable<T> fresh_state(const Variable<T>& initial, const Pass& pass, std::size_t width) {
  Variable<T> state = empty<T>({pass.sequences, width});
  if (initial.defined()) {
    std::copy_n(data(initial), state.size(), data(state));
  } else {
    std::fill_n(data(state), state.size(), T(0));
  }
  return state;
}

template <class T>
Variable<T> input_products(const char* op, const Variable<T>& x, const RecurrentWeights<T>& weights,
                           const Variable<T>& bias) {
  const Variable<T>& weight = weights.weight_ih;
  const std::size_t rows = x.shape()[0], sums = weight.shape()[0];
  Variable<T> both = bias.defined() ? bias : weights.bias_ih;
  if (bias.defined() && weights.bias_ih.defined()) {
    both = empty<T>({sums});
    kernels::add<T>(data(bias), data(weights.bias_ih), data(both), sums);
  }
  Variable<T> y = empty<T>({rows, sums}, op);
  kernels::linear_rows<T>({data(x), rows, weight.shape()[1]}, {data(weight), sums, weight.shape()[1]},
                          both.defined() ? data(std::as_const(both)) : nullptr, data(y));
  return y;
}

template <class T>
StepWeight<T>::StepWeight(const kernels::Matrix<const T>& b, const Pass& pass) : factor_(b, pass.sequences) {
  if (pass.steps.size() == 1 || !factor_.pays_to_pack()) return;
  packed_ = empty<T>({b.rows, b.cols});
  factor_.pack(data(packed_));
}

template <class T>
Variable<T> states_before(const Pass& pass, const Variable<T>& initial, const Variable<T>& after) {
  const std::size_t width = after.shape()[1];
  Variable<T> before = empty<T>(after.shape());
  for (const auto& [time, row, count, before_row, continuing] : pass.steps) {
    T* const of_step = data(before) + row * width;
    const std::size_t known = continuing * width, size = count * width;
    std::copy_n(data(after) + before_row * width, known, of_step);
    if (initial.defined()) {
      std::copy(data(initial) + known, data(initial) + size, of_step + known);
    } else {
      std::fill(of_step + known, of_step + size, T(0));
    }
  }
  return before;
}

template <class T>
void add_step_gradient(const Variable<T>& dy, const Pass::Step& step, std::size_t width, T* dstate) {
  if (dy.defined()) kernels::accumulate<T>(dstate, data(dy) + step.row * width, step.count * width);
}

template <class T>
void product_grads(const Variable<T>& dinputs, const Variable<T>& dstates, const Variable<T>& x,
                   const Variable<T>& before, const Variable<T>& weight_ih, const Variable<T>& weight_hh,
                   const PassGrads<T>& grads) {
  kernels::linear_grad_rows<T>(matrix_of(dinputs), matrix_of(x), matrix_of(weight_ih),
                               {.dx = data_if_needed(grads.dx),
                                .adds_dx = false,
                                .dweight = data_if_needed(grads.dweight_ih),
                                .dbias = data_if_needed(grads.dbias_ih)});
  kernels::linear_grad_rows<T>(matrix_of(dstates), matrix_of(before), matrix_of(weight_hh),
                               {.dx = nullptr,
                                .adds_dx = false,
                                .dweight = data_if_needed(grads.dweight_hh),
                                .dbias = data_if_needed(grads.dbias_hh)});
}

#define XGRAD_INSTANTIATE(T)                                                                       \
  template Variable<T> fresh_state(const Variable<T>&, const Pass&, std::size_t);                  \
  template Variable<T> input_products(const char*, const Variable<T>&, const RecurrentWeights<T>&, \
                                      const Variable<T>&);                                         \
  template class StepWeight<T>;                                                                    \
  template Variable<T> states_before(const Pass&, const Variable<T>&, const Variable<T>&);         \
  template void add_step_gradient(const Variable<T>&, const Pass::Step&, std::size_t, T*);         \
  template void product_grads(const Variable<T>&, const Variable<T>&, const Variable<T>&,          \
                              const Variable<T>&, const Variable<T>&, const Variable<T>&,          \
                              const PassGrads<T>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
