// The page "ONNX", section by section
#include <cstdio>
#include <iostream>

#include <xgrad/files.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/xgrad.hpp>

namespace {

namespace onnx = xgrad::onnx;
using xgrad::Ids, xgrad::Variable;

void writing() {
  std::cout << "# export\n";
  xgrad::manual_seed(1);
  // [export]
  const xgrad::ToyEncoder<float> model(
      {.vocab_size = 30, .max_len = 16, .classes = 3, .encoder = {.d_model = 8, .heads = 2, .d_ff = 16}});
  model.eval();  // without dropout

  const onnx::Input ids{"input_ids", {"batch", "sequence"}, 0, 30};  // integers from 0, below 30
  onnx::save<float>(model, "model.onnx", {ids}, [&](const onnx::Values<float>& in) {
    return onnx::Values<float>{{"logits", model.class_logits(std::get<Ids>(in.at("input_ids")))}};
  });
  // [export]
  std::cout << "model.onnx is written\n";
}

void refusing() {
  std::cout << "# refusal\n";
  const xgrad::Linear<float> model(4, 4);
  // [refusal]
  const auto forward = [&](const onnx::Values<float>& in) -> onnx::Values<float> {
    const auto x = std::get<Variable<float>>(in.at("x"));
    const float rows = static_cast<float>(x.shape(0));
    return {{"y", model(lgamma(x)) / rows}};
  };
  try {
    onnx::save<float>(model, "refused.onnx", {{"x", {"batch", 4U}}}, forward);
  } catch (const xgrad::ValueError& error) {
    std::cout << error.what() << '\n';
  }
  // [refusal]
}

void reading() {
  std::cout << "# import\n";
  // [import]
  const auto graph = onnx::load("model.onnx");
  const Ids ids{{5, 3, 8}, {1, 2, 9}};
  const auto logits = [&] { return std::get<Variable<float>>(graph({{"input_ids", ids}}).at("logits")); };
  std::cout << xgrad::to_string(logits().shape()) << ", " << graph.parameters().size() << " parameters\n";

  xgrad::Adam<float> optimizer(graph.parameters(), {.lr = 1e-2});
  for (int step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    cross_entropy(logits(), Ids{0, 2}).backward();
    optimizer.step();
  }
  std::cout << xgrad::to_string(argmax(logits(), 1)) << '\n';
  // [import]
  xgrad::save_npy(ids, "ids.npy");
}

}  // namespace

int main() {
  writing();
  refusing();
  reading();
}
