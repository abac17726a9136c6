// The layers of an encoder, and the shapes that one sentence goes through
#include <iostream>

#include <xgrad/xgrad.hpp>

#include "common/shape_trace.hpp"

int main() {
  xgrad::manual_seed(0);
  const xgrad::ToyEncoder<float> model({.vocab_size = 7,
                                        .max_len = 4,
                                        .classes = 2,
                                        .encoder = {.d_model = 8, .heads = 2, .d_ff = 16, .layers = 1},
                                        .pad_id = 0});
  std::cout << summary(model) << '\n';

  const xgrad::Ids sentences{{1, 2, 3, 0}, {4, 5, 6, 0}};
  const examples::ShapeTrace trace;
  static_cast<void>(model(sentences));
  std::cout << trace;
}
