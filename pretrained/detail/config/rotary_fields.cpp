#include "rotary_fields.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <variant>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/detail/text/json_tree.hpp"
#include "../../../base/error.hpp"

namespace xgrad::pretrained::detail {
namespace {

constexpr double most = most_rotary_number;
constexpr std::size_t most_head_dim = 65536;

std::optional<double> number_in(const Json& parameters, const char* name) {
  if (const auto found = parameters.find(name)) return found->number(0, most);
  return std::nullopt;
}

std::size_t positions_in(const Json& parameters, std::size_t otherwise) {
  const auto found = parameters.find("original_max_position_embeddings");
  return found ? static_cast<std::size_t>(found->integer(1, 1 << 28)) : otherwise;
}

/// Throws FileError for a field that no scaling has.
void refuse_others(const Json& parameters) {
  static const std::set<std::string> known{"attention_factor",
                                           "beta_fast",
                                           "beta_slow",
                                           "factor",
                                           "high_freq_factor",
                                           "long_factor",
                                           "low_freq_factor",
                                           "mscale",
                                           "mscale_all_dim",
                                           "original_max_position_embeddings",
                                           "partial_rotary_factor",
                                           "rope_theta",
                                           "rope_type",
                                           "short_factor",
                                           "truncate",
                                           "type"};
  for (const auto& [name, value] : parameters.members()) {
    if (!known.contains(name) && !parameters.is_null(name))
      parameters.fail(
          xgrad::detail::join({"the field ", xgrad::detail::in_quotes(name),
                               " of rotary positions is not known, and may change what the model computes; "
                               "remove it if it does not"}));
  }
  const auto part = parameters.find("partial_rotary_factor");
  if (part && part->number(0, 1) != 1) part->refuse("1, as all of a head is rotated");
}

xgrad::detail::JsonTree parameters_of(std::monostate) { return {{"rope_type", "default"}}; }

xgrad::detail::JsonTree parameters_of(const LinearScaling& scaling) {
  return {{"rope_type", "linear"}, {"factor", scaling.factor}};
}

/// max_positions is a field of its own.
xgrad::detail::JsonTree parameters_of(const DynamicScaling& scaling) {
  return {{"rope_type", "dynamic"}, {"factor", scaling.factor}};
}

xgrad::detail::JsonTree parameters_of(const Llama3Scaling& scaling) {
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"original_max_position_embeddings", scaling.original_max_positions}};
}

xgrad::detail::JsonTree parameters_of(const YarnScaling& scaling) {
  xgrad::detail::JsonTree all{{"rope_type", "yarn"},
                              {"factor", scaling.factor},
                              {"original_max_position_embeddings", scaling.original_max_positions},
                              {"beta_fast", scaling.beta_fast},
                              {"beta_slow", scaling.beta_slow},
                              {"truncate", scaling.truncate}};
  if (scaling.attention_factor) all["attention_factor"] = *scaling.attention_factor;
  if (scaling.mscale != 0) all["mscale"] = scaling.mscale;
  if (scaling.mscale_all_dim != 0) all["mscale_all_dim"] = scaling.mscale_all_dim;
  return all;
}

xgrad::detail::JsonTree parameters_of(const LongScaling& scaling) {
  xgrad::detail::JsonTree all{{"rope_type", "longrope"},
                              {"factor", scaling.factor},
                              {"original_max_position_embeddings", scaling.original_max_positions},
                              {"short_factor", scaling.short_factors},
                              {"long_factor", scaling.long_factors}};
  if (scaling.attention_factor) all["attention_factor"] = *scaling.attention_factor;
  return all;
}

std::vector<double> numbers_in(const Json& list) {
  std::vector<double> numbers;
  for (const Json& item : list.items()) numbers.push_back(item.number(0, most));
  return numbers;
}

}  // namespace

std::string described(const RotaryConfig& rotary) {
  xgrad::detail::JsonTree all =
      std::visit([](const auto& scaling) { return parameters_of(scaling); }, rotary.scaling);
  all["rope_theta"] = rotary.theta;
  if (const auto* const dynamic = std::get_if<DynamicScaling>(&rotary.scaling))
    all["max_positions"] = dynamic->max_positions;
  return all.dump();
}

void theta_field(Fields& fields, const char* name, RotaryConfig& rotary) {
  fields.number(name, rotary.theta, most);
}

void rotary_fields(Fields& fields, std::size_t max_positions, RotaryConfig& rotary) {
  theta_field(fields, "rope_theta", rotary);
  for (const char* const name : {"rope_scaling", "rope_parameters"}) {
    if (const auto parameters = fields.found(name)) read_rotary(*parameters, max_positions, rotary);
  }
}

void write_rotary(Fields& fields, const RotaryConfig& rotary) {
  xgrad::detail::JsonTree all =
      std::visit([](const auto& scaling) { return parameters_of(scaling); }, rotary.scaling);
  fields.put("rope_scaling", std::holds_alternative<std::monostate>(rotary.scaling) ? "null" : all.dump());
  all["rope_theta"] = rotary.theta;
  fields.put("rope_parameters", all.dump());
}

void head_dim_field(Fields& fields, Config& config) {
  if (fields.json() != nullptr && fields.json()->is_null("head_dim")) config.head_dim = 0;
  if (const auto given = fields.found("head_dim"))
    config.head_dim = static_cast<std::size_t>(given->integer(1, most_head_dim));
  fields.put("head_dim", std::to_string(config.head_size()));
}

std::string broken_rotary_rule(RotaryConfig rotary, std::size_t head_dim) {
  rotary.dim = head_dim;
  if (rotary.dim == 0 || rotary.dim % 2 != 0 || rotary.dim > most_head_dim)
    return "head_dim, or hidden_size / num_attention_heads, must be an even number up to " +
           std::to_string(most_head_dim) + ", got " + std::to_string(rotary.dim);
  try {
    const Array<float> cos = rotary_tables<float>(rotary, 2).cos.value();
    if (!std::all_of(cos.begin(), cos.end(), [](float one) { return std::isfinite(one); }))
      return "rope_theta and the scaling must give finite angles";
  } catch (const ValueError& error) {
    return std::string("rope_theta and the scaling: ") + error.what();
  }
  return "";
}

void read_rotary(const Json& parameters, std::size_t max_positions, RotaryConfig& config) {
  refuse_others(parameters);
  if (const auto theta = number_in(parameters, "rope_theta")) config.theta = *theta;
  auto type = parameters.find("rope_type");
  if (!type) type = parameters.find("type");
  const std::string kind = type ? type->text() : "default";
  const auto required = [&](const char* name) { return parameters.at(name).number(0, most); };
  const std::size_t original = positions_in(parameters, max_positions);
  const double ratio = static_cast<double>(max_positions) / static_cast<double>(original);
  if (kind == "default") {
    config.scaling = std::monostate();
  } else if (kind == "linear") {
    config.scaling = LinearScaling{required("factor")};
  } else if (kind == "dynamic") {
    config.scaling = DynamicScaling{.factor = required("factor"), .max_positions = max_positions};
  } else if (kind == "llama3") {
    config.scaling = Llama3Scaling{.factor = required("factor"),
                                   .low_freq_factor = required("low_freq_factor"),
                                   .high_freq_factor = required("high_freq_factor"),
                                   .original_max_positions = original};
  } else if (kind == "yarn") {
    YarnScaling yarn{.factor = number_in(parameters, "factor").value_or(ratio),
                     .original_max_positions = original};
    yarn.beta_fast = number_in(parameters, "beta_fast").value_or(yarn.beta_fast);
    yarn.beta_slow = number_in(parameters, "beta_slow").value_or(yarn.beta_slow);
    if (const auto truncate = parameters.find("truncate")) yarn.truncate = truncate->boolean();
    yarn.attention_factor = number_in(parameters, "attention_factor");
    yarn.mscale = number_in(parameters, "mscale").value_or(0);
    yarn.mscale_all_dim = number_in(parameters, "mscale_all_dim").value_or(0);
    config.scaling = yarn;
  } else if (kind == "longrope") {
    config.scaling = LongScaling{.short_factors = numbers_in(parameters.at("short_factor")),
                                 .long_factors = numbers_in(parameters.at("long_factor")),
                                 .factor = number_in(parameters, "factor").value_or(ratio),
                                 .original_max_positions = original,
                                 .attention_factor = number_in(parameters, "attention_factor")};
  } else {
    type->refuse("default, linear, dynamic, llama3, yarn or longrope");
  }
}

}  // namespace xgrad::pretrained::detail
