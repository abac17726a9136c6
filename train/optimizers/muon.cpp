#include "muon.hpp"

#include <algorithm>
#include <cmath>

#include "../../kernels/gemm/gemm.hpp"
#include "../../kernels/pointwise/optimizer.hpp"
#include "../../kernels/rows/reduce.hpp"

namespace xgrad {
namespace {

const MuonOptions& checked(const char* name, const MuonOptions& options) {
  detail::checked_rate(name, "lr", options.lr);
  detail::checked_rate(name, "weight_decay", options.weight_decay);
  detail::checked_rate(name, "momentum", options.momentum);
  detail::checked_rate(name, "eps", options.eps);
  for (const double coefficient : options.ns_coefficients) {
    if (!std::isfinite(coefficient))
      detail::fail<ValueError>(name, ": ns_coefficients must be finite, got ", coefficient);
  }
  if (options.ns_steps >= 100)
    detail::fail<ValueError>(name, ": ns_steps must be below 100, got ", options.ns_steps);
  return options;
}

/// C = alpha A B + beta C, rounded to bfloat16.
void multiply(double alpha, const kernels::Matrix<const float>& a, const kernels::Matrix<const float>& b,
              double beta, Array<float>& c) {
  const kernels::Matrix<float> product(c.data(), a.rows, b.cols);
  kernels::gemm<float>(static_cast<float>(alpha), a, b, static_cast<float>(beta), product);
  kernels::div_to_bfloat16(1, c.data(), c.size());
}

/// x becomes a matrix with nearly the same singular vectors, whose singular values are near 1: steps of
/// Newton and Schulz on the shorter side.
void orthogonalize(Array<float>& x, const MuonOptions& options) {
  const auto [a, b, c] = options.ns_coefficients;
  const std::size_t rows = x.shape()[0], cols = x.shape()[1], side = std::min(rows, cols);
  float length[] = {static_cast<float>(std::sqrt(kernels::squared_norm(x.data(), x.size()))),
                    static_cast<float>(options.eps)};
  kernels::div_to_bfloat16(1, length, 2);
  kernels::div_to_bfloat16(std::max(length[0], length[1]), x.data(), x.size());
  Array<float> gram = Array<float>::from_shape({side, side}), change, before;
  for (std::size_t step = 0; step < options.ns_steps; ++step) {
    before = x;
    const kernels::Matrix<const float> old(before.data(), rows, cols), square(gram.data(), side, side);
    const bool wide = rows <= cols;
    multiply(1, wide ? old : old.transpose(), wide ? old.transpose() : old, 0, gram);
    change = gram;
    multiply(c, square, square, b, change);
    const kernels::Matrix<const float> factor(change.data(), side, side);
    multiply(1, wide ? factor : old, wide ? old : factor, a, x);
  }
}

double adjusted(const MuonOptions& options, const Shape& shape) {
  const auto rows = static_cast<double>(shape[0]), cols = static_cast<double>(shape[1]);
  if (options.adjust_lr_fn == MuonAdjustment::original)
    return options.lr * std::sqrt(std::max(1.0, rows / cols));
  return options.lr * 0.2 * std::sqrt(std::max(rows, cols));
}

}  // namespace

template <class T>
Muon<T>::Muon(std::vector<Variable<T>> parameters, MuonOptions options)
    : Muon(std::vector<Group>{{.parameters = std::move(parameters), .options = options}}) {}

template <class T>
Muon<T>::Muon(const std::vector<Group>& groups)
    : detail::OptimizerOfGroups<T, MuonOptions>("Muon", groups, checked) {
  for (const Variable<T>& parameter : this->parameters()) {
    if (parameter.dimension() != 2)
      detail::fail<ShapeError>("Muon: every parameter must be a matrix, got ", parameter.shape());
  }
  momenta_.resize(this->parameters().size());
}

template <class T>
void Muon<T>::step() {
  detail::NewArrays<T> added;
  std::vector<Array<float>> updates;
  std::vector<Array<T>> momenta;  // after the step
  updates.reserve(momenta_.size());
  momenta.reserve(momenta_.size());
  this->visit_parameters([&](std::size_t i, const Variable<T>& parameter, const Variable<T>& gradient,
                             const MuonOptions& options) {
    added.make(momenta_[i], parameter.shape());
    Array<T>& momentum = momenta.emplace_back(*momenta_[i]);
    Array<float>& update = updates.emplace_back(Array<float>::from_shape(parameter.shape()));
    if (parameter.size() == 0) return;
    kernels::muon_momentum<T>(options.momentum, options.nesterov, detail::data(gradient), momentum.data(),
                              update.data(), update.size());
    orthogonalize(update, options);
  });
  added.keep();
  auto update = updates.begin();
  auto momentum = momenta.begin();
  this->visit_parameters(
      [&](std::size_t i, const Variable<T>& parameter, const Variable<T>&, const MuonOptions& options) {
        *momenta_[i] = std::move(*momentum++);
        kernels::muon_step<T>(1 - options.lr * options.weight_decay, adjusted(options, parameter.shape()),
                              (update++)->data(), detail::mutable_data(parameter), parameter.size());
      });
}

template <class T>
void Muon<T>::keep_state(StateArchive& state) {
  state.keep(this->options_, momenta_);
}

template <class T>
void Muon<T>::list_options(StateArchive& state, const std::string& prefix, std::size_t group) {
  MuonOptions& options = this->options_[group];
  state.number(prefix + "lr", options.lr);
  state.number(prefix + "weight_decay", options.weight_decay);
  state.number(prefix + "momentum", options.momentum);
  state.number(prefix + "nesterov", options.nesterov);
  for (std::size_t i = 0; i < options.ns_coefficients.size(); ++i)
    state.number(prefix + "ns_coefficients." + std::to_string(i), options.ns_coefficients[i]);
  state.number(prefix + "eps", options.eps);
  state.number(prefix + "ns_steps", options.ns_steps);
  bool matches_adamw = options.adjust_lr_fn == MuonAdjustment::match_rms_adamw;
  state.flag(prefix + "match_rms_adamw", matches_adamw);
  options.adjust_lr_fn = matches_adamw ? MuonAdjustment::match_rms_adamw : MuonAdjustment::original;
  state.check([&] { checked(this->name(), options); });
}

template <class T>
void Muon<T>::list_parameter(StateArchive& state, const std::string& name, std::size_t parameter) {
  state.array(name + ".momentum_buffer", momenta_[parameter], this->parameters()[parameter].shape());
}

template class Muon<float>;
template class Muon<double>;

}  // namespace xgrad
