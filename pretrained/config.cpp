#include "config.hpp"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "../base/error.hpp"
#include "detail/json.hpp"

namespace xgrad::pretrained {
namespace {

using detail::Json;

constexpr std::int64_t largest_size = std::int64_t{1} << 24;
constexpr std::size_t most_labels = 100'000;

template <class Value, std::size_t N>
using Names = std::array<std::pair<const char*, Value>, N>;

constexpr Names<Family, 4> families{{{"bert", Family::bert},
                                     {"distilbert", Family::distilbert},
                                     {"roberta", Family::roberta},
                                     {"electra", Family::electra}}};

/// The first name of a function is written.
constexpr Names<HiddenAct, 8> functions{{{"gelu", HiddenAct::gelu},
                                         {"gelu_new", HiddenAct::gelu_tanh},
                                         {"gelu_pytorch_tanh", HiddenAct::gelu_tanh},
                                         {"gelu_python", HiddenAct::gelu},
                                         {"gelu_fast", HiddenAct::gelu_fast},
                                         {"relu", HiddenAct::relu},
                                         {"silu", HiddenAct::silu},
                                         {"swish", HiddenAct::silu}}};

constexpr Names<ProblemType, 3> problems{
    {{"regression", ProblemType::regression},
     {"single_label_classification", ProblemType::single_label_classification},
     {"multi_label_classification", ProblemType::multi_label_classification}}};

/// Models that people try, and why they cannot be loaded.
constexpr Names<const char*, 12> refused{
    {{"deberta", "its attention to relative positions is not supported"},
     {"deberta-v2", "its attention to relative positions is not supported"},
     {"xlm-roberta", "its tokenizer, Unigram with a table of normalizations, is not supported"},
     {"camembert", "its tokenizer, Unigram, is not supported"},
     {"mpnet", "its biases of relative positions are not supported"},
     {"modernbert", "its rotary positions are not supported"},
     {"nomic_bert", "its rotary positions are not supported"},
     {"new", "its rotary positions are not supported"},
     {"albert", "layers that share weights are not supported"},
     {"gpt2", "it is a decoder"},
     {"llama", "it is a decoder"},
     {"t5", "it has a decoder"}}};

template <class Value, std::size_t N>
const Value* find(const Names<Value, N>& names, const std::string& name) {
  for (const auto& [known, value] : names) {
    if (name == known) return &value;
  }
  return nullptr;
}

template <class Value, std::size_t N>
const char* name_of(const Names<Value, N>& names, Value wanted) {
  for (const auto& [name, value] : names) {
    if (value == wanted) return name;
  }
  return "";
}

/// "a, b or c".
template <class Value, std::size_t N>
std::string listed(const Names<Value, N>& names) {
  std::string text;
  for (std::size_t i = 0; i < N; ++i)
    text += (i == 0 ? "" : i + 1 == N ? " or " : ", ") + std::string(names[i].first);
  return text;
}

template <class Value, std::size_t N>
Value one_of(const Names<Value, N>& names, const Json& json) {
  const Value* const value = find(names, json.text());
  if (value == nullptr) json.refuse(listed(names));
  return *value;
}

/// Where a family keeps what others call differently.
struct Fields {
  const char *hidden_size, *layers, *heads, *intermediate_size, *hidden_dropout, *attention_dropout,
      *hidden_act, *classifier_dropout;
};

constexpr Fields fields_of(Family family) {
  if (family == Family::distilbert) {
    return {"dim",     "n_layers",          "n_heads",    "hidden_dim",
            "dropout", "attention_dropout", "activation", "seq_classif_dropout"};
  }
  return {"hidden_size",       "num_hidden_layers",   "num_attention_heads",
          "intermediate_size", "hidden_dropout_prob", "attention_probs_dropout_prob",
          "hidden_act",        "classifier_dropout"};
}

/// Reads fields that are there, and leaves the others as they are.
class FieldReader {
 public:
  explicit FieldReader(const Json& json) : json_(json) {}

  void size(const char* name, std::size_t& value, std::int64_t lowest = 1) const {
    if (const auto found = json_.find(name))
      value = static_cast<std::size_t>(found->integer(lowest, largest_size));
  }
  void probability(const char* name, double& value) const {
    if (const auto found = json_.find(name)) value = found->number(0, 1);
  }
  void number(const char* name, double& value) const {
    if (const auto found = json_.find(name)) value = found->number(0, 1e6);
  }

 private:
  const Json& json_;
};

Family family_of(const Json& json) {
  const Json name = json.at("model_type");
  if (const Family* const family = find(families, name.text())) return *family;
  const char* const* const reason = find(refused, name.text());
  name.refuse(listed(families) + (reason == nullptr ? std::string(" (the supported encoders)")
                                                    : std::string(", as ") + *reason));
}

/// What would change numbers and is not built.
void check_variants(const Json& json) {
  if (const auto kind = json.find("position_embedding_type"); kind && kind->text() != "absolute")
    kind->refuse("\"absolute\", as attention to relative positions is not supported");
  for (const char* name : {"is_decoder", "add_cross_attention"}) {
    if (const auto decoder = json.find(name); decoder && decoder->boolean())
      decoder->refuse("false, as only encoders are supported");
  }
}

std::vector<std::string> labels_of(const Json& json) {
  std::vector<std::string> labels;
  const auto names = json.find("id2label");
  if (!names) {
    std::size_t count = 2;
    FieldReader(json).size("num_labels", count);
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
  const Fields fields = fields_of(config.model_type);
  if (config.num_attention_heads == 0 || config.hidden_size % config.num_attention_heads != 0)
    return xgrad::detail::join({fields.heads, " must divide ", fields.hidden_size, ", got ",
                                numbers(config.num_attention_heads, config.hidden_size)});
  if (config.model_type != Family::electra && config.embedding_size != config.hidden_size)
    return "embedding_size must equal hidden_size except in electra, got " +
           numbers(config.embedding_size, config.hidden_size);
  if (config.model_type == Family::distilbert && config.type_vocab_size != 0)
    return "type_vocab_size must be 0 in distilbert, got " + std::to_string(config.type_vocab_size);
  if (config.pad_token_id && static_cast<std::size_t>(*config.pad_token_id) >= config.vocab_size)
    return "pad_token_id must be below vocab_size, got " +
           numbers(static_cast<std::size_t>(*config.pad_token_id), config.vocab_size);
  if (config.model_type == Family::roberta &&
      config.max_position_embeddings <= static_cast<std::size_t>(config.pad_token_id.value_or(0)) + 1)
    return "max_position_embeddings must be above pad_token_id + 1";
  return "";
}

Config config_in(const Json& json) {
  const Family family = family_of(json);
  check_variants(json);
  const bool distilbert = family == Family::distilbert;
  Config config = Config::of(family);
  const Fields fields = fields_of(config.model_type);
  const FieldReader read(json);
  read.size("vocab_size", config.vocab_size);
  read.size(fields.hidden_size, config.hidden_size);
  read.size(fields.layers, config.num_hidden_layers, 0);
  read.size(fields.heads, config.num_attention_heads);
  read.size(fields.intermediate_size, config.intermediate_size);
  read.size("max_position_embeddings", config.max_position_embeddings);
  if (!distilbert) read.size("type_vocab_size", config.type_vocab_size);
  if (config.model_type == Family::electra) {
    read.size("embedding_size", config.embedding_size);
  } else {
    config.embedding_size = config.hidden_size;
  }
  if (json.is_null("pad_token_id")) config.pad_token_id.reset();
  if (const auto pad = json.find("pad_token_id"))
    config.pad_token_id = pad->integer(0, static_cast<std::int64_t>(config.vocab_size) - 1);
  if (!distilbert) read.number("layer_norm_eps", config.layer_norm_eps);
  if (const auto act = json.find(fields.hidden_act)) config.hidden_act = one_of(functions, *act);
  read.probability(fields.hidden_dropout, config.hidden_dropout_prob);
  read.probability(fields.attention_dropout, config.attention_probs_dropout_prob);
  if (!distilbert) config.classifier_dropout = config.hidden_dropout_prob;
  read.probability(fields.classifier_dropout, config.classifier_dropout);
  read.probability("qa_dropout", config.qa_dropout);
  read.number("initializer_range", config.initializer_range);
  if (const auto tied = json.find("tie_word_embeddings")) config.tie_word_embeddings = tied->boolean();
  config.id2label = labels_of(json);
  if (const auto classes = json.find("architectures"); classes && !classes->items().empty())
    config.architecture = classes->items().front().text();
  if (const auto problem = json.find("problem_type")) config.problem_type = one_of(problems, *problem);
  if (const std::string rule = broken_rule(config); !rule.empty()) json.fail(rule);
  return config;
}

}  // namespace

Config Config::from_folder(const std::string& folder) {
  const Json json = Json::read(folder + "/config.json");
  Config config = config_in(json);
  config.read_ = json.dump();
  return config;
}

Config Config::of(Family family) {
  Config config;
  config.model_type = family;
  if (family == Family::distilbert) {
    config.num_hidden_layers = 6;
    config.type_vocab_size = 0;
    config.classifier_dropout = 0.2;
  } else if (family == Family::roberta) {
    config.vocab_size = 50265;
    config.pad_token_id = 1;
  } else if (family == Family::electra) {
    config.hidden_size = 256;
    config.num_attention_heads = 4;
    config.intermediate_size = 1024;
    config.embedding_size = 128;
  }
  return config;
}

void Config::check() const {
  if (const std::string rule = broken_rule(*this); !rule.empty()) throw ValueError("Config: " + rule);
}

std::size_t Config::max_length() const {
  const std::size_t first =
      model_type == Family::roberta ? static_cast<std::size_t>(pad_token_id.value_or(0)) + 1 : 0;
  return max_position_embeddings - first;
}

std::string Config::json(const std::string& architecture, const std::string& dtype) const {
  nlohmann::json all = nlohmann::json::object();
  Config before;
  const bool fresh = read_.empty();
  if (!fresh) {
    all = nlohmann::json::parse(read_);
    before = config_in(Json::parse("config.json", read_));
  }
  // What is the same stays as it was spelled.
  const auto put = [&](const char* name, const auto& now, const auto& then, const auto& written) {
    if (fresh || now != then) all[name] = written;
  };
  const auto put_number = [&](const char* name, auto field) {
    put(name, this->*field, before.*field, this->*field);
  };
  const Fields fields = fields_of(model_type);
  all["model_type"] = name_of(families, model_type);
  all["architectures"] = {architecture};
  all[all.contains("dtype") ? "dtype" : "torch_dtype"] = dtype;  // as transformers 5 names it, or as before
  put_number("vocab_size", &Config::vocab_size);
  put_number(fields.hidden_size, &Config::hidden_size);
  put_number(fields.layers, &Config::num_hidden_layers);
  put_number(fields.heads, &Config::num_attention_heads);
  put_number(fields.intermediate_size, &Config::intermediate_size);
  put_number("max_position_embeddings", &Config::max_position_embeddings);
  if (model_type == Family::electra) put_number("embedding_size", &Config::embedding_size);
  if (model_type != Family::distilbert) {
    put_number("type_vocab_size", &Config::type_vocab_size);
    put_number("layer_norm_eps", &Config::layer_norm_eps);
  } else {
    put_number("qa_dropout", &Config::qa_dropout);
  }
  put(fields.hidden_act, hidden_act, before.hidden_act, name_of(functions, hidden_act));
  put_number(fields.hidden_dropout, &Config::hidden_dropout_prob);
  put_number(fields.attention_dropout, &Config::attention_probs_dropout_prob);
  put_number(fields.classifier_dropout, &Config::classifier_dropout);
  put_number("initializer_range", &Config::initializer_range);
  put_number("tie_word_embeddings", &Config::tie_word_embeddings);
  put("pad_token_id", pad_token_id, before.pad_token_id,
      pad_token_id ? nlohmann::json(*pad_token_id) : nlohmann::json());
  if (fresh || id2label != before.id2label) {
    nlohmann::json ids = nlohmann::json::object(), names = nlohmann::json::object();
    for (std::size_t id = 0; id < id2label.size(); ++id) {
      names[id2label[id]] = id;
      ids[std::to_string(id)] = id2label[id];
    }
    all["id2label"] = ids;
    all["label2id"] = names;
  }
  if (!problem_type && before.problem_type) all.erase("problem_type");
  if (problem_type) put("problem_type", problem_type, before.problem_type, name_of(problems, *problem_type));
  return all.dump(2) + "\n";
}

}  // namespace xgrad::pretrained
