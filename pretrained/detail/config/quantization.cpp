#include "quantization.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/detail/text/json_tree.hpp"

namespace xgrad::pretrained::detail {
namespace {

/// Throws FileError for a member that is not among the known ones, unless it is null.
void refuse_unknown(const Json& json, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : json.members()) {
    if (std::find(known.begin(), known.end(), name) == known.end() && !json.is_null(name))
      json.fail("the field " + xgrad::detail::in_quotes(name) +
                " is not known, and may change what is computed; remove it if it does not");
  }
}

/// How numbers are rounded: 8 bits, symmetric, with a scale for each of what `strategy` names.
void check_scheme(const Json& scheme, const char* strategy, bool is_dynamic) {
  refuse_unknown(scheme, {"actorder", "dynamic", "num_bits", "observer", "observer_kwargs", "scale_dtype",
                          "strategy", "symmetric", "type", "zp_dtype"});
  const auto must_be = [](const Json& value, const char* text) {
    if (value.text() != text) value.refuse('"' + std::string(text) + '"');
  };
  must_be(scheme.at("type"), "int");
  must_be(scheme.at("strategy"), strategy);
  scheme.at("num_bits").integer(8, 8);
  const Json symmetric = scheme.at("symmetric"), dynamic = scheme.at("dynamic");
  if (!symmetric.boolean()) symmetric.refuse("true");
  if (dynamic.boolean() != is_dynamic) dynamic.refuse(is_dynamic ? "true" : "false");
}

void check_group(const Json& group) {
  refuse_unknown(group, {"format", "input_activations", "targets", "weights"});
  if (const auto format = group.find("format"); format && format->text() != "int-quantized")
    format->refuse("\"int-quantized\"");
  check_scheme(group.at("weights"), "channel", false);
  check_scheme(group.at("input_activations"), "token", true);
}

}  // namespace

void check_quantization(const Json& json) {
  const Json method = json.at("quant_method");
  if (method.text() != "compressed-tensors") method.refuse("\"compressed-tensors\"");
  const Json format = json.at("format");
  if (format.text() != "int-quantized") format.refuse("\"int-quantized\"");
  refuse_unknown(json, {"config_groups", "format", "global_compression_ratio", "ignore", "quant_method",
                        "quantization_status", "sparsity_config", "transform_config", "version"});
  for (const char* const name : {"sparsity_config", "transform_config"}) {
    const auto other = json.find(name);
    if (other && !other->members().empty()) other->refuse("empty");
  }
  const Json groups = json.at("config_groups");
  if (groups.members().empty()) groups.refuse("one or more groups");
  for (const auto& [name, group] : groups.members()) check_group(group);
}

std::string quantization_json(const std::vector<std::string>& ignored) {
  const auto scheme = [](const char* strategy, bool is_dynamic) {
    return xgrad::detail::JsonTree{{"num_bits", 8},
                                   {"type", "int"},
                                   {"symmetric", true},
                                   {"strategy", strategy},
                                   {"dynamic", is_dynamic}};
  };
  const xgrad::detail::JsonTree group{{"targets", {"Linear"}},
                                      {"weights", scheme("channel", false)},
                                      {"input_activations", scheme("token", true)}};
  return xgrad::detail::JsonTree{{"quant_method", "compressed-tensors"},
                                 {"format", "int-quantized"},
                                 {"quantization_status", "compressed"},
                                 {"config_groups", {{"group_0", group}}},
                                 {"ignore", ignored}}
      .dump();
}

}  // namespace xgrad::pretrained::detail
