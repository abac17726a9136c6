#include "config.hpp"

#include <cctype>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "../base/detail/folder_files.hpp"
#include "../base/error.hpp"
#include "../tokenizers/detail/files/model_folder.hpp"
#include "detail/family.hpp"
#include "detail/quantization.hpp"

namespace xgrad::pretrained {
namespace {

using detail::all_families, detail::FamilyInfo, detail::Fields, detail::info_of, detail::Json, detail::Names;

constexpr std::int64_t largest_size = std::int64_t{1} << 24;
constexpr std::size_t most_labels = 100'000;

const Names<ProblemType>& problems() {
  static const Names<ProblemType> names{
      {"regression", ProblemType::regression},
      {"single_label_classification", ProblemType::single_label_classification},
      {"multi_label_classification", ProblemType::multi_label_classification}};
  return names;
}

/// Models that people try, and why they cannot be loaded.
const Names<const char*>& refused() {
  static const Names<const char*> names{{"gpt2", "it is a decoder"}, {"llama", "it is a decoder"}};
  return names;
}

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
  for (const auto& [known, why] : refused()) {
    if (name->text() == known) reason = std::string(", as ") + why;
  }
  name->refuse(detail::listed(families) + reason);
}

/// Fields that say nothing of what an encoder computes: of the program that wrote them, of generated texts,
/// and of other libraries.
constexpr std::initializer_list<const char*> unrelated_fields = {"_attn_implementation",
                                                                 "_name_or_path",
                                                                 "_num_labels",
                                                                 "architectures",
                                                                 "auto_map",
                                                                 "bad_words_ids",
                                                                 "begin_suppress_tokens",
                                                                 "bos_token_id",
                                                                 "chunk_size_feed_forward",
                                                                 "cross_attention_hidden_size",
                                                                 "custom_pipelines",
                                                                 "decoder_start_token_id",
                                                                 "directionality",
                                                                 "diversity_penalty",
                                                                 "do_sample",
                                                                 "dtype",
                                                                 "early_stopping",
                                                                 "encoder_no_repeat_ngram_size",
                                                                 "eos_token_id",
                                                                 "exponential_decay_length_penalty",
                                                                 "finetuning_task",
                                                                 "forced_bos_token_id",
                                                                 "forced_eos_token_id",
                                                                 "gradient_checkpointing",
                                                                 "id2label",
                                                                 "is_encoder_decoder",
                                                                 "label2id",
                                                                 "language",
                                                                 "length_penalty",
                                                                 "max_length",
                                                                 "min_length",
                                                                 "model_type",
                                                                 "name",
                                                                 "no_repeat_ngram_size",
                                                                 "num_beam_groups",
                                                                 "num_beams",
                                                                 "num_labels",
                                                                 "num_return_sequences",
                                                                 "output_attentions",
                                                                 "output_hidden_states",
                                                                 "output_past",
                                                                 "output_scores",
                                                                 "pooler_fc_size",
                                                                 "pooler_num_attention_heads",
                                                                 "pooler_num_fc_layers",
                                                                 "pooler_size_per_head",
                                                                 "pooler_type",
                                                                 "prefix",
                                                                 "problem_type",
                                                                 "pruned_heads",
                                                                 "remove_invalid_values",
                                                                 "repetition_penalty",
                                                                 "return_dict",
                                                                 "return_dict_in_generate",
                                                                 "sbert_ce_default_activation_function",
                                                                 "sentence_transformers",
                                                                 "sep_token_id",
                                                                 "suppress_tokens",
                                                                 "task_specific_params",
                                                                 "temperature",
                                                                 "tf_legacy_loss",
                                                                 "tie_encoder_decoder",
                                                                 "tie_weights_",
                                                                 "tokenizer_class",
                                                                 "top_k",
                                                                 "top_p",
                                                                 "torch_dtype",
                                                                 "torchscript",
                                                                 "transformers_version",
                                                                 "typical_p",
                                                                 "use_bfloat16",
                                                                 "use_cache",
                                                                 "xla_device"};

std::vector<std::string> labels_of(const Json& json) {
  std::vector<std::string> labels;
  const auto names = json.find("id2label");
  if (!names) {
    std::size_t count = 2;
    Fields(json).size("num_labels", count);
    if (count > most_labels) json.at("num_labels").refuse("at most " + std::to_string(most_labels));
    for (std::size_t id = 0; id < count; ++id) labels.push_back("LABEL_" + std::to_string(id));
    return labels;
  }
  const std::size_t count = names->members().size();
  if (count == 0 || count > most_labels) names->refuse("1 to " + std::to_string(most_labels) + " labels");
  for (std::size_t id = 0; id < count; ++id) {
    const Json label = names->at(std::to_string(id));
    labels.push_back(label.is_string() ? label.text()
                                       : std::to_string(label.integer(-largest_size, largest_size)));
  }
  return labels;
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
  const auto is_letter = [&](std::size_t i) {
    return i < rule.size() && (std::isalnum(static_cast<unsigned char>(rule[i])) != 0 || rule[i] == '_');
  };
  for (const auto& [member, value] : members) {
    const std::string name = fields.name_of(value);
    if (name.empty()) continue;
    for (std::size_t i = 0; (i = rule.find(member, i)) != rule.npos;) {
      const bool is_whole = (i == 0 || !is_letter(i - 1)) && !is_letter(i + member.size());
      if (is_whole) rule.replace(i, member.size(), name);
      i += is_whole ? name.size() : 1;
    }
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
  fields.ignore(unrelated_fields);
}

Config config_in(const Json& json) {
  Config config = Config::of(family_of(json));
  Fields fields(json, info_of(config.model_type).other_fields);
  name_fields(fields, config);
  fields.refuse_others(info_of(config.model_type).model_type);
  config.id2label = labels_of(json);
  if (const auto classes = json.find("architectures"); classes && !classes->items().empty())
    config.architecture = classes->items().front().text();
  ProblemType problem{};
  if (json.find("problem_type")) {
    fields.choice("problem_type", problem, problems());
    config.problem_type = problem;
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
  nlohmann::json all = nlohmann::json::object();
  Config before = Config::of(model_type);
  const bool fresh = read_.empty();
  if (!fresh) {
    all = nlohmann::json::parse(read_);
    before = config_in(Json::parse("config.json", read_));
  }
  const FamilyInfo& family = info_of(model_type);
  all["model_type"] = family.model_type;
  all["architectures"] = {architecture};
  all[all.contains("dtype") ? "dtype" : "torch_dtype"] = dtype;  // as transformers 5 names it, or as before
  const auto then = fresh ? std::map<std::string, std::string>() : written(before);
  for (const auto& [name, text] : written(*this)) {  // what is the same stays as it was spelled
    const auto found = then.find(name);
    if (found == then.end() || found->second != text) all[name] = nlohmann::json::parse(text);
  }
  if (fresh || id2label != before.id2label) {
    nlohmann::json ids = nlohmann::json::object(), names = nlohmann::json::object();
    for (std::size_t id = 0; id < id2label.size(); ++id) {
      names[id2label[id]] = id;
      ids[std::to_string(id)] = id2label[id];
    }
    all["id2label"] = ids;
    all["label2id"] = names;
  }
  all.erase("quantization_config");
  if (!quantization.empty()) all["quantization_config"] = nlohmann::json::parse(quantization);
  if (!problem_type && before.problem_type) all.erase("problem_type");
  if (problem_type && (fresh || problem_type != before.problem_type)) {
    for (const auto& [name, kind] : problems())
      if (kind == *problem_type) all["problem_type"] = name;
  }
  return all.dump(2) + "\n";
}

}  // namespace xgrad::pretrained
