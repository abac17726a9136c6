#include "causal_config.hpp"

#include "../base/error.hpp"
#include "../tokenizers/detail/files/model_folder.hpp"
#include "detail/causal_family.hpp"
#include "detail/config/config_file.hpp"
#include "detail/config/rotary_fields.hpp"
#include "detail/family.hpp"
#include "detail/gguf/gguf_model.hpp"

namespace xgrad::pretrained {
namespace {

using detail::all_causal_families, detail::CausalFamilyInfo, detail::Fields, detail::info_of, detail::Json;

CausalFamily causal_family_of(const Json& json) {
  detail::Names<CausalFamily> families;
  for (const CausalFamilyInfo* const one : all_causal_families())
    families.emplace_back(one->model_type, one->family);
  const auto name = json.find("model_type");
  const std::string architecture = detail::architecture_in(json);
  for (const CausalFamilyInfo* const one : all_causal_families()) {
    const std::string begin = one->class_name;
    const bool tells = architecture.starts_with(begin + "For") || architecture == begin + "Model" ||
                       architecture == begin + one->language_model;
    if (name ? name->text() == one->model_type : tells) return one->family;
  }
  const std::string expected = detail::listed(families) + " (the supported decoders)";
  if (name) name->refuse(expected);
  json.fail("model_type is missing, and architectures names no class that tells it: add \"model_type\", " +
            expected);
}

/// The rule broken by a part of the model that the family has no name for; empty if none.
std::string nameless_part(const CausalConfig& config) {
  const CausalFamilyInfo& family = info_of(config.model_type);
  const std::string in = std::string(" in ") + family.model_type + ", which has ";
  if (config.gated_mlp && !names_part(family.names.block, BlockPart::gate))
    return "gated_mlp must be false" + in + "no name for gates, got true";
  if (config.query_key_norm && !names_part(family.names.block, BlockPart::query_norm))
    return "query_key_norm must be false" + in + "no name for these norms, got true";
  if (!config.rotary && family.names.positions == nullptr)
    return "rotary must be there" + in + "no name for learned positions, got none";
  return "";
}

/// The rule that a config breaks; empty if none.
std::string broken_causal_rule(const CausalConfig& config) {
  const auto numbers = [](std::size_t a, std::size_t b) {
    return std::to_string(a) + " and " + std::to_string(b);
  };
  const std::size_t heads = config.num_attention_heads;
  if (heads == 0 || (config.head_dim == 0 && config.hidden_size % heads != 0))
    return "num_attention_heads must divide hidden_size, got " + numbers(heads, config.hidden_size);
  if (heads % config.key_value_heads() != 0)
    return "num_key_value_heads must divide num_attention_heads, got " +
           numbers(config.key_value_heads(), heads);
  if (config.pad_token_id && static_cast<std::size_t>(*config.pad_token_id) >= config.vocab_size)
    return "pad_token_id must be below vocab_size, got " +
           numbers(static_cast<std::size_t>(*config.pad_token_id), config.vocab_size);
  if (!config.slides.empty() && config.slides.size() != config.num_hidden_layers)
    return "layer_types must have num_hidden_layers types, got " +
           numbers(config.slides.size(), config.num_hidden_layers);
  if (config.bos_token_id && static_cast<std::size_t>(*config.bos_token_id) >= config.vocab_size)
    return "bos_token_id must be below vocab_size, got " +
           numbers(static_cast<std::size_t>(*config.bos_token_id), config.vocab_size);
  for (const std::int64_t end : config.eos_token_ids) {
    if (static_cast<std::size_t>(end) >= config.vocab_size)
      return "eos_token_ids must be below vocab_size, got " +
             numbers(static_cast<std::size_t>(end), config.vocab_size);
  }
  if (config.sliding_window == 0U) return "sliding_window must be at least 1, got 0";
  if (const std::string part = nameless_part(config); !part.empty()) return part;
  return config.rotary ? detail::broken_rotary_rule(*config.rotary, config.head_size()) : "";
}

/// eos_token_id, a number or a list of them.
void end_fields(Fields& fields, CausalConfig& config) {
  constexpr std::size_t most_ends = 1000;
  const auto most = static_cast<std::int64_t>(config.vocab_size) - 1;
  if (fields.json() != nullptr && fields.json()->is_null("eos_token_id")) config.eos_token_ids.clear();
  if (const auto found = fields.found("eos_token_id")) {
    config.eos_token_ids.clear();
    if (found->is_array()) {
      const std::vector<Json> all = found->items();
      if (all.size() > most_ends) found->refuse("at most " + std::to_string(most_ends) + " ids");
      for (const Json& one : all) config.eos_token_ids.push_back(one.integer(0, most));
    } else {
      config.eos_token_ids = {found->integer(0, most)};
    }
  }
  std::string list;
  for (const std::int64_t id : config.eos_token_ids) list += (list.empty() ? "" : ", ") + std::to_string(id);
  const std::size_t count = config.eos_token_ids.size();
  fields.put("eos_token_id", count == 0 ? "null" : count == 1 ? list : "[" + list + "]");
}

/// All fields of a family, read or written.
void name_causal_fields(Fields& fields, CausalConfig& config) {
  fields.size("vocab_size", config.vocab_size);
  info_of(config.model_type).fields(fields, config);
  fields.id("bos_token_id", config.bos_token_id, config.vocab_size);
  fields.id("pad_token_id", config.pad_token_id, config.vocab_size);
  end_fields(fields, config);
  fields.number("initializer_range", config.initializer_range);
  fields.flag("tie_word_embeddings", config.tie_word_embeddings);
  fields.must_be("is_encoder_decoder", false, "only decoders alone are supported");
  fields.must_be("add_cross_attention", false, "only decoders alone are supported");
  fields.must_be_null("quantization_config", "quantised weights of decoders are not supported");
  detail::ignore_unrelated(fields);
}

CausalConfig causal_config_in(const Json& json) {
  CausalConfig config = CausalConfig::of(causal_family_of(json));
  const CausalFamilyInfo& family = info_of(config.model_type);
  Fields fields(json, family.other_fields);
  name_causal_fields(fields, config);
  fields.refuse_others(family.model_type);
  config.architecture = detail::architecture_in(json);
  const detail::LabelFields labels = detail::labels_in(fields);
  config.id2label = labels.id2label;
  config.problem_type = labels.problem_type;
  for (const char* const name : {"torch_dtype", "dtype"}) {
    if (const auto dtype = json.find(name)) config.dtype = dtype->text();
  }
  if (const std::string rule = broken_causal_rule(config); !rule.empty()) json.fail(rule);
  return config;
}

/// What config.json holds of a config.
std::map<std::string, std::string> written_causal(CausalConfig config) {
  Fields fields;
  name_causal_fields(fields, config);
  return fields.written();
}

/// Which layers have the window, where they differ.
std::string layers_with_window(const CausalConfig& config) {
  std::string list;
  std::size_t count = 0;
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
    const bool slides = config.window(i).has_value();
    count += slides ? 1 : 0;
    list += std::string(list.empty() ? "" : ",") + (slides ? "true" : "false");
  }
  return count == 0 || count == config.num_hidden_layers ? "[]" : "[" + list + "]";
}

/// The window, if any layer has it.
std::optional<std::size_t> window_of_layers(const CausalConfig& config) {
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i)
    if (config.window(i)) return config.sliding_window;
  return std::nullopt;
}

/// The members of a config that change the model, as JSON by name.
std::map<std::string, std::string> members_of(CausalConfig config) {
  Fields all;
  const auto put_size = [&](const char* name, std::size_t size) { all.put(name, std::to_string(size)); };
  put_size("vocab_size", config.vocab_size);
  put_size("hidden_size", config.hidden_size);
  put_size("num_hidden_layers", config.num_hidden_layers);
  put_size("num_attention_heads", config.num_attention_heads);
  put_size("num_key_value_heads", config.key_value_heads());
  put_size("head_dim", config.head_size());
  put_size("intermediate_size", config.intermediate_size);
  put_size("max_position_embeddings", config.max_position_embeddings);
  all.choice("hidden_act", config.hidden_act, detail::activation_names());
  all.flag("gated_mlp", config.gated_mlp);
  all.flag("mlp_bias", config.mlp_bias);
  all.flag("query_bias", config.query_bias);
  all.flag("output_bias", config.output_bias);
  all.flag("query_key_norm", config.query_key_norm);
  all.flag("rms_norm", config.rms_norm);
  all.number("norm_eps", config.norm_eps);
  all.flag("scale_attention", config.scale_attention);
  all.flag("scale_attention_by_layer", config.scale_attention_by_layer);
  all.put("rotary", config.rotary ? detail::described(*config.rotary) : "null");
  const std::optional<std::size_t> window = window_of_layers(config);
  all.put("sliding_window", window ? std::to_string(*window) : "null");
  all.put("slides", layers_with_window(config));
  if (!config.pad_token_id) config.padding_row = false;
  all.flag("padding_row", config.padding_row);
  all.flag("tie_word_embeddings", config.tie_word_embeddings);
  all.probability("embedding_dropout", config.embedding_dropout);
  all.probability("attention_dropout", config.attention_dropout);
  all.probability("residual_dropout", config.residual_dropout);
  all.number("initializer_range", config.initializer_range);
  all.id("bos_token_id", config.bos_token_id, config.vocab_size);
  all.id("pad_token_id", config.pad_token_id, config.vocab_size);
  end_fields(all, config);
  return all.written();
}

}  // namespace

CausalConfig CausalConfig::of(CausalFamily family) {
  CausalConfig config;
  config.model_type = family;
  info_of(family).defaults(config);
  return config;
}

void CausalConfig::check() const {
  if (const std::string rule = broken_causal_rule(*this); !rule.empty())
    throw ValueError("CausalConfig: " + rule);
}

CausalConfig CausalConfig::from_folder(const std::string& folder) {
  if (!is_gguf(folder)) tokenizers::detail::check_folder(folder);
  const Json json = is_gguf(folder) ? Json::parse(folder, detail::gguf_config(GgufFile(folder), folder))
                                    : Json::read(folder + "/config.json");
  CausalConfig config = causal_config_in(json);
  config.read_ = json.dump();
  return config;
}

std::string CausalConfig::json(const std::string& saved_architecture, const std::string& saved_dtype) const {
  check();
  detail::ConfigChange change{
      .read = read_, .now = written_causal(*this), .labels = {id2label, problem_type}};
  if (!read_.empty()) {
    const CausalConfig before = causal_config_in(Json::parse("config.json", read_));
    change.then = written_causal(before);
    change.labels_then = {before.id2label, before.problem_type};
  }
  const char* const name = info_of(model_type).model_type;
  std::string text = detail::config_json(
      change,
      {.model_type = name, .architecture = saved_architecture, .dtype = saved_dtype, .quantization = ""});
  detail::refuse_lost(members_of(*this), members_of(causal_config_in(Json::parse("config.json", text))),
                      name);
  return text;
}

}  // namespace xgrad::pretrained
