#include "named_function.hpp"

#include <map>
#include <string>

#include "../../../ops/pointwise/elementwise.hpp"

namespace xgrad::pretrained::detail {

template <class T>
VectorFunction<T> function_named(const Json& name) {
  using X = const Variable<T>&;
  static const std::map<std::string, VectorFunction<T>> functions{
      {"Tanh", [](X x) { return tanh(x); }},
      {"Identity", [](X x) { return x; }},
      {"ReLU", [](X x) { return relu(x); }},
      {"GELU", [](X x) { return gelu(x); }},
      {"SiLU", [](X x) { return silu(x); }},
      {"Sigmoid", [](X x) { return sigmoid(x); }},
      {"ELU", [](X x) { return elu(x); }},
      {"LeakyReLU", [](X x) { return leaky_relu(x); }},
      {"LogSigmoid", [](X x) { return log_sigmoid(x); }},
      {"Softplus", [](X x) { return softplus(x); }}};
  const std::string& text = name.text();
  const auto found = functions.find(text.substr(text.rfind('.') + 1));
  if (!text.starts_with("torch.nn.") || found == functions.end()) {
    std::string names;
    for (const auto& [known, function] : functions) names += (names.empty() ? "" : ", ") + known;
    name.refuse("one of torch.nn's " + names);
  }
  return found->second;
}

template VectorFunction<float> function_named(const Json&);
template VectorFunction<double> function_named(const Json&);

}  // namespace xgrad::pretrained::detail
