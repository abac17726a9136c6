#include "exports.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include <xgrad/base/error.hpp>
#include <xgrad/files/gguf.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/pretrained.hpp>

#include "../../common/model_class.hpp"
#include "../../models/saved_model.hpp"
#include "../../models/tagger.hpp"
#include "../../models/word_classifier.hpp"

namespace apps {
namespace {

using namespace xgrad::pretrained;

// ---- Models of training programs ----

/// The tagger: ids of words and of their parts as WordFeatures has them, and the scores of the tags.
ExportedModel exported_tagger(const std::string& path) {
  const auto tagger = std::make_shared<const Tagger>(Tagger::load(path));
  const TaggerVocabulary& vocabulary = tagger->vocabulary();
  return {
      {tagger, &tagger->model()},
      {token_input("words", vocabulary.words().size(), 0),
       token_input("prefixes", vocabulary.prefixes().size(), 0),
       token_input("suffixes", vocabulary.suffixes().size(), 0),
       token_input("short_suffixes", vocabulary.short_suffixes().size(), 0),
       token_input("shapes", shape_count, 0)},
      [tagger](const OnnxValues& in) {
        return OnnxValues{
            {"logits", tagger->model()({ids_of(in, "words"), ids_of(in, "prefixes"), ids_of(in, "suffixes"),
                                        ids_of(in, "short_suffixes"), ids_of(in, "shapes")})}};
      },
      TaggerVocabulary::longest_sentence};
}

/// The classifier of words: ids of their letters, and the scores of the classes.
ExportedModel exported_word_classifier(const std::string& path) {
  const auto classifier = std::make_shared<const WordClassifier>(WordClassifier::load(path));
  return {{classifier, &classifier->model()},
          {token_input("input_ids", classifier->alphabet().size(), Alphabet::pad)},
          [classifier](const OnnxValues& in) {
            return OnnxValues{{"logits", classifier->model().class_logits(ids_of(in, "input_ids"))}};
          },
          classifier->alphabet().positions()};
}

// ---- Pretrained encoders ----

// What a model gives, with the names that transformers.js and optimum expect.

template <class Model>
OnnxValues outputs_of(const Model& model, const Input& input) {
  return {{"logits", model(input)}};
}

OnnxValues outputs_of(const PreTraining<float>& model, const Input& input) {
  const PreTraining<float>::Logits logits = model(input);
  return {{"prediction_logits", logits.tokens}, {"seq_relationship_logits", logits.next}};
}

OnnxValues outputs_of(const QuestionAnswerer<float>& model, const Input& input) {
  const QuestionAnswerer<float>::Logits logits = model(input);
  return {{"start_logits", logits.start}, {"end_logits", logits.end}};
}

OnnxValues outputs_of(const Encoder<float>& model, const Input& input) {
  const auto output = model(input);
  OnnxValues values{{"last_hidden_state", output.last_hidden_state}};
  if (model.has_pooler()) values.emplace("pooler_output", output.pooler_output);
  return values;
}

template <class Model>
ExportedModel exported_pretrained(const std::string& folder) {
  const auto model = std::make_shared<const Model>(Model::from_folder(folder));
  model->eval();
  const Config& config = model->config();
  std::vector<xgrad::onnx::Input> inputs{token_input("input_ids", config.vocab_size, config.pad_token_id),
                                         token_input("attention_mask", 2)};
  const bool has_types = config.type_vocab_size > 1;
  if (has_types) inputs.push_back(token_input("token_type_ids", config.type_vocab_size));
  return {model, std::move(inputs),
          [=](const OnnxValues& in) {
            Input input{ids_of(in, "input_ids"), ids_of(in, "attention_mask"), {}};
            if (has_types) input.token_type_ids = ids_of(in, "token_type_ids");
            return outputs_of(*model, input);
          },
          *config.max_length(), config.is_biased_by_distance()};
}

/// With its head if it has one, else what the encoder gives: pooling is not a part of the file.
ExportedModel exported_folder(const std::string& folder) {
  return with_model_class(folder, [&]<class Model>() {
    using Exported =
        std::conditional_t<std::is_same_v<Model, SentenceEmbedder<float>>, Encoder<float>, Model>;
    return exported_pretrained<Exported>(folder);
  });
}

}  // namespace

xgrad::onnx::Input token_input(const char* name, std::size_t count, std::optional<std::int64_t> padding) {
  return {name, {"batch", "sequence"}, 0, static_cast<std::int64_t>(count), padding};
}

const xgrad::Ids& ids_of(const OnnxValues& values, const char* name) {
  return std::get<xgrad::Ids>(values.at(name));
}

void ExportedModel::save(const std::string& path, std::int64_t opset) const {
  if (longest < 4) throw std::runtime_error("models of fewer than 4 tokens cannot be exported");
  const std::size_t last = std::min<std::size_t>(longest, by_distance ? 512 : 9);
  const std::size_t first = std::min<std::size_t>(7, last - 1), third = last >= 9 ? 8 : last - 2;
  xgrad::onnx::save<float>(
      *module, path, inputs, forward,
      {.lengths = {{"batch", {3, 2, 4}}, {"sequence", {first, last, third}}}, .opset = opset});
}

ExportedModel exported_model(const std::string& path) {
  if (std::filesystem::is_directory(path)) return exported_folder(path);
  if (xgrad::is_gguf(path))
    throw xgrad::FileError(path + ": is a GGUF file; encoders are exported, decoders are not");
  const std::string task = SavedModel::task_of(path);
  if (task == Tagger::task) return exported_tagger(path);
  if (task == WordClassifier::task) return exported_word_classifier(path);
  throw xgrad::FileError(path + ": the metadata \"task\" must be '" + Tagger::task + "' or '" +
                         WordClassifier::task + "', got '" + task + "'");
}

}  // namespace apps
