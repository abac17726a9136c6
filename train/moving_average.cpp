#include "moving_average.hpp"

#include <algorithm>

#include "../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

constexpr const char* class_name = "ExponentialMovingAverage";

}  // namespace

template <class T>
ExponentialMovingAverage<T>::ExponentialMovingAverage(const Module<T>& model, double decay)
    : decay_(decay), parameters_(model.named_parameters()) {
  if (!(decay >= 0 && decay <= 1)) {
    detail::fail<ValueError>(class_name, ": decay must be in [0, 1], got ", decay);
  }
  for (const auto& [name, parameter] : parameters_) averages_.push_back(parameter.value());
}

template <class T>
void ExponentialMovingAverage<T>::update() {
  check_usable("update", true);
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const Variable<T>& parameter = parameters_[i].second;
    if (n_averaged_ == 0) {
      averages_[i] = parameter.value();
    } else {
      kernels::average_step(averages_[i].data(), detail::data(parameter), parameter.size(), decay_);
    }
  }
  ++n_averaged_;
}

template <class T>
void ExponentialMovingAverage<T>::copy_to(const Module<T>& other) const {
  check_usable("copy_to", n_averaged_ > 0);
  const std::vector<NamedParameter<T>> targets = other.named_parameters();
  const auto fits = [](const NamedParameter<T>& ours, const NamedParameter<T>& target) {
    return ours.first == target.first && same_shape(ours.second.shape(), target.second.shape());
  };
  if (!std::equal(parameters_.begin(), parameters_.end(), targets.begin(), targets.end(), fits)) {
    detail::fail<ValueError>(
        class_name, ": copy_to needs a model with the same parameter names and shapes, got ", other.type());
  }
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i].second.assign(averages_[i]);
}

template <class T>
typename ExponentialMovingAverage<T>::Applied ExponentialMovingAverage<T>::apply() {
  check_usable("apply", n_averaged_ > 0);
  return Applied(*this);
}

template <class T>
void ExponentialMovingAverage<T>::list_state(StateArchive& state) {
  check_usable("state_dict", true);
  state.number("n_averaged", n_averaged_);
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    state.array("module." + parameters_[i].first, averages_[i]);
  }
}

template <class T>
void ExponentialMovingAverage<T>::swap() {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const Variable<T>& parameter = parameters_[i].second;
    T* elements = detail::mutable_data(parameter);
    std::swap_ranges(elements, elements + parameter.size(), averages_[i].data());
  }
  applied_ = !applied_;
}

template <class T>
void ExponentialMovingAverage<T>::check_usable(const char* call, bool updated) const {
  if (applied_)
    detail::fail<ValueError>(class_name, ": ", call, " must not be called while the averages are applied");
  if (!updated) detail::fail<ValueError>(class_name, ": ", call, " needs an update first");
}

template class ExponentialMovingAverage<float>;
template class ExponentialMovingAverage<double>;

}  // namespace xgrad
