#include "config.hpp"

#include <map>
#include <string_view>
#include <utility>

#include "../base/detail/folder_files.hpp"
#include "../base/error.hpp"
#include "../tokenizers/detail/files/model_folder.hpp"
#include "detail/causal_family.hpp"
#include "detail/config/config_file.hpp"
#include "detail/config/quantization.hpp"
#include "detail/family.hpp"

namespace xgrad::pretrained {
namespace {

using detail::all_families, detail::FamilyInfo, detail::Fields, detail::info_of, detail::Json, detail::Names;

/// The family of the class that the config names, "BertForMaskedLM", if it names one.
std::optional<Family> family_of_class(const Json& json) {
  const auto classes = json.find("architectures");
  if (!classes || classes->items().empty()) return std::nullopt;
  const std::string name = classes->items().front().text();
  for (const FamilyInfo* const one : all_families()) {
    const std::string begin = one->class_name;
    if (name.starts_with(begin + "For") || name == begin + "Model") return one->family;
  }
  return std::nullopt;
}

Family family_of(const Json& json) {
  Names<Family> families;
  for (const FamilyInfo* const one : all_families()) families.emplace_back(one->model_type, one->family);
  const auto name = json.find("model_type");
  if (!name) {  // as in files of 2019
    if (const auto family = family_of_class(json)) return *family;
    json.fail("model_type is missing, and architectures names no class that tells it: add \"model_type\", " +
              detail::listed(families));
  }
  for (const auto& [known, family] : families) {
    if (name->text() == known) return family;
  }
  std::string reason = " (the supported encoders)";
  for (const detail::CausalFamilyInfo* const one : detail::all_causal_families()) {
    if (name->text() == one->model_type) reason = ", as it is a decoder, which CausalLM loads";
  }
  name->refuse(detail::listed(families) + reason);
}

/// The rule that a config breaks; empty if none.
std::string broken_rule(const Config& config) {
  const auto numbers = [](std::size_t a, std::size_t b) {
    return std::to_string(a) + " and " + std::to_string(b);
  };
  const FamilyInfo& family = info_of(config.model_type);
  if (config.num_attention_heads == 0 ||
      (!family.free_heads && config.hidden_size % config.num_attention_heads != 0))
    return "num_attention_heads must divide hidden_size, got " +
           numbers(config.num_attention_heads, config.hidden_size);
  if (!family.narrow_embeddings && config.embedding_size != config.hidden_size)
    return std::string("embedding_size must equal hidden_size in ") + family.model_type + ", got " +
           numbers(config.embedding_size, config.hidden_size);
  if (config.pad_token_id && static_cast<std::size_t>(*config.pad_token_id) >= config.vocab_size)
    return "pad_token_id must be below vocab_size, got " +
           numbers(static_cast<std::size_t>(*config.pad_token_id), config.vocab_size);
  return family.broken_rule == nullptr ? "" : family.broken_rule(config);
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

/// All fields of a family, read or written.
void name_fields(Fields& fields, Config& config) {
  const FamilyInfo& family = info_of(config.model_type);
  fields.size("vocab_size", config.vocab_size);
  fields.size("max_position_embeddings", config.max_position_embeddings);
  family.fields(fields, config);
  if (!family.narrow_embeddings) config.embedding_size = config.hidden_size;
  fields.id("pad_token_id", config.pad_token_id, config.vocab_size);
  fields.number("initializer_range", config.initializer_range);
  fields.flag("tie_word_embeddings", config.tie_word_embeddings);
  fields.must_be("is_decoder", false, "only encoders are supported");
  fields.must_be("add_cross_attention", false, "only encoders are supported");
  if (const auto quantization = fields.found("quantization_config")) {
    detail::check_quantization(*quantization);
    config.int8_weights = true;
  }
  detail::ignore_unrelated(fields);
}

Config config_in(const Json& json) {
  Config config = Config::of(family_of(json));
  Fields fields(json, info_of(config.model_type).other_fields);
  name_fields(fields, config);
  fields.refuse_others(info_of(config.model_type).model_type);
  config.architecture = detail::architecture_in(json);
  const detail::LabelFields labels = detail::labels_in(fields);
  config.id2label = labels.id2label;
  config.problem_type = labels.problem_type;
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

/// What a file must give back of a config, as JSON by name: the fields of the family, and what the shared
/// parts of models take from each config.
std::map<std::string, std::string> members_of(Config config) {
  Fields named, all;
  name_fields(named, config);
  std::map<std::string, std::string> members = named.written();
  all.number("layer_norm_eps", config.layer_norm_eps);
  all.size("type_vocab_size", config.type_vocab_size, 0);
  all.put("rotary positions", config.own == nullptr ? "null" : config.own->unnamed());
  members.insert(all.written().begin(), all.written().end());
  return members;
}

}  // namespace

Config Config::from_folder(const std::string& folder) {
  tokenizers::detail::check_folder(folder);
  const Json json = Json::read(folder + "/config.json");
  Config config = config_in(json);
  config.read_ = json.dump();
  return config;
}

Config Config::of(Family family) {
  Config config;
  config.model_type = family;
  const FamilyInfo& info = info_of(family);
  if (info.defaults != nullptr) info.defaults(config);
  if (!info.narrow_embeddings) config.embedding_size = config.hidden_size;
  return config;
}

void Config::check() const {
  if (const std::string rule = broken_rule(*this); !rule.empty()) throw ValueError("Config: " + rule);
}

std::size_t Config::max_length() const {
  const FamilyInfo& family = info_of(model_type);
  return max_position_embeddings - (family.first_position == nullptr ? 0 : family.first_position(*this));
}

bool Config::is_biased_by_distance() const { return info_of(model_type).biased_by_distance; }

std::string Config::json(const std::string& architecture, const std::string& dtype,
                         const std::string& quantization) const {
  const Config before = read_.empty() ? Config::of(model_type) : config_in(Json::parse("config.json", read_));
  detail::ConfigChange change{.read = read_, .now = written(*this), .labels = {id2label, problem_type}};
  if (!read_.empty()) {
    change.then = written(before);
    change.labels_then = {before.id2label, before.problem_type};
  }
  const char* const name = info_of(model_type).model_type;
  std::string text = detail::config_json(
      change,
      {.model_type = name, .architecture = architecture, .dtype = dtype, .quantization = quantization});
  detail::refuse_lost(members_of(*this), members_of(config_in(Json::parse("config.json", text))), name);
  return text;
}

}  // namespace xgrad::pretrained
