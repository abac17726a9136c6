#include <iostream>

#include <xgrad/pretrained.hpp>

int main() {
  xgrad::pretrained::Config config;
  config.vocab_size = 7;
  config.hidden_size = config.embedding_size = config.intermediate_size = 4;
  config.num_hidden_layers = config.num_attention_heads = 1;
  const xgrad::pretrained::Encoder<float> encoder(config);
  const auto output = encoder({xgrad::Ids{{1, 2, 3}}});
  std::cout << xgrad::to_string(output.last_hidden_state.shape()) << '\n';
  return output.last_hidden_state.shape(2) == 4 ? 0 : 1;
}
