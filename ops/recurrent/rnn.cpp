#include "../../graph/fused.hpp"
#include "../../kernels/recurrent/gates.hpp"
#include "../detail/entry_of.hpp"
#include "../detail/kernel_grads.hpp"
#include "../pointwise/elementwise.hpp"
#include "../product/linear.hpp"
#include "detail/layers.hpp"

namespace xgrad {
namespace {

template <class T>
struct RNNFunction {
  const char* name;
  void (*step)(T*, T*, std::size_t, std::size_t);
  void (*step_grad)(const T*, const T*, T*, std::size_t, std::size_t);
  Variable<T> (*composed)(const Variable<T>&);
};

template <class T>
const RNNFunction<T>& rnn_function(Nonlinearity f) {
  static const RNNFunction<T> all[] = {
      {"tanh", kernels::rnn_tanh_step<T>, kernels::rnn_tanh_step_grad<T>, tanh<T>},
      {"relu", kernels::rnn_relu_step<T>, kernels::rnn_relu_step_grad<T>, relu<T>}};
  return detail::entry_of("rnn", "f", all, f);
}

/// The states after every step (rows, H), and those after the last.
template <class T>
std::array<Variable<T>, 2> rnn_pass(const Variable<T>& x, const Variable<T>& h0,
                                    const RecurrentWeights<T>& weights, const detail::SharedPass& pass,
                                    const RNNFunction<T>& f) {
  using V = Variable<T>;
  const V& weight_hh = weights.weight_hh;
  const std::size_t size = weight_hh.shape()[0];
  V y = detail::input_products(ops::rnn.name, x, weights, weights.bias_hh),
    h = detail::fresh_state(h0, *pass, size);
  const detail::StepWeight<T> weight(detail::matrix_of(weight_hh).transpose(), *pass);
  for (const detail::Pass::Step& step : pass->steps) {
    const kernels::Matrix<T> sums = detail::rows_of(step, detail::data(y), size);
    weight.multiply({detail::data(std::as_const(h)), step.count, size}, 1, sums);
    f.step(sums.data, detail::data(h), step.count, size);
  }
  return fused_many<T, 2>(
      ops::rnn, {std::move(y), std::move(h)},
      Inputs(x, h0, weights.weight_ih, weight_hh, Unread(weights.bias_ih), Unread(weights.bias_hh)),
      Attributes(f.name, pass->counts, pass->reverse), Saved(Output(0)),
      [pass, &f, size](const V& x, const V& h0, const V& weight_ih, const V& weight_hh, const V& bias_ih,
                       const V& bias_hh) {
        return detail::composed_pass<T, 1>(
            *pass, linear(x, weight_ih, bias_ih), {h0}, {size},
            [&](const V& sums, const std::array<V, 1>& h) {
              return std::array<V, 1>{f.composed(sums + linear(h[0], weight_hh, bias_hh))};
            });
      },
      [pass, &f, size](const std::array<V, 2>& dys, Needs needs, const V& x, const V& h0, const V& weight_ih,
                       const V& weight_hh, const V&, const V&, const V& y) -> Grads<T, 6> {
        auto grads = detail::empty_grads<T, 6>(needs);
        auto& [dx, dh0, dweight_ih, dweight_hh, dbias_ih, dbias_hh] = grads;
        V dh = detail::fresh_state(dys[1], *pass, size), dsums = detail::empty<T>(y.shape());
        const detail::StepWeight<T> weight(detail::matrix_of(weight_hh), *pass);
        for (auto step = pass->steps.rbegin(); step != pass->steps.rend(); ++step) {
          const kernels::Matrix<T> of_step = detail::rows_of(*step, detail::data(dsums), size);
          detail::add_step_gradient(dys[0], *step, size, detail::data(dh));
          f.step_grad(detail::data(dh), detail::data(y) + step->row * size, of_step.data, step->count, size);
          weight.multiply(of_step, 0, {detail::data(dh), step->count, size});
        }
        if (dh0.defined()) dh0 = std::move(dh);
        detail::product_grads<T>(dsums, dsums, x, detail::states_before(*pass, h0, y), weight_ih, weight_hh,
                                 {dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh});
        return grads;
      });
}

}  // namespace

template <class T>
RecurrentResult<T> rnn(const Variable<T>& x, const std::type_identity_t<Variable<T>>& h0,
                       const std::vector<RecurrentWeights<std::type_identity_t<T>>>& weights, Nonlinearity f,
                       const RecurrentOptions& options) {
  auto [output, h] =
      detail::run_layers<T, 1>(ops::rnn.name, 1, x, {h0}, {"h0"}, weights, options,
                               [&](const Variable<T>& rows, const std::array<Variable<T>, 1>& states,
                                   const RecurrentWeights<T>& layer, const detail::SharedPass& pass) {
                                 return rnn_pass(rows, states[0], layer, pass, rnn_function<T>(f));
                               });
  return {std::move(output), std::move(h)};
}

#define XGRAD_INSTANTIATE(T)                                                             \
  template RecurrentResult<T> rnn(const Variable<T>&, const Variable<T>&,                \
                                  const std::vector<RecurrentWeights<T>>&, Nonlinearity, \
                                  const RecurrentOptions&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
