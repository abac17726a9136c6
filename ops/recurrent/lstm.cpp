#include "../../graph/fused.hpp"
#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/recurrent/gates.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/elementwise.hpp"
#include "../product/linear.hpp"
#include "detail/layers.hpp"

namespace xgrad {
namespace {

/// The states after every step (rows, P), and h and c after the last.
template <class T>
std::array<Variable<T>, 3> lstm_pass(const Variable<T>& x, const std::array<Variable<T>, 2>& states,
                                     const RecurrentWeights<T>& weights, const detail::SharedPass& pass) {
  using V = Variable<T>;
  const auto& [h0, c0] = states;
  const V &weight_hh = weights.weight_hh, &weight_hr = weights.weight_hr;
  const std::size_t out = weight_hh.shape()[1], sums = weight_hh.shape()[0], size = sums / 4;
  const bool projects = weight_hr.defined();
  V gates = detail::input_products(ops::lstm.name, x, weights, weights.bias_hh),
    h = detail::fresh_state(h0, *pass, out), c = detail::fresh_state(c0, *pass, size),
    y = detail::empty<T>({pass->rows, out}), cells = detail::empty<T>({pass->rows, size}), shown;
  const detail::StepWeight<T> weight(detail::matrix_of(weight_hh).transpose(), *pass);
  if (projects) shown = detail::empty<T>({pass->rows, size});
  for (const detail::Pass::Step& step : pass->steps) {
    const kernels::Matrix<T> of_step = detail::rows_of(step, detail::data(gates), sums),
                             of_y = detail::rows_of(step, detail::data(y), out),
                             of_shown = projects ? detail::rows_of(step, detail::data(shown), size) : of_y;
    weight.multiply({detail::data(std::as_const(h)), step.count, out}, 1, of_step);
    kernels::lstm_step(of_step.data, detail::data(c), detail::data(cells) + step.row * size, of_shown.data,
                       step.count, size);
    if (projects) {
      kernels::gemm<T>(1, of_shown, detail::matrix_of(weight_hr).transpose(), 0, of_y);
    }
    std::copy_n(of_y.data, step.count * out, detail::data(h));
  }
  return fused_many<T, 3>(
      ops::lstm, {std::move(y), std::move(h), std::move(c)},
      Inputs(x, h0, c0, weights.weight_ih, weight_hh, Unread(weights.bias_ih), Unread(weights.bias_hh),
             weight_hr),
      Attributes(pass->counts, pass->reverse), Saved(gates, cells, shown, Output(0)),
      [pass, out, size](const V& x, const V& h0, const V& c0, const V& weight_ih, const V& weight_hh,
                        const V& bias_ih, const V& bias_hh, const V& weight_hr) {
        return detail::composed_pass<T, 2>(
            *pass, linear(x, weight_ih, bias_ih), {h0, c0}, {out, size},
            [&](const V& sums, const std::array<V, 2>& now) {
              const std::vector<V> gates = split(sums + linear(now[0], weight_hh, bias_hh), size, 1);
              const V c = sigmoid(gates[1]) * now[1] + sigmoid(gates[0]) * tanh(gates[2]),
                      h = sigmoid(gates[3]) * tanh(c);
              return std::array<V, 2>{weight_hr.defined() ? linear(h, weight_hr) : h, c};
            });
      },
      [pass, out, sums, size](const std::array<V, 3>& dys, Needs needs, const V& x, const V& h0, const V& c0,
                              const V& weight_ih, const V& weight_hh, const V&, const V&, const V& weight_hr,
                              const V& gates, const V& cells, const V& shown, const V& y) -> Grads<T, 8> {
        auto grads = detail::empty_grads<T, 8>(needs);
        auto& [dx, dh0, dc0, dweight_ih, dweight_hh, dbias_ih, dbias_hh, dweight_hr] = grads;
        const V cells_before = detail::states_before(*pass, c0, cells);
        V dh = detail::fresh_state(dys[1], *pass, out), dc = detail::fresh_state(dys[2], *pass, size),
          dsums = detail::empty<T>(gates.shape()), dprojected, dshown;
        if (weight_hr.defined()) {
          dprojected = detail::empty<T>(y.shape());
          dshown = detail::empty<T>({pass->sequences, size});
        }
        const detail::StepWeight<T> weight(detail::matrix_of(weight_hh), *pass);
        for (auto step = pass->steps.rbegin(); step != pass->steps.rend(); ++step) {
          const std::size_t row = step->row, count = step->count;
          const kernels::Matrix<T> of_step = detail::rows_of(*step, detail::data(dsums), sums),
                                   of_h(detail::data(dh), count, out);
          detail::add_step_gradient(dys[0], *step, out, of_h.data);
          const T* of_shown = of_h.data;
          if (weight_hr.defined()) {
            std::copy_n(of_h.data, count * out, detail::data(dprojected) + row * out);
            kernels::gemm<T>(1, of_h, detail::matrix_of(weight_hr), 0, {detail::data(dshown), count, size});
            of_shown = detail::data(dshown);
          }
          kernels::lstm_step_grad<T>(
              of_shown, detail::data(gates) + row * sums, detail::data(cells) + row * size,
              detail::data(cells_before) + row * size, detail::data(dc), of_step.data, count, size);
          weight.multiply(of_step, 0, of_h);
        }
        if (dh0.defined()) dh0 = std::move(dh);
        if (dc0.defined()) dc0 = std::move(dc);
        detail::product_grads<T>(dsums, dsums, x, detail::states_before(*pass, h0, y), weight_ih, weight_hh,
                                 {dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh});
        if (dweight_hr.defined()) {
          kernels::gemm<T>(1, detail::matrix_of(dprojected).transpose(), detail::matrix_of(shown), 0,
                           {detail::data(dweight_hr), out, size});
        }
        return grads;
      });
}

}  // namespace

template <class T>
LSTMResult<T> lstm(const Variable<T>& x, const std::type_identity_t<Variable<T>>& h0,
                   const std::type_identity_t<Variable<T>>& c0,
                   const std::vector<RecurrentWeights<std::type_identity_t<T>>>& weights,
                   const RecurrentOptions& options) {
  auto [output, h, c] =
      detail::run_layers<T, 2>(ops::lstm.name, 4, x, {h0, c0}, {"h0", "c0"}, weights, options, lstm_pass<T>);
  return {std::move(output), std::move(h), std::move(c)};
}

#define XGRAD_INSTANTIATE(T)                                                              \
  template LSTMResult<T> lstm(const Variable<T>&, const Variable<T>&, const Variable<T>&, \
                              const std::vector<RecurrentWeights<T>>&, const RecurrentOptions&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
