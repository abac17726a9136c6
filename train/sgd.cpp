#include <xgrad/train/sgd.hpp>

#include <cmath>

#include <xtensor/xbuilder.hpp>

#include <xgrad/ops/kernels/optimizer.hpp>

namespace xgrad {

template <class T>
SGD<T>::SGD(std::vector<Variable<T>> parameters, SGDOptions options)
    : Optimizer<T>("SGD", std::move(parameters), options.lr), options_(options) {
  detail::checked_rate("SGD", "momentum", options.momentum);
  detail::checked_rate("SGD", "weight_decay", options.weight_decay);
  if (!std::isfinite(options.dampening)) {
    detail::fail<ValueError>("SGD: dampening must be finite, got ", options.dampening);
  }
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    detail::fail<ValueError>("SGD: nesterov needs a momentum and no dampening, got ", options.momentum,
                             " and ", options.dampening);
  }
  if (options.momentum == 0) return;
  for (const Variable<T>& parameter : this->parameters()) {
    slots_.push_back({.velocity = xt::zeros<T>(parameter.shape())});
  }
}

template <class T>
void SGD<T>::step() {
  for (std::size_t i = 0; i < this->parameters().size(); ++i) {
    const Variable<T>& parameter = this->parameters()[i];
    if (!parameter.has_grad()) continue;
    const Variable<T> gradient = parameter.grad();
    Slot* slot = slots_.empty() ? nullptr : &slots_[i];
    kernels::sgd_step(detail::mutable_data(parameter), detail::data(gradient),
                      slot != nullptr ? slot->velocity.data() : nullptr, parameter.size(), this->lr(),
                      options_.momentum, options_.dampening, options_.weight_decay, options_.nesterov,
                      slot != nullptr && !slot->started);
    if (slot != nullptr) slot->started = true;
  }
}

template class SGD<float>;
template class SGD<double>;

}  // namespace xgrad
