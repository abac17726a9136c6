// Saves small models of every family with their results, for the libraries of Hugging Face to open
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "json_file.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace xgrad::pretrained;
using xgrad::Array, xgrad::Ids, xgrad::Variable;
using xgrad_tests::entry_as, xgrad_tests::list_entry;

using Outputs = xgrad::StateDict<double>;

/// A text file, as an AtomicFile writes it.
void write(const std::string& path, const std::string& text) {
  xgrad::AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

/// Two sequences, of which the second has padding.
Input input_of(const Config& config) {
  Ids ids = xgrad::randint(5, static_cast<std::int64_t>(config.vocab_size), {2, 9});
  Ids mask = Ids(ids.shape(), 1);
  for (const std::size_t place : {7, 8}) {
    ids(1, place) = config.pad_token_id.value_or(0);
    mask(1, place) = 0;
  }
  return {.input_ids = ids, .attention_mask = mask};
}

/// Saves a new model, if its family has the head. `outputs` gives what transformers returns, by
/// its names.
template <class Model, class F>
void save_new(const Config& config, const std::string& begin, const F& outputs) {
  try {
    const Model model(config);
    model.eval();
    const Input input = input_of(config);
    const std::string folder = begin + "-" + model.architecture();
    save_folder(model, folder);
    Outputs all = outputs(model, input);
    all.emplace("attention_mask", xt::cast<double>(*input.attention_mask));
    all.emplace("input_ids", xt::cast<double>(input.input_ids));
    xgrad::save_safetensors(all, folder + "/results.safetensors");
    std::cout << folder << '\n';
  } catch (const xgrad::ValueError&) {
    return;
  }
}

constexpr auto logits = [](const auto& model, const Input& input) {
  return Outputs{{"logits", model(input).value()}};
};
constexpr auto hidden_states = [](const auto& model, const Input& input) {
  return Outputs{{"last_hidden_state", model(input).last_hidden_state.value()}};
};

/// A small decoder of a family, with rotary positions that are scaled and a window in some layers.
Config small_decoder(Family family) {
  Config config = Config::of(family);
  config.vocab_size = 30;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.max_position_embeddings = 32;
  config.pad_token_id = 0;
  config.bos_token_id = 1;
  config.eos_token_ids = {2, 3};
  if (family == Family::gpt2) return config;
  config.num_key_value_heads = 2;
  if (family == Family::llama) config.rotary->scaling = xgrad::Llama3Scaling{.original_max_positions = 8};
  if (family == Family::qwen3)
    config.rotary->scaling = xgrad::YarnScaling{.factor = 4, .original_max_positions = 8};
  if (family == Family::mistral || family == Family::qwen2) config.sliding_window = 4;
  if (family == Family::qwen2) config.slides = {false, true};
  return config;
}

void save_decoders(const std::string& out) {
  for (const Family family : {Family::gpt2, Family::llama, Family::mistral, Family::qwen2, Family::qwen3}) {
    const Config config = small_decoder(family);
    save_new<Decoder<double>>(config, out + "/new", hidden_states);
    save_new<CausalLM<double>>(config, out + "/new", logits);
    save_new<CausalSequenceClassifier<double>>(config, out + "/new", logits);
  }
}

void save_heads(const Config& config, const std::string& begin) {
  save_new<Encoder<double>>(config, begin, hidden_states);
  save_new<MaskedLM<double>>(config, begin, logits);
  save_new<SequenceClassifier<double>>(config, begin, logits);
  save_new<TokenClassifier<double>>(config, begin, logits);
  save_new<NextSentence<double>>(config, begin, logits);
  save_new<Discriminator<double>>(config, begin, logits);
  save_new<QuestionAnswerer<double>>(config, begin, [](const auto& model, const Input& input) {
    const auto span = model(input);
    return Outputs{{"start_logits", span.start.value()}, {"end_logits", span.end.value()}};
  });
  save_new<PreTraining<double>>(config, begin, [](const auto& model, const Input& input) {
    const auto both = model(input);
    return Outputs{{"prediction_logits", both.tokens.value()},
                   {"seq_relationship_logits", both.next.value()}};
  });
}

/// Saves a sentence encoder or a cross-encoder, with its results for the texts or pairs of case.json.
void save_again(const std::string& from, const json& about, const std::string& begin) {
  if (about.contains("sentences")) {
    const auto texts = entry_as<std::vector<std::string>>(about, "sentences");
    const auto embedder = SentenceEmbedder<double>::from_folder(from);
    const std::string folder = begin + "-SentenceTransformer";
    embedder.save(folder);
    write(folder + "/texts.json", json(texts).dump());
    xgrad::save_safetensors<double>({{"vectors", embedder(texts)}}, folder + "/results.safetensors");
    std::cout << folder << '\n';
  }
  if (about.contains("pairs")) {
    std::vector<std::string> texts, seconds;
    for (const json& pair : list_entry(about, "pairs")) {
      texts.push_back(pair.at(0).get<std::string>());
      seconds.push_back(pair.at(1).get<std::string>());
    }
    const auto encoder = CrossEncoder<double>::from_folder(from);
    const std::string folder = begin + "-CrossEncoder";
    encoder.save(folder);
    write(folder + "/texts.json", json(list_entry(about, "pairs")).dump());
    xgrad::save_safetensors<double>({{"scores", encoder(texts, seconds)}}, folder + "/results.safetensors");
    std::cout << folder << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string out, root;
  apps::CommandLine app(
      "Saves new models with each head, and sentence encoders again, of the configs of model folders, and "
      "new "
      "decoders of every family.");
  app.add_option("OUT", out, "The folder to write to")->required();
  app.add_option("DIR", root, "A directory with model folders (case.json)")
      ->required()
      ->check(apps::existing_folder());
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("save_models", [&] {
    fs::create_directories(out);
    xgrad::manual_seed(0);
    save_decoders(out);
    for (const auto& entry : fs::directory_iterator(root)) {
      const std::string folder = entry.path().string(), begin = out + "/" + entry.path().filename().string();
      if (!fs::exists(folder + "/case.json")) continue;
      try {
        save_heads(Config::from_folder(folder), begin);
        save_again(folder, xgrad_tests::read_json(folder + "/case.json"), begin);
      } catch (const xgrad::FileError& error) {
        std::cout << "refused: " << error.what() << '\n';
      }
    }
    return 0;
  });
}
