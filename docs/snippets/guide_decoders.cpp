// The page "Pretrained decoders", section by section, on a small model of its own
#include <iostream>

#include <xgrad/generation.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

namespace {

namespace generation = xgrad::generation;
namespace pretrained = xgrad::pretrained;

void print(const std::vector<std::int64_t>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) std::cout << (i > 0 ? " " : "") << tokens[i];
  std::cout << '\n';
}

void training() {
  std::cout << "# training\n";
  // [training]
  pretrained::Config config = pretrained::Config::of(pretrained::Family::llama);
  config.vocab_size = 12;
  config.hidden_size = 32;
  config.intermediate_size = 64;
  config.num_hidden_layers = config.num_attention_heads = 2;
  xgrad::manual_seed(0);
  const pretrained::CausalLM<float> model(config);  // or from_folder("smollm2")

  const xgrad::Ids text{{1, 9, 8, 7, 9, 8, 6, 5, 10, 2}};
  xgrad::AdamW<float> optimizer(pretrained::decay_groups(model.trainable_parameters(), {.lr = 0.01}));
  model.train();
  for (int step = 0; step < 40; ++step) {
    optimizer.zero_grad();
    model.loss({text}, text).backward();
    clip_grad_norm(optimizer.parameters(), 1.0);
    optimizer.step();
  }
  model.eval();
  save_folder(model, "tiny", {.dtype = xgrad::DType::BF16});
  // [training]
  std::cout << (model.loss({text}, text).item() < 0.1F ? "learned" : "not learned") << '\n';
}

void generating() {
  std::cout << "# generating\n";
  // [generating]
  const auto model = pretrained::CausalLM<float>::from_folder("tiny");
  const std::vector<std::vector<std::int64_t>> prompts{{1, 9}, {1, 9, 8, 7, 9, 8}};
  const auto written =
      generation::generate(model, prompts, {.max_new_tokens = 20});  // up to the end token, 2
  for (const std::vector<std::int64_t>& tokens : written) print(tokens);

  generation::generate(model, {{1, 9, 8}}, {}, [](std::size_t, std::int64_t token) {
    std::cout << token << '\n';
    return token != 8;  // false stops
  });
  // [generating]
}

void caches() {
  std::cout << "# caches\n";
  const auto model = pretrained::CausalLM<float>::from_folder("tiny");
  // [caches]
  const xgrad::NoGrad no_grad;
  std::vector<xgrad::KeyValueCache<float>> caches{model.new_cache()};
  const std::vector<std::size_t> two{2}, one{1};
  model.next_logits(xgrad::Ids{1, 9}, two, caches);                   // a prompt
  const auto logits = model.next_logits(xgrad::Ids{8}, one, caches);  // one token more
  std::cout << caches[0].length() << " tokens, the next is " << argmax(logits)() << '\n';
  // [caches]
}

}  // namespace

int main() {
  training();
  generating();
  caches();
}
