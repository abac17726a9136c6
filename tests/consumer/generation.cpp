#include <cstdint>
#include <iostream>
#include <vector>

#include <xgrad/generation.hpp>

int main() {
  auto config = xgrad::pretrained::Config::of(xgrad::pretrained::Family::llama);
  config.vocab_size = 7;
  config.hidden_size = config.intermediate_size = 4;
  config.num_hidden_layers = config.num_attention_heads = 1;
  const xgrad::pretrained::CausalLM<float> model(config);
  const auto written = xgrad::generation::generate(
      model, {{1, 3}}, {.max_new_tokens = 2, .eos_token_ids = std::vector<std::int64_t>()});
  std::cout << written.front().size() << " tokens\n";
  return written.front().size() == 2 ? 0 : 1;
}
