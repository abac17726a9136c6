// Scaled dot-product attention with a padding mask, forward and backward
#include <iostream>

#include <xgrad/xgrad.hpp>

int main() {
  // One sequence of four tokens of three numbers, the last of them padding.
  xgrad::manual_seed(4);
  const xgrad::Shape shape{1, 4, 3};
  const xgrad::Variable<float> q(xgrad::normal<float>(shape), true);
  const xgrad::Variable<float> k(xgrad::normal<float>(shape), true);
  const xgrad::Variable<float> v(xgrad::normal<float>(shape), true);
  const xgrad::Mask allowed{{true, true, true, false}};

  const auto [output, weights] = attention_with_weights(q, k, v, allowed);
  std::cout << "attention weights, a row for each query:\n" << weights << '\n';

  // The same from one fused kernel, which keeps no score matrix apart for each step.
  const xgrad::Variable<float> fused = scaled_dot_product_attention(q, k, v, allowed);
  std::cout << "largest difference to the fused kernel: "
            << (xt::amax(xt::abs(fused.value() - output.value()))() < 1e-6F ? "below 1e-6" : "too large")
            << '\n';

  sum(fused * fused).backward();
  std::cout << "gradient of v, none at the padding:\n" << v.grad() << '\n';
}
