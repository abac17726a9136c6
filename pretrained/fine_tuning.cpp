#include "fine_tuning.hpp"

namespace xgrad::pretrained {

template <class T>
std::vector<ParameterGroup<T, AdamWOptions>> decay_groups(const std::vector<NamedParameter<T>>& parameters,
                                                          AdamWOptions options) {
  ParameterGroup<T, AdamWOptions> decaying{{}, options}, others{{}, options};
  others.options.weight_decay = 0;
  for (const auto& [name, parameter] : parameters) {
    const bool is_norm = name.find("LayerNorm") != name.npos || name.find("layer_norm") != name.npos;
    (is_norm || name.ends_with("bias") ? others : decaying).parameters.push_back(parameter);
  }
  std::vector<ParameterGroup<T, AdamWOptions>> groups;
  for (auto& group : {decaying, others}) {
    if (!group.parameters.empty()) groups.push_back(group);
  }
  return groups;
}

template std::vector<ParameterGroup<float, AdamWOptions>> decay_groups(
    const std::vector<NamedParameter<float>>&, AdamWOptions);
template std::vector<ParameterGroup<double, AdamWOptions>> decay_groups(
    const std::vector<NamedParameter<double>>&, AdamWOptions);

}  // namespace xgrad::pretrained
