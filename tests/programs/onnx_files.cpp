// Writes an ONNX file of each kind of model, and what the model computes, for the tests with other runtimes
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../../apps/models/tagger.hpp"
#include "../../apps/models/word_classifier.hpp"
#include "../../apps/onnx/common/exports.hpp"
#include "../onnx/exported_functions.hpp"

namespace {

namespace fs = std::filesystem;
namespace pretrained = xgrad::pretrained;
using apps::ExportedModel, apps::OnnxValues, nlohmann::json, xgrad::Ids, xgrad::Variable;

/// Ids of sequences that end with more and more padding; the first element is never padding.
Ids example(const xgrad::onnx::Input& input, std::size_t batch, std::size_t length) {
  const std::int64_t padding = input.padding.value_or(input.from);
  Ids ids = xgrad::randint(input.from, input.below, {batch, length});
  for (std::size_t row = 0; row < batch; ++row) {
    if (ids(row, 0) == padding) ids(row, 0) = padding > input.from ? input.from : input.below - 1;
    for (std::size_t i = length - row * length / (batch + 1); i < length; ++i) ids(row, i) = padding;
  }
  return ids;
}

template <class A>
json array_of(const A& array) {
  return {{"dims", std::vector<std::size_t>(array.shape().begin(), array.shape().end())},
          {"data", std::vector(array.begin(), array.end())}};
}

/// OUT/NAME.onnx, and OUT/NAME.json with the inputs and outputs of calls of three sizes.
void write(const std::string& out, const std::string& name, const ExportedModel& model) {
  const xgrad::NoGrad guard;
  const std::string path = (fs::path(out) / name).string();
  model.save(path + ".onnx");
  json cases = json::array();
  const std::size_t longest = std::min<std::size_t>(model.longest, 16);
  for (const auto& [batch, length] : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 6}, {2, longest}}) {
    OnnxValues given;
    json one;
    for (const xgrad::onnx::Input& input : model.inputs) {
      const Ids ids = example(input, batch, length);
      one["inputs"][input.name] = array_of(ids);
      given.emplace(input.name, ids);
    }
    for (const auto& [output, value] : model.forward(given))
      one["outputs"][output] = array_of(std::get<Variable<float>>(value).value());
    cases.push_back(std::move(one));
  }
  std::ofstream file(path + ".json");
  file << cases;
  file.close();
  if (!file) throw xgrad::FileError(path + ".json: cannot be written");
}

/// A small model of a class that the data has no folder of.
template <class Model>
ExportedModel fresh(const std::string& folder) {
  pretrained::Config config = pretrained::Config::of(pretrained::Family::bert);
  config.vocab_size = 40;
  config.hidden_size = config.embedding_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.intermediate_size = 24;
  config.max_position_embeddings = 20;
  config.initializer_range = 0.2;
  fs::create_directories(folder);
  pretrained::save_folder(Model(config), folder);
  return apps::exported_model(folder);
}

ExportedModel tagger(const std::string& path) {
  std::vector<apps::TaggedSentence> sentences;
  for (int i = 0; i < 6; ++i)
    sentences.push_back({{"The", "black", "cat", "sees", "mice"}, {"DET", "ADJ", "NOUN", "VERB", "NOUN"}});
  apps::Tagger(apps::TaggerVocabulary(sentences), {.d_model = 16, .heads = 2, .d_ff = 24, .layers = 2})
      .save(path);
  return apps::exported_model(path);
}

ExportedModel syllable_counter(const std::string& path) {
  apps::WordClassifier(apps::Alphabet(U"abcdefghijklmnopqrstuvwxyz", 18), {"1", "2", "3", "4"},
                       {.d_model = 16, .heads = 2, .d_ff = 24, .layers = 2})
      .save(path);
  return apps::exported_model(path);
}

ExportedModel toy_encoder() {
  const auto model = std::make_shared<const xgrad::ToyEncoder<float>>(xgrad::ToyEncoderConfig{
      .vocab_size = 30,
      .max_len = 16,
      .classes = 3,
      .encoder = {.d_model = 16, .heads = 2, .d_ff = 24, .layers = 2, .norm_first = true},
      .pad_id = 0});
  model->eval();
  return {model,
          {apps::token_input("input_ids", 30, 0)},
          [model](const OnnxValues& in) {
            const Ids& ids = apps::ids_of(in, "input_ids");
            return OnnxValues{{"classes", model->class_logits(ids)}, {"tokens", model->token_logits(ids)}};
          },
          16};
}

/// An embedding of ids, and functions of it.
ExportedModel functions_of(const xgrad_tests::ExportedFunctions<float>& functions) {
  const auto embedding = std::make_shared<const xgrad::Embedding<float>>(30, 8);
  return {embedding,
          {apps::token_input("input_ids", 30, 0)},
          [=](const OnnxValues& in) {
            const Variable<float> x = (*embedding)(apps::ids_of(in, "input_ids"));
            OnnxValues outputs;
            for (const auto& [name, f] : functions) outputs.emplace(name, f(x));
            return outputs;
          },
          16};
}

}  // namespace

int main(int argc, char** argv) {
  std::string data, out;
  apps::CommandLine app(
      "Writes an ONNX file of each kind of model, and its inputs and outputs in JSON beside it.");
  app.add_option("data", data, "The folder of pretrained folders")->required();
  app.add_option("out", out, "A folder, which is made")->required();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("onnx_files", [&] {
    xgrad::manual_seed(0);
    const fs::path models = fs::path(out) / "models";
    fs::create_directories(models);
    std::set<fs::path> folders;  // sorted, so that each gets the same examples every time
    for (const auto& entry : fs::directory_iterator(data))
      if (fs::exists(entry.path() / "config.json")) folders.insert(entry.path());
    for (const fs::path& folder : folders) {
      // whose scores of relative positions cannot be exported
      const auto family = pretrained::Config::from_folder(folder.string()).model_type;
      using enum pretrained::Family;
      if (family == deberta || family == deberta_v2) continue;
      write(out, folder.filename().string(), apps::exported_model(folder.string()));
    }
    write(out, "bert_questions", fresh<pretrained::QuestionAnswerer<float>>((models / "questions").string()));
    write(out, "bert_next_sentence", fresh<pretrained::NextSentence<float>>((models / "next").string()));
    write(out, "tagger", tagger((models / "tagger.safetensors").string()));
    write(out, "syllable_counter", syllable_counter((models / "syllables.safetensors").string()));
    write(out, "toy_encoder", toy_encoder());
    write(out, "functions", functions_of(xgrad_tests::exported_functions<float>()));
    write(out, "layers", functions_of(xgrad_tests::exported_layers<float>()));
    return 0;
  });
}
