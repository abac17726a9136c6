#include "moving_average.hpp"

#include <algorithm>

#include "../kernels/pointwise/optimizer.hpp"

namespace xgrad {
namespace {

constexpr const char* class_name = "ExponentialMovingAverage";

}  // namespace

template <class T>
ExponentialMovingAverage<T>::ExponentialMovingAverage(const Module<T>& model, double decay)
    : decay_(decay), parameters_(model.named_parameters()), buffers_(model.named_buffers()) {
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
      std::copy_n(detail::data(parameter), parameter.size(), averages_[i].data());
    } else {
      kernels::average_step(averages_[i].data(), detail::data(parameter), parameter.size(), decay_);
    }
  }
  ++n_averaged_;
}

template <class T>
void ExponentialMovingAverage<T>::copy_to(const Module<T>& other) const {
  check_usable("copy_to", n_averaged_ > 0);
  using Named = std::vector<NamedParameter<T>>;
  const Named targets = other.named_parameters(), buffers = other.named_buffers();
  const auto fit = [](const Named& ours, const Named& theirs) {
    return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                      [](const auto& a, const auto& b) {
                        return a.first == b.first && same_shape(a.second.shape(), b.second.shape());
                      });
  };
  if (!fit(parameters_, targets) || !fit(buffers_, buffers)) {
    detail::fail<ValueError>(
        class_name, ": copy_to needs a model with the same names and shapes of parameters and buffers, got ",
        other.type());
  }
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i].second.assign(averages_[i]);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].second.assign(buffers_[i].second.value());
}

template <class T>
typename ExponentialMovingAverage<T>::Applied ExponentialMovingAverage<T>::apply() {
  check_usable("apply", n_averaged_ > 0);
  return Applied(*this);
}

template <class T>
void ExponentialMovingAverage<T>::list_state(StateArchive& state) {
  check_usable("state_dict", true);
  state.keep(n_averaged_, averages_);
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
