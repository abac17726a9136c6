#include <iostream>

#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

int main() {
  const xgrad::ToyDecoder<float> model(
      {.vocab_size = 7, .max_len = 4, .layers = {.d_model = 4, .heads = 1, .d_ff = 4}});
  model.eval();
  const auto written = xgrad::generation::generate(model, {{1, 3}}, {.max_new_tokens = 2});
  std::cout << written.front().size() << " tokens\n";
  return written.front().size() == 2 ? 0 : 1;
}
