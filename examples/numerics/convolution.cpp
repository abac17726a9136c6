// A convolution of images, made of slices and one matrix product, and the gradient of its weights
#include "../common/show.hpp"

/// x (batch, in, height, width), weight (out, in, k, k): (batch, out, height - k + 1, width - k + 1).
Variable conv2d(const Variable& x, const Variable& weight) {
  const std::size_t k = weight.shape(2), rows = x.shape(2) - k + 1, cols = x.shape(3) - k + 1;
  std::vector<Variable> patches;
  for (std::size_t r = 0; r < k; ++r)
    for (std::size_t c = 0; c < k; ++c) patches.push_back(narrow(narrow(x, 2, r, rows), 3, c, cols));
  const Variable columns = reshape(stack(patches, 2), {x.shape(0), x.shape(1) * k * k, rows * cols});
  const Variable y = matmul(reshape(weight, {weight.shape(0), -1}), columns);
  return reshape(y, {x.shape(0), weight.shape(0), rows, cols});
}

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const std::vector<Array> p{wave({8, 16, 32, 32}), wave({32, 16, 3, 3})};
  show("forward", [&] {
    const xgrad::NoGrad guard;
    return conv2d(p[0], p[1]).value();
  });
  show("gradient", [&] {
    const auto f = [](const std::vector<Variable>& q) { return mean(square(conv2d(q[0], q[1]))); };
    return value_and_grad(f, p).second[1];
  });
}
