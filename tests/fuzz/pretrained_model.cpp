// The files of a pretrained model: config.json, the list of its weights, and what says how to pool
// seeds: tests/data/pretrained/electra_discriminator tests/data/pretrained/bert_sentence
// seeds: tests/data/pretrained/gte_mlm
#include <xgrad/pretrained.hpp>

#include "model_folder.hpp"

namespace {

namespace pretrained = xgrad::pretrained;

pretrained::Config small() {
  pretrained::Config config;
  config.vocab_size = 7;
  config.hidden_size = config.embedding_size = config.intermediate_size = 2;
  config.num_hidden_layers = config.num_attention_heads = 1;
  config.max_position_embeddings = 4;
  return config;
}

/// The bytes of one of the files of the small model, of float numbers or of 8-bit integers.
std::string saved(const std::string& name, bool rounded = false) {
  return fuzz::written([&](const std::string& path) {
    const std::string folder = path + ".folder";
    pretrained::save_folder(pretrained::SequenceClassifier<float>(small()), folder);
    if (rounded)
      pretrained::save_folder(pretrained::SequenceClassifier<float>::from_folder(
                                  folder, {.precision = pretrained::Precision::int8}),
                              folder);
    std::filesystem::copy(folder + "/" + name, path);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string config = saved("config.json"), weights = saved("model.safetensors"),
                           vocabulary = "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\n##b\n";
  static const std::map<std::string, std::string> rest{
      {"config.json", config}, {"model.safetensors", weights}, {"vocab.txt", vocabulary}};
  static const std::string of_integers = saved("config.json", true);
  static const auto without = [](const std::string& name) {
    auto others = rest;
    others.erase(name);
    return others;
  };
  static const fuzz::ModelFolder folders[] = {
      fuzz::ModelFolder("config.json", without("config.json")),
      fuzz::ModelFolder("model.safetensors.index.json", without("model.safetensors")),
      fuzz::ModelFolder("model.safetensors", without("model.safetensors")),
      fuzz::ModelFolder("model.safetensors",
                        {{"config.json", of_integers}, {"vocab.txt", rest.at("vocab.txt")}}),
      fuzz::ModelFolder("pytorch_model.bin", without("model.safetensors")),
      fuzz::ModelFolder("modules.json", rest),
      fuzz::ModelFolder("config_sentence_transformers.json", rest),
      fuzz::ModelFolder("sentence_bert_config.json", rest)};
  const fuzz::InputFile input(data, size);
  const pretrained::LoadOptions quietly{.labels = {}, .note = [](const std::string&) {}};
  for (const fuzz::ModelFolder& folder : folders) {
    fuzz::accepts<xgrad::FileError, xgrad::ValueError>([&] {
      const auto model = pretrained::SequenceClassifier<float>::from_folder(folder.path(), quietly);
      model({xgrad::Ids{{1, 2, 0}}});
    });
    fuzz::accepts<xgrad::FileError>(
        [&] { pretrained::SentenceEmbedder<float>::from_folder(folder.path(), quietly); });
    fuzz::accepts<xgrad::FileError, xgrad::ValueError>(
        [&] { pretrained::CrossEncoder<float>::from_folder(folder.path(), quietly); });
  }
  return 0;
}
