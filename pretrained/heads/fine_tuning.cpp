#include "fine_tuning.hpp"

#include <algorithm>
#include <string_view>

namespace xgrad::pretrained {
namespace {

/// Not biases and norms, by their names, as Hugging Face's Trainer finds them.
bool decays(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  for (const char* const part : {"bias", "layernorm", "rmsnorm"})
    if (name.find(part) != name.npos) return false;
  std::size_t begin = 0;
  while (begin <= name.size()) {  // each part between dots
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part(name.data() + begin, end - begin);
    if (part == "norm" || part.ends_with("_norm") || part.starts_with("ln_")) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

template <class T>
std::vector<ParameterGroup<T, AdamWOptions>> decay_groups(const std::vector<NamedParameter<T>>& parameters,
                                                          AdamWOptions options) {
  ParameterGroup<T, AdamWOptions> decaying{{}, options}, others{{}, options};
  others.options.weight_decay = 0;
  for (const auto& [name, parameter] : parameters) {
    (decays(name) ? decaying : others).parameters.push_back(parameter);
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
