// Forward and backward of an encoder, profiled by op and by module
#include <iostream>

#include <xgrad/xgrad.hpp>

int main() {
  xgrad::manual_seed(0);
  const xgrad::ToyEncoder<float> model(
      {.vocab_size = 100, .max_len = 64, .encoder = {.d_model = 128, .heads = 4, .d_ff = 512, .layers = 2}});
  const xgrad::Ids ids = xgrad::randint(0, 100, {16, 64});
  const auto step = [&] { mean(model(ids)).backward(); };
  step();  // takes its memory from the system
  std::cout << xgrad::profile(step);
}
