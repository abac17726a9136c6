#include "../../graph/fused.hpp"
#include "../../kernels/recurrent/gates.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/elementwise.hpp"
#include "../product/linear.hpp"
#include "detail/layers.hpp"

namespace xgrad {
namespace {

/// The states after every step (rows, H), and those after the last.
template <class T>
std::array<Variable<T>, 2> gru_pass(const Variable<T>& x, const Variable<T>& h0,
                                    const RecurrentWeights<T>& weights, const detail::SharedPass& pass) {
  using V = Variable<T>;
  const V &weight_hh = weights.weight_hh, &bias_hh = weights.bias_hh;
  const std::size_t size = weight_hh.shape()[1], sums = 3 * size;
  V gates = detail::input_products(ops::gru.name, x, weights, V()), h = detail::fresh_state(h0, *pass, size),
    y = detail::empty<T>({pass->rows, size}), candidates = detail::empty<T>({pass->rows, size}),
    recurrent = detail::empty<T>({pass->sequences, sums});
  const detail::StepWeight<T> weight(detail::matrix_of(weight_hh).transpose(), *pass);
  for (const detail::Pass::Step& step : pass->steps) {
    for (std::size_t i = 0; bias_hh.defined() && i < step.count; ++i)
      std::copy_n(detail::data(bias_hh), sums, detail::data(recurrent) + i * sums);
    weight.multiply({detail::data(std::as_const(h)), step.count, size}, bias_hh.defined() ? T(1) : T(0),
                    {detail::data(recurrent), step.count, sums});
    kernels::gru_step<T>(detail::data(gates) + step.row * sums, detail::data(recurrent),
                         detail::data(candidates) + step.row * size, detail::data(h),
                         detail::data(y) + step.row * size, step.count, size);
  }
  return fused_many<T, 2>(
      ops::gru, {std::move(y), std::move(h)},
      Inputs(x, h0, weights.weight_ih, weight_hh, Unread(weights.bias_ih), Unread(bias_hh)),
      Attributes(pass->counts, pass->reverse), Saved(gates, candidates, Output(0)),
      [pass, size](const V& x, const V& h0, const V& weight_ih, const V& weight_hh, const V& bias_ih,
                   const V& bias_hh) {
        return detail::composed_pass<T, 1>(*pass, linear(x, weight_ih, bias_ih), {h0}, {size},
                                           [&](const V& sums, const std::array<V, 1>& h) {
                                             const std::vector<V> a = split(sums, size, 1),
                                                                  b = split(linear(h[0], weight_hh, bias_hh),
                                                                            size, 1);
                                             const V n = tanh(a[2] + sigmoid(a[0] + b[0]) * b[2]);
                                             return std::array<V, 1>{n + sigmoid(a[1] + b[1]) * (h[0] - n)};
                                           });
      },
      [pass, size, sums](const std::array<V, 2>& dys, Needs needs, const V& x, const V& h0,
                         const V& weight_ih, const V& weight_hh, const V&, const V&, const V& gates,
                         const V& candidates, const V& y) -> Grads<T, 6> {
        auto grads = detail::empty_grads<T, 6>(needs);
        auto& [dx, dh0, dweight_ih, dweight_hh, dbias_ih, dbias_hh] = grads;
        const V before = detail::states_before(*pass, h0, y);
        V dh = detail::fresh_state(dys[1], *pass, size), dinputs = detail::empty<T>(gates.shape()),
          dstates = detail::empty<T>(gates.shape());
        const detail::StepWeight<T> weight(detail::matrix_of(weight_hh), *pass);
        for (auto step = pass->steps.rbegin(); step != pass->steps.rend(); ++step) {
          const std::size_t row = step->row;
          const kernels::Matrix<T> of_states = detail::rows_of(*step, detail::data(dstates), sums);
          detail::add_step_gradient(dys[0], *step, size, detail::data(dh));
          kernels::gru_step_grad<T>(detail::data(gates) + row * sums, detail::data(candidates) + row * size,
                                    detail::data(before) + row * size, detail::data(dh),
                                    detail::data(dinputs) + row * sums, of_states.data, step->count, size);
          weight.multiply(of_states, 1, {detail::data(dh), step->count, size});
        }
        if (dh0.defined()) dh0 = std::move(dh);
        detail::product_grads<T>(dinputs, dstates, x, before, weight_ih, weight_hh,
                                 {dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh});
        return grads;
      });
}

}  // namespace

template <class T>
RecurrentResult<T> gru(const Variable<T>& x, const std::type_identity_t<Variable<T>>& h0,
                       const std::vector<RecurrentWeights<std::type_identity_t<T>>>& weights,
                       const RecurrentOptions& options) {
  auto [output, h] = detail::run_layers<T, 1>(
      ops::gru.name, 3, x, {h0}, {"h0"}, weights, options,
      [](const Variable<T>& rows, const std::array<Variable<T>, 1>& states, const RecurrentWeights<T>& layer,
         const detail::SharedPass& pass) { return gru_pass(rows, states[0], layer, pass); });
  return {std::move(output), std::move(h)};
}

#define XGRAD_INSTANTIATE(T)                                              \
  template RecurrentResult<T> gru(const Variable<T>&, const Variable<T>&, \
                                  const std::vector<RecurrentWeights<T>>&, const RecurrentOptions&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
