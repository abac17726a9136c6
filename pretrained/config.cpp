#include "config.hpp"

#include <map>
#include <string_view>
#include <utility>

#include "../base/error.hpp"
#include "../files/gguf.hpp"
#include "../tokenizers/detail/files/model_folder.hpp"
#include "detail/config/config_file.hpp"
#include "detail/config/quantization.hpp"
#include "detail/config/rotary_fields.hpp"
#include "detail/family.hpp"
#include "detail/gguf/gguf_model.hpp"

namespace xgrad::pretrained {
namespace {

using detail::all_families, detail::FamilyInfo, detail::Fields, detail::info_of, detail::Json, detail::Names;

/// Whether a class of Hugging Face's is of the family: "BertForMaskedLM".
bool is_class_of(const FamilyInfo& family, const std::string& name) {
  const std::string begin = family.class_name;
  return name.starts_with(begin + "For") || name == begin + "Model" || name == begin + family.language_model;
}

/// The family that model_type says, or the class without one, as in files of 2019; of decoders or encoders
/// alone if it is given which.
Family family_of(const Json& json, std::optional<bool> is_causal) {
  Names<Family> families;
  for (const FamilyInfo* const one : all_families())
    if (is_causal.value_or(one->is_causal) == one->is_causal)
      families.emplace_back(one->model_type, one->family);
  const auto name = json.find("model_type");
  const std::string architecture = detail::architecture_in(json);
  for (const auto& [model_type, family] : families) {
    if (name ? name->text() == model_type : is_class_of(info_of(family), architecture)) return family;
  }
  if (!name)
    json.fail("model_type is missing, and architectures names no class that tells it: add \"model_type\", " +
              detail::listed(families));
  std::string reason;
  if (is_causal) reason = *is_causal ? " (the supported decoders)" : " (the supported encoders)";
  for (const FamilyInfo* const one : all_families()) {
    if (one->is_causal && is_causal == false && name->text() == one->model_type)
      reason = ", as it is a decoder, which CausalLM loads";
  }
  name->refuse(detail::listed(families) + reason);
}

/// The rule broken by a part of the model that the family has no name for; empty if none.
std::string nameless_part(const Config& config) {
  const FamilyInfo& family = info_of(config.model_type);
  const std::string in = std::string(" in ") + family.model_type + ", which has ";
  const BlockNames block = family.block_names(config);
  if (config.gated_mlp && !names_part(block, BlockPart::gate) && !names_part(block, BlockPart::gate_up))
    return "gated_mlp must be false" + in + "no name for gates, got true";
  if (config.query_key_norm != QueryKeyNorm::none && !names_part(block, BlockPart::query_norm))
    return "query_key_norm must be none" + in + "no name for these norms, got " +
           (config.query_key_norm == QueryKeyNorm::head ? "head" : "all");
  if (family.body.group_blocks == nullptr && (config.num_hidden_groups > 0 || config.inner_group_num != 1))
    return "num_hidden_groups must be 0 and inner_group_num 1" + in + "no name for groups of layers, got " +
           std::to_string(config.num_hidden_groups) + " and " + std::to_string(config.inner_group_num);
  if (!config.rotary && family.body.positions == nullptr && !config.is_biased_by_distance())
    return "rotary must be there" + in + "no name for learned positions, got none";
  return "";
}

/// The rule that a config breaks; empty if none.
std::string broken_rule(const Config& config) {
  const auto numbers = [](std::size_t a, std::size_t b) {
    return std::to_string(a) + " and " + std::to_string(b);
  };
  const FamilyInfo& family = info_of(config.model_type);
  const std::size_t heads = config.num_attention_heads;
  if (heads == 0 || (config.head_dim == 0 && config.hidden_size % heads != 0))
    return "num_attention_heads must divide hidden_size, got " + numbers(heads, config.hidden_size);
  if (heads % config.key_value_heads() != 0)
    return "num_key_value_heads must divide num_attention_heads, got " +
           numbers(config.key_value_heads(), heads);
  if (!family.narrow_embeddings && !family.is_causal && config.embedding_size != config.hidden_size)
    return std::string("embedding_size must equal hidden_size in ") + family.model_type + ", got " +
           numbers(config.embedding_size, config.hidden_size);
  const auto is_no_token = [&](std::int64_t id) { return static_cast<std::size_t>(id) >= config.vocab_size; };
  const auto token_rule = [&](const char* name, std::int64_t id) {
    return name + std::string(" must be below vocab_size, got ") +
           numbers(static_cast<std::size_t>(id), config.vocab_size);
  };
  if (config.pad_token_id && is_no_token(*config.pad_token_id))
    return token_rule("pad_token_id", *config.pad_token_id);
  if (!config.slides.empty() && config.slides.size() != config.num_hidden_layers)
    return "layer_types must have num_hidden_layers types, got " +
           numbers(config.slides.size(), config.num_hidden_layers);
  if (config.bos_token_id && is_no_token(*config.bos_token_id))
    return token_rule("bos_token_id", *config.bos_token_id);
  for (const std::int64_t end : config.eos_token_ids)
    if (is_no_token(end)) return token_rule("eos_token_ids", end);
  if (config.is_causal && config.sliding_window == 0U) return "sliding_window must be at least 1, got 0";
  for (const auto& [name, value] : {std::pair("query_pre_attn_scalar", config.query_pre_attn_scalar),
                                    {"attn_logit_softcapping", config.attn_logit_softcapping}}) {
    if (value && !(*value > 0))
      return xgrad::detail::join({name, " must be above 0, got ", xgrad::detail::text(*value)});
  }
  std::string rule = nameless_part(config);
  if (rule.empty() && family.broken_rule != nullptr) rule = family.broken_rule(config);
  for (const std::optional<RotaryConfig>& rotary : {config.rotary, config.local_rotary})
    if (rule.empty() && rotary) rule = detail::broken_rotary_rule(*rotary, config.head_size());
  return rule;
}

/// A broken rule with the file's names of the members that it names.
std::string with_names_of_file(std::string rule, const Fields& fields, const Config& config) {
  const std::pair<std::string_view, const std::size_t*> members[] = {
      {"num_attention_heads", &config.num_attention_heads},
      {"num_hidden_layers", &config.num_hidden_layers},
      {"intermediate_size", &config.intermediate_size},
      {"embedding_size", &config.embedding_size},
      {"hidden_size", &config.hidden_size},
      {"max_position_embeddings", &config.max_position_embeddings}};
  for (const auto& [member, value] : members) {
    const std::string name = fields.name_of(value);
    if (name.empty()) continue;
    for (std::size_t i = 0; (i = rule.find(member, i)) != rule.npos; i += name.size())
      rule.replace(i, member.size(), name);
  }
  return rule;
}

/// eos_token_id, a number or a list of them.
void end_fields(Fields& fields, Config& config) {
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

/// Those of encoders alone.
void encoder_fields(Fields& fields, Config& config) {
  fields.must_be("is_decoder", false, "only encoders are supported");
  fields.must_be("add_cross_attention", false, "only encoders are supported");
  if (const auto quantization = fields.found("quantization_config")) {
    detail::check_quantization(*quantization);
    config.quantized = true;
  }
}

/// Those of decoders alone.
void decoder_fields(Fields& fields, Config& config) {
  fields.id("bos_token_id", config.bos_token_id, config.vocab_size);
  end_fields(fields, config);
  fields.must_be("is_encoder_decoder", false, "only decoders alone are supported");
  fields.must_be("add_cross_attention", false, "only decoders alone are supported");
  fields.must_be_null("quantization_config", "quantised weights of decoders are not supported");
}

/// All fields of a family, read or written.
void name_fields(Fields& fields, Config& config) {
  const FamilyInfo& family = info_of(config.model_type);
  fields.size("vocab_size", config.vocab_size);
  if (!family.is_causal) fields.size("max_position_embeddings", config.max_position_embeddings);
  family.fields(fields, config);
  if (!family.narrow_embeddings) config.embedding_size = config.hidden_size;
  fields.id("pad_token_id", config.pad_token_id, config.vocab_size);
  fields.number("initializer_range", config.initializer_range);
  fields.flag("tie_word_embeddings", config.tie_word_embeddings);
  family.is_causal ? decoder_fields(fields, config) : encoder_fields(fields, config);
  detail::ignore_unrelated(fields);
}

Config config_in(const Json& json, std::optional<bool> is_causal = {}) {
  Config config = Config::of(family_of(json, is_causal));
  const FamilyInfo& family = info_of(config.model_type);
  Fields fields(json, family.other_fields);
  name_fields(fields, config);
  fields.refuse_others(family.model_type);
  config.architecture = detail::architecture_in(json);
  const detail::LabelFields labels = detail::labels_in(fields);
  config.id2label = labels.id2label;
  config.problem_type = labels.problem_type;
  for (const char* const name : {"torch_dtype", "dtype"}) {
    if (const auto dtype = json.find(name)) config.dtype = dtype->text();
  }
  if (const std::string rule = broken_rule(config); !rule.empty())
    json.fail(with_names_of_file(rule, fields, config));
  return config;
}

/// What config.json holds of a config.
std::map<std::string, std::string> written(Config config) {
  Fields fields;
  name_fields(fields, config);
  return fields.written();
}

/// Which layers have the window, where they differ.
std::string layers_with_window(const Config& config) {
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
std::optional<std::size_t> window_of_layers(const Config& config) {
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i)
    if (config.window(i)) return config.sliding_window;
  return std::nullopt;
}

/// What a file must give back of a config, as JSON by name: the fields of the family, and the members that
/// change the model.
std::map<std::string, std::string> members_of(Config config) {
  Fields named, all;
  Config in_file = config;
  name_fields(named, in_file);
  const auto put_size = [&](const char* name, std::size_t size) { all.put(name, std::to_string(size)); };
  const auto put_rotary = [&](const char* name, const std::optional<RotaryConfig>& rotary) {
    all.put(name, rotary ? detail::described(*rotary) : "null");
  };
  all.flag("is_causal", config.is_causal);
  put_size("vocab_size", config.vocab_size);
  put_size("hidden_size", config.hidden_size);
  put_size("num_hidden_layers", config.num_hidden_layers);
  put_size("num_hidden_groups", config.num_hidden_groups);
  put_size("inner_group_num", config.inner_group_num);
  put_size("num_attention_heads", config.num_attention_heads);
  put_size("num_key_value_heads", config.key_value_heads());
  put_size("head_dim", config.head_size());
  put_size("intermediate_size", config.intermediate_size);
  put_size("max_position_embeddings", config.max_position_embeddings);
  put_size("type_vocab_size", config.type_vocab_size);
  all.choice("hidden_act", config.hidden_act, detail::activation_names());
  all.flag("gated_mlp", config.gated_mlp);
  all.flag("mlp_bias", config.mlp_bias);
  all.flag("norm_bias", config.norm_bias);
  all.flag("query_bias", config.query_bias);
  all.flag("output_bias", config.output_bias);
  all.choice("query_key_norm", config.query_key_norm,
             {{"none", QueryKeyNorm::none}, {"head", QueryKeyNorm::head}, {"all", QueryKeyNorm::all}});
  all.flag("rms_norm", config.rms_norm);
  all.number("norm_offset", config.norm_offset);
  all.number("layer_norm_eps", config.layer_norm_eps);
  all.flag("scale_attention", config.scale_attention);
  all.flag("scale_attention_by_layer", config.scale_attention_by_layer);
  all.number("query_pre_attn_scalar", config.query_pre_attn_scalar);
  all.number("attn_logit_softcapping", config.attn_logit_softcapping);
  all.flag("scale_embeddings", config.scale_embeddings);
  all.flag("position_biased_input", config.position_biased_input);
  put_rotary("rotary", config.rotary);
  put_rotary("local_rotary", config.local_rotary);
  put_size("relative_attention_num_buckets", config.relative_attention_num_buckets);
  put_size("relative_attention_max_distance", config.relative_attention_max_distance);
  const std::optional<std::size_t> window = window_of_layers(config);
  all.put("sliding_window", window ? std::to_string(*window) : "null");
  all.put("slides", layers_with_window(config));
  if (!config.pad_token_id) config.padding_row = false;
  all.flag("padding_row", config.padding_row);
  double embedding_dropout = in_file.embedding_dropout.value_or(0);
  all.probability("embedding_dropout", embedding_dropout);
  all.probability("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
  all.probability("hidden_dropout_prob", config.hidden_dropout_prob);
  all.id("bos_token_id", config.bos_token_id, config.vocab_size);
  end_fields(all, config);
  std::map<std::string, std::string> members = all.written();
  members.insert(named.written().begin(), named.written().end());
  return members;
}

}  // namespace

Config Config::from_folder(const std::string& folder, std::optional<bool> only_causal) {
  const bool is_file = only_causal != false && is_gguf(folder);
  if (!is_file) tokenizers::detail::check_folder(folder);
  const Json json = is_file ? Json::parse(folder, detail::gguf_config(GgufFile(folder), folder))
                            : Json::read(folder + "/config.json");
  Config config = config_in(json, only_causal);
  config.read_ = json.dump();
  return config;
}

Config Config::of(Family family) {
  Config config;
  const FamilyInfo& info = info_of(family);
  config.model_type = family;
  config.is_causal = info.is_causal;
  if (info.defaults != nullptr) info.defaults(config);
  if (!info.narrow_embeddings) config.embedding_size = config.hidden_size;
  return config;
}

void Config::check() const {
  if (const std::string rule = broken_rule(*this); !rule.empty()) throw ValueError("Config: " + rule);
}

std::optional<std::size_t> Config::window(std::size_t i) const {
  const std::size_t every = global_attn_every_n_layers;
  const bool has_window = slides.empty() ? every == 0 || i % every != 0 : bool{slides.at(i)};
  return has_window ? sliding_window : std::nullopt;
}

std::optional<std::size_t> Config::max_length() const {
  if (is_causal && rotary) return std::nullopt;
  return max_position_embeddings - detail::first_position(*this);
}

std::string Config::json(const std::string& saved_architecture, const std::string& saved_dtype,
                         const std::string& quantization) const {
  check();
  detail::ConfigChange change{.read = read_, .now = written(*this), .labels = {id2label, problem_type}};
  if (!read_.empty()) {
    const Config before = config_in(Json::parse("config.json", read_));
    change.then = written(before);
    change.labels_then = {before.id2label, before.problem_type};
  }
  const char* const name = info_of(model_type).model_type;
  std::string text = detail::config_json(change, {.model_type = name,
                                                  .architecture = saved_architecture,
                                                  .dtype = saved_dtype,
                                                  .quantization = quantization});
  detail::refuse_lost(members_of(*this), members_of(config_in(Json::parse("config.json", text))), name);
  return text;
}

}  // namespace xgrad::pretrained
