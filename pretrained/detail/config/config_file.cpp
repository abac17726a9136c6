#include "config_file.hpp"

#include <initializer_list>

#include "../../../base/detail/text/json_tree.hpp"
#include "../../../base/error.hpp"

namespace xgrad::pretrained::detail {
namespace {

constexpr std::int64_t largest_number_label = std::int64_t{1} << 24;
constexpr std::size_t most_labels = 100'000;

const Names<ProblemType>& problem_names() {
  static const Names<ProblemType> names{
      {"regression", ProblemType::regression},
      {"single_label_classification", ProblemType::single_label_classification},
      {"multi_label_classification", ProblemType::multi_label_classification}};
  return names;
}

/// Fields that say nothing of what a model computes: of the program that wrote them, of generated texts,
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
                                                                 "transformers.js_config",
                                                                 "transformers_version",
                                                                 "typical_p",
                                                                 "unsloth_fixed",
                                                                 "unsloth_version",
                                                                 "use_bfloat16",
                                                                 "use_cache",
                                                                 "xla_device"};

std::vector<std::string> label_names(const Json& json) {
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
    labels.push_back(label.is_string()
                         ? label.text()
                         : std::to_string(label.integer(-largest_number_label, largest_number_label)));
  }
  return labels;
}

}  // namespace

void ignore_unrelated(Fields& fields) { fields.ignore(unrelated_fields); }

void read_layer_types(const Json& types, Config& config) {
  config.slides.clear();
  for (const Json& type : types.items()) {
    const bool slides = type.text() == "sliding_attention";
    if (!slides && type.text() != "full_attention") type.refuse("full_attention or sliding_attention");
    if (slides && !config.sliding_window)
      type.refuse("full_attention, as there is no sliding_window or use_sliding_window is false");
    config.slides.push_back(slides);
  }
  if (config.slides.size() != config.num_hidden_layers)
    types.refuse(std::to_string(config.num_hidden_layers) + " types, as num_hidden_layers says");
}

void write_layer_types(Fields& fields, const Config& config) {
  if (fields.json() != nullptr) return;
  std::string list;
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i)
    list += std::string(list.empty() ? "" : ", ") +
            (config.window(i) ? "\"sliding_attention\"" : "\"full_attention\"");
  fields.put("layer_types", "[" + list + "]");
}

std::string architecture_in(const Json& json) {
  const auto classes = json.find("architectures");
  return classes && !classes->items().empty() ? classes->items().front().text() : "";
}

LabelFields labels_in(Fields& fields) {
  LabelFields found{label_names(*fields.json())};
  ProblemType problem{};
  if (!fields.json()->find("problem_type")) return found;
  fields.choice("problem_type", problem, problem_names());
  found.problem_type = problem;
  return found;
}

std::string config_json(const ConfigChange& change, const ConfigHead& head) {
  const bool fresh = change.read.empty();
  xgrad::detail::JsonTree all =
      fresh ? xgrad::detail::JsonTree::object() : xgrad::detail::JsonTree::parse(change.read);
  all["model_type"] = head.model_type;
  all["architectures"] = {head.architecture};
  all[all.contains("dtype") ? "dtype" : "torch_dtype"] =
      head.dtype;                                // as transformers 5 names it, or as before
  for (const auto& [name, text] : change.now) {  // what is the same stays as it was spelled
    const auto found = change.then.find(name);
    if (found == change.then.end() || found->second != text) all[name] = xgrad::detail::JsonTree::parse(text);
  }
  const auto& [labels, problem] = change.labels;
  if (fresh || labels != change.labels_then.id2label) {
    xgrad::detail::JsonTree ids = xgrad::detail::JsonTree::object(),
                            names = xgrad::detail::JsonTree::object();
    for (std::size_t id = 0; id < labels.size(); ++id) {
      names[labels[id]] = id;
      ids[std::to_string(id)] = labels[id];
    }
    all["id2label"] = ids;
    all["label2id"] = names;
  }
  all.erase("quantization_config");
  if (!head.quantization.empty())
    all["quantization_config"] = xgrad::detail::JsonTree::parse(head.quantization);
  if (!problem && change.labels_then.problem_type) all.erase("problem_type");
  if (problem && problem != change.labels_then.problem_type) {
    for (const auto& [name, kind] : problem_names())
      if (kind == *problem) all["problem_type"] = name;
  }
  return all.dump(2) + "\n";
}

void refuse_lost(const std::map<std::string, std::string>& members,
                 const std::map<std::string, std::string>& given_back, const char* model_type) {
  for (const auto& [name, value] : members) {
    const std::string& back = given_back.at(name);
    if (back != value)
      xgrad::detail::fail<ValueError>("config.json: ", name, " must be ", back, ", as a file of a ",
                                      model_type, " model can say nothing else, got ", value);
  }
}

}  // namespace xgrad::pretrained::detail
