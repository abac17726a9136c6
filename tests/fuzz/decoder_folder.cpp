// The files of a pretrained decoder: config.json of each family, its weights and their list
// seeds: tests/data/decoders/gpt2_plain tests/data/decoders/qwen2_sliding
#include <xgrad/generation.hpp>
#include <xgrad/pretrained.hpp>

#include "model_folder.hpp"

namespace {

namespace pretrained = xgrad::pretrained;
using pretrained::Family;

pretrained::Config small(Family family) {
  pretrained::Config config = pretrained::Config::of(family);
  config.vocab_size = 7;
  config.hidden_size = config.intermediate_size = 4;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = config.rotary ? 1 : 0;
  config.head_dim = config.rotary ? 2 : 0;
  config.max_position_embeddings = 6;
  config.bos_token_id = 1;
  config.eos_token_ids = {2};
  return config;
}

/// The files of a small model, without one.
std::map<std::string, std::string> without(const std::string& name, Family family) {
  std::map<std::string, std::string> files;
  for (const std::string file : {"config.json", "model.safetensors"}) {
    if (file == name) continue;
    files[file] = fuzz::written([&](const std::string& path) {
      const std::string folder = path + ".folder";
      pretrained::save_folder(pretrained::CausalLM<float>(small(family)), folder);
      std::filesystem::copy(folder + "/" + file, path);
    });
  }
  return files;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ModelFolder folders[] = {
      fuzz::ModelFolder("config.json", without("config.json", Family::gpt2)),
      fuzz::ModelFolder("config.json", without("config.json", Family::llama)),
      fuzz::ModelFolder("config.json", without("config.json", Family::qwen3)),
      fuzz::ModelFolder("model.safetensors", without("model.safetensors", Family::gpt2)),
      fuzz::ModelFolder("model.safetensors", without("model.safetensors", Family::mistral)),
      fuzz::ModelFolder("model.safetensors.index.json", without("model.safetensors", Family::qwen2))};
  const fuzz::InputFile input(data, size);
  for (const fuzz::ModelFolder& folder : folders) {
    for (const bool halves : {false, true}) {
      fuzz::accepts<xgrad::FileError, xgrad::ValueError, xgrad::ShapeError, xgrad::IndexError>([&] {
        pretrained::LoadOptions options;
        if (halves) options.dtype = xgrad::DType::BF16;
        options.note = [](const std::string&) {};
        const auto model = pretrained::CausalLM<float>::from_folder(folder.path(), options);
        xgrad::generation::generate(model, {{1, 3}, {2}}, {.max_new_tokens = 3});
      });
    }
  }
  return 0;
}
