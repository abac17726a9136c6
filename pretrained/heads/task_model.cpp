#include "task_model.hpp"

#include <algorithm>

#include "../../ops/pointwise/dropout.hpp"
#include "../detail/family.hpp"

namespace xgrad::pretrained {

using detail::From, detail::Part;

namespace {

/// The prefix of a family without its dot, the name of the base.
std::string base_name(Family family) {
  std::string name = detail::info_of(family).files.prefix;
  name.pop_back();
  return name;
}

template <class Base>
Base base_of(const Config& config, detail::Weights& weights, Pooler pooler) {
  if constexpr (Base::is_causal)
    return Base(config, weights);
  else
    return Base(config, weights, pooler);
}

}  // namespace

template <class T, template <class> class Base>
TaskModel<T, Base>::TaskModel(const Config& config, detail::Weights& weights, const std::string& task,
                              Pooler pooler)
    : Model<T>(config, task),
      base_(this->child(base_name(config.model_type), base_of<Base<T>>(config, weights, pooler))) {
  this->eval();
}

template <class T, template <class> class Base>
std::vector<NamedParameter<T>> TaskModel<T, Base>::trainable_parameters() const {
  std::vector<NamedParameter<T>> list = this->named_parameters();
  std::erase_if(list, [](const NamedParameter<T>& entry) { return !entry.second.requires_grad(); });
  const std::string prefix = detail::info_of(this->config().model_type).files.prefix;
  if (has_encoder)
    std::stable_partition(list.begin(), list.end(),
                          [&](const NamedParameter<T>& entry) { return entry.first.starts_with(prefix); });
  return list;
}

template <class T, template <class> class Base>
Variable<T> TaskModel<T, Base>::drop(const Variable<T>& x, double probability) const {
  return xgrad::detail::dropout_if_training(x, probability, this->training());
}

template <class T, template <class> class Base>
Linear<T> TaskModel<T, Base>::linear(detail::Weights& weights, const std::string& name,
                                     std::size_t in_features, std::size_t out_features, bool bias) {
  const From from{weights, "", Part::head};
  return this->child(name, detail::take_linear<T>(from, name, {in_features, out_features, bias}));
}

template <class T, template <class> class Base>
detail::Transform<T> TaskModel<T, Base>::transform(detail::Weights& weights,
                                                   const detail::TransformForm& form) {
  std::optional<Linear<T>> dense;
  if (form.dense != nullptr)
    dense = linear(weights, form.dense, this->config().hidden_size, form.out, form.dense_bias);
  std::optional<LayerNorm<T>> norm;
  if (form.norm != nullptr) {
    const From from{weights, "", Part::head};
    norm = this->child(form.norm, detail::take_norm<T>(from, form.norm, form.out,
                                                       this->config().layer_norm_eps, form.norm_bias));
  }
  return {std::move(dense), std::move(norm), form.act};
}

template <class T>
Variable<T> detail::Transform<T>::operator()(const Variable<T>& x) const {
  const Variable<T> y = dense ? activate(act, (*dense)(x)) : x;
  return norm ? (*norm)(y) : y;
}

#define XGRAD_INSTANTIATE(T)            \
  template struct detail::Transform<T>; \
  template class TaskModel<T, Encoder>; \
  template class TaskModel<T, Decoder>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::pretrained
