// A GPT of xgrad::pretrained, which bench_gpt measures.

#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <xgrad/base/threads.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../../encoder/save.hpp"
#include "../../encoder/temporary_file.hpp"
#include "../../encoder/worker.hpp"
#include "../../reading.hpp"
#include "gpt.hpp"

using namespace xgrad::pretrained;
using nlohmann::json;
using xgrad::Array, xgrad::Ids, xgrad::KeyValueCache, xgrad::Variable;

namespace {

Config config_of(const bench::GptSize& size) {
  Config config = Config::of(Family::gpt2);
  config.vocab_size = size.vocab;
  config.max_position_embeddings = bench::gpt_positions;
  config.hidden_size = size.d_model;
  config.intermediate_size = 4 * size.d_model;
  config.num_attention_heads = size.heads;
  config.num_hidden_layers = size.layers;
  config.query_bias = config.output_bias = config.mlp_bias = size.biases;
  config.bos_token_id = {};
  config.eos_token_ids = {};
  config.embedding_dropout = config.attention_probs_dropout_prob = config.hidden_dropout_prob = 0;
  return config;
}

/// Trains a model.
class Training {
 public:
  Training(const bench::GptSize& size, bool checkpoints)
      : model_(config_of(size)),
        optimizer_(model_.parameters(), {.lr = 1e-3}),
        ids_(xgrad::randint(0, static_cast<std::int64_t>(size.vocab), {size.batch, size.seq})),
        targets_(xgrad::randint(0, static_cast<std::int64_t>(size.vocab), {size.batch, size.seq})) {
    model_.train();
    model_.decoder().checkpoint_layers(checkpoints);
    if (checkpoints) xgrad::set_cache_limit(std::size_t{128} << 20);
  }

  void step() {
    optimizer_.zero_grad();
    loss().backward();
    optimizer_.step();
  }
  bench::Gpt description() const {
    const xgrad::NoGrad guard;
    return {xgrad::blas_core_name(),
            model_.parameter_count(),
            loss().item(),
            {ids_.begin(), ids_.end()},
            {targets_.begin(), targets_.end()}};
  }
  bench::Weights save(const std::string& path) const { return bench::save(model_, path); }

 private:
  /// The mean of all tokens.
  Variable<float> loss() const {
    const Decoder<float>& decoder = model_.decoder();
    return linear_cross_entropy(decoder({ids_}).last_hidden_state, decoder.word_embeddings(), targets_);
  }

  CausalLM<float> model_;
  xgrad::AdamW<float> optimizer_;
  Ids ids_, targets_;
};

/// Reads prompts, and writes token by token behind one; beside it, reads as much memory as a token does.
class Decoding {
 public:
  Decoding(const bench::GptSize& size, bool bfloat16)
      : model_(of(size, bfloat16)),
        prompt_(xgrad::randint(0, static_cast<std::int64_t>(size.vocab), {size.seq})),
        token_{std::int64_t{0}},
        memory_(xgrad::normal<float>({bench::decoded_bytes(size, bfloat16) / sizeof(float)})) {}

  void read_prompt() const {
    std::vector<KeyValueCache<float>> cache{model_.decoder().new_cache()};
    next(prompt_, cache);
  }
  void write_token() {
    if (cache_.empty() || cache_[0].length() == bench::gpt_positions) {
      cache_.assign(1, model_.decoder().new_cache());
      next(prompt_, cache_);
    }
    next(token_, cache_);
  }
  void read_memory() { sum_ = bench::read(memory_); }

 private:
  /// The numbers are of bfloat16 in a model that was loaded.
  static CausalLM<float> of(const bench::GptSize& size, bool bfloat16) {
    const CausalLM<float> fresh(config_of(size));
    if (!bfloat16) return fresh;
    const bench::TemporaryFile folder;
    std::filesystem::remove(folder.path());
    std::filesystem::create_directory(folder.path());
    save_folder(fresh, folder.path(), {.dtype = xgrad::DType::BF16});
    return CausalLM<float>::from_folder(folder.path(), {.dtype = xgrad::DType::BF16});
  }

  void next(const Ids& tokens, std::span<KeyValueCache<float>> cache) const {
    const xgrad::NoGrad guard;
    const std::size_t length = tokens.size();
    model_.next_logits(tokens, {&length, 1}, cache);
  }

  CausalLM<float> model_;
  Ids prompt_, token_;
  std::vector<KeyValueCache<float>> cache_;
  Array<float> memory_;
  volatile float sum_ = 0;
};

}  // namespace

int main() {
  std::unique_ptr<Training> training;
  std::unique_ptr<Decoding> decoding;
  return bench::serve([&](const std::string& what, const json& request) -> json {
    if (what == "start" || what == "start decoding") {
      xgrad::set_num_threads(request.at("threads"));
      xgrad::set_float32_matmul_precision(request.at("precision").get<std::string>());
      xgrad::manual_seed(0);
    }
    if (what == "start") {
      training = std::make_unique<Training>(request.at("size").get<bench::GptSize>(),
                                            request.at("checkpoint").get<bool>());
      return training->description();
    }
    if (what == "start decoding") {
      decoding = std::make_unique<Decoding>(request.at("size").get<bench::GptSize>(),
                                            request.at("bfloat16").get<bool>());
      return bench::GptDecoder{xgrad::blas_core_name()};
    }
    if (what == "save" && training) return training->save(request.at("path"));
    if (what == "step" && training) return bench::timed(request, [&] { training->step(); });
    if (what == "prompt" && decoding) return bench::timed(request, [&] { decoding->read_prompt(); });
    if (what == "token" && decoding) return bench::timed(request, [&] { decoding->write_token(); });
    if (what == "read" && decoding) return bench::timed(request, [&] { decoding->read_memory(); });
    throw std::invalid_argument("cannot do '" + what + "' now");
  });
}
