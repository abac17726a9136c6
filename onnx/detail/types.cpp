#include "types.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace xgrad::onnx::detail {
namespace {

/// The type of the first output where it is not that of the first input: one of all nodes of an operator, or
/// that of another input.
struct FirstType {
  std::int64_t type = 0;
  std::size_t input = 0;
};

const std::map<std::string_view, FirstType>& first_types() {
  using namespace data_type;
  static const std::map<std::string_view, FirstType> all = [] {
    std::map<std::string_view, FirstType> types{{"DynamicQuantizeLinear", {uint8}},
                                                {"MatMulInteger", {int32}},
                                                {"ConvInteger", {int32}},
                                                {"Where", {0, 1}},
                                                {"CastLike", {0, 1}},
                                                {"DequantizeLinear", {0, 1}},
                                                {"OneHot", {0, 2}},
                                                {"QuantizeLinear", {0, 2}},
                                                {"com.microsoft.QuantizeLinear", {0, 2}},
                                                {"com.microsoft.DequantizeLinear", {0, 1}},
                                                {"com.microsoft.EmbedLayerNormalization", {0, 2}},
                                                {"com.microsoft.MatMulIntegerToFloat", {0, 2}},
                                                {"QLinearMatMul", {0, 7}},
                                                {"QLinearConv", {0, 7}}};
    for (const char* name : {"Shape", "Size", "ArgMax", "ArgMin", "NonZero"})
      types.emplace(name, FirstType{int64});
    for (const char* name : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor",
                             "Not", "IsNaN", "IsInf"})
      types.emplace(name, FirstType{boolean});
    return types;
  }();
  return all;
}

/// Of the attributes that say what a node makes.
std::int64_t type_in_attributes(const Node& node) {
  for (const Attribute& attribute : node.attributes) {
    const std::string_view name = attribute.name;
    const bool is_type = name == "to" || name == "output_dtype" || (name == "dtype" && node.op == "EyeLike");
    if (is_type) return attribute.integer.value_or(0);
    if (node.op != "Constant" && node.op != "ConstantOfShape") continue;
    if (attribute.tensor) return attribute.tensor->type;
    if (name.starts_with("value_float")) return data_type::float32;
    if (name.starts_with("value_int")) return data_type::int64;
  }
  return node.op == "ConstantOfShape" ? data_type::float32 : 0;
}

}  // namespace

std::vector<std::int64_t> output_types(const Node& node, std::span<const std::int64_t> inputs) {
  const auto input = [&](std::size_t i) { return i < inputs.size() ? inputs[i] : 0; };
  const std::string name = node.operator_name();
  std::vector<std::int64_t> types(node.outputs.size(), input(0));
  if (types.empty()) return types;
  const auto known = first_types().find(name);
  if (known != first_types().end())
    types[0] = known->second.type != 0 ? known->second.type : input(known->second.input);
  if (const std::int64_t type = type_in_attributes(node)) types[0] = type;
  if (name.ends_with("QuantizeLinear") && types[0] == 0) types[0] = data_type::uint8;
  if (types.size() == 1) return types;
  if (name == "TopK" || name == "MaxPool" || name == "Unique")
    std::fill(types.begin() + 1, types.end(), data_type::int64);
  if (name == "Dropout") types[1] = data_type::boolean;
  if (name == "DynamicQuantizeLinear") types[1] = data_type::float32;
  if (name == "DynamicQuantizeLinear" && types.size() > 2) types[2] = data_type::uint8;
  if (name == "com.microsoft.EmbedLayerNormalization") types[1] = data_type::int32;
  return types;
}

bool has_doubles(const Subgraph& graph) {
  const auto is_double = [](const auto& one) { return one.type == data_type::float64; };
  if (std::any_of(graph.inputs.begin(), graph.inputs.end(), is_double) ||
      std::any_of(graph.initializers.begin(), graph.initializers.end(), is_double))
    return true;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    if (node.op == "Cast" && type_in_attributes(node) == data_type::float64) return true;
    return std::any_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& attribute) {
      return (attribute.graph != nullptr && has_doubles(*attribute.graph)) ||
             (attribute.tensor && attribute.tensor->type == data_type::float64);
    });
  });
}

}  // namespace xgrad::onnx::detail
