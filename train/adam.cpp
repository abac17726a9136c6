#include <xgrad/train/adam.hpp>

#include <cmath>

#include <xtensor/xbuilder.hpp>

#include <xgrad/ops/kernels/optimizer.hpp>

namespace xgrad {
namespace {

/// 1 - beta^step of both betas; parameters that are all in the same step share the powers.
struct BiasCorrections {
  std::size_t step = 0;
  double first = 0, second = 0;

  void move_to(std::size_t wanted, const std::pair<double, double>& betas) {
    if (wanted == step) return;
    step = wanted;
    first = 1 - std::pow(betas.first, static_cast<double>(step));
    second = 1 - std::pow(betas.second, static_cast<double>(step));
  }
};

void check_beta(const char* name, double beta) {
  if (!(beta >= 0 && beta < 1)) detail::fail<ValueError>(name, ": betas must be in [0, 1), got ", beta);
}

AdamOptions plain(const AdamWOptions& options) {
  return {.lr = options.lr, .betas = options.betas, .eps = options.eps, .weight_decay = options.weight_decay};
}

}  // namespace

namespace detail {

template <class T>
AdamSteps<T>::AdamSteps(const char* name, std::vector<Variable<T>> parameters, const AdamOptions& options,
                        bool decoupled)
    : Optimizer<T>(name, std::move(parameters), options.lr), options_(options), decoupled_(decoupled) {
  check_beta(name, options.betas.first);
  check_beta(name, options.betas.second);
  checked_rate(name, "eps", options.eps);
  checked_rate(name, "weight_decay", options.weight_decay);
  for (const Variable<T>& parameter : this->parameters()) {
    slots_.push_back({.m = xt::zeros<T>(parameter.shape()), .v = xt::zeros<T>(parameter.shape())});
  }
}

template <class T>
void AdamSteps<T>::step() {
  BiasCorrections corrections;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Variable<T>& parameter = this->parameters()[i];
    if (!parameter.has_grad()) continue;
    const Variable<T> gradient = parameter.grad();
    Slot& slot = slots_[i];
    corrections.move_to(++slot.steps, options_.betas);
    kernels::adam_step(mutable_data(parameter), data(gradient), slot.m.data(), slot.v.data(),
                       parameter.size(), this->lr(), options_.betas.first, options_.betas.second,
                       options_.eps, options_.weight_decay, decoupled_, corrections.first,
                       corrections.second);
  }
}

template class AdamSteps<float>;
template class AdamSteps<double>;

}  // namespace detail

template <class T>
Adam<T>::Adam(std::vector<Variable<T>> parameters, AdamOptions options)
    : detail::AdamSteps<T>("Adam", std::move(parameters), options, false) {}

template <class T>
AdamW<T>::AdamW(std::vector<Variable<T>> parameters, AdamWOptions options)
    : detail::AdamSteps<T>("AdamW", std::move(parameters), plain(options), true) {}

template class Adam<float>;
template class Adam<double>;
template class AdamW<float>;
template class AdamW<double>;

}  // namespace xgrad
