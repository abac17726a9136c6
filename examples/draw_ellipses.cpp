// A variational autoencoder learns to draw ellipses, and finds the two numbers that describe one
#include <iostream>
#include <xgrad/xgrad.hpp>

using xgrad::Array, xgrad::Linear, xgrad::Normal, xgrad::Sequential, xgrad::Variable;

constexpr std::size_t side = 12, pixels = side * side;

/// `count` filled ellipses of random widths and heights, 1 inside and 0 outside: (count, pixels).
Array<double> ellipses(std::size_t count) {
  const Array<double> half_axes = xgrad::uniform<double>({count, 2}, 1, 6);
  Array<double> images = xgrad::zeros<double>({count, pixels});
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const double y = (static_cast<double>(pixel / side) - 5.5) / half_axes(i, 0);
      const double x = (static_cast<double>(pixel % side) - 5.5) / half_axes(i, 1);
      images(i, pixel) = x * x + y * y < 1 ? 1 : 0;
    }
  }
  return images;
}

class Autoencoder : public xgrad::Module<double> {
 public:
  Autoencoder() : Module("Autoencoder") {}

  /// The distribution of the two numbers of each image: (batch, 2).
  Normal<double> encode(const Variable<double>& images) const {
    const Variable<double> y = encoder_(images);
    return {slice(y, 1, 0, 2), exp(slice(y, 1, 2, 4))};
  }

  /// The logits of pixels (batch, 144).
  Variable<double> decode(const Variable<double>& numbers) const { return decoder_(numbers); }

 private:
  Sequential<double> encoder_ =
      child("encoder",
            Sequential<double>{Linear<double>(pixels, 64), xgrad::Tanh<double>(), Linear<double>(64, 4)});
  Sequential<double> decoder_ =
      child("decoder",
            Sequential<double>{Linear<double>(2, 64), xgrad::Tanh<double>(), Linear<double>(64, pixels)});
};

void print(const Variable<double>& logits) {
  for (std::size_t row = 0; row < side; ++row) {
    for (std::size_t i = 0; i < logits.shape(0); ++i)
      for (std::size_t column = 0; column < side + 2; ++column)
        std::cout << (column < 2 ? ' ' : logits.value()(i, row * side + column - 2) > 0 ? '#' : '.');
    std::cout << '\n';
  }
}

int main() {
  xgrad::manual_seed(0);
  const Autoencoder model;
  const Normal<double> prior(Variable<double>(0.0), Variable<double>(1.0));
  xgrad::AdamW<double> optimizer(model.parameters(), {.lr = 0.01});
  for (int step = 0; step < 1000; ++step) {
    const Variable<double> images(ellipses(64));
    const Normal<double> numbers = model.encode(images);
    const Variable<double> error = binary_cross_entropy_with_logits(model.decode(numbers.rsample()), images,
                                                                    {.reduction = xgrad::Reduction::sum});
    optimizer.zero_grad();
    ((error + sum(kl_divergence(numbers, prior))) / 64.0).backward();
    optimizer.step();
  }

  const xgrad::NoGrad no_grad;
  const Variable<double> images(ellipses(5));
  std::cout << "ellipses, and what is drawn from the two numbers of each:\n";
  print(images);
  print(model.decode(model.encode(images).loc()));
  std::cout
      << "other numbers, from -1.2 to 1.2, the first from left to right, the second from top to bottom:\n";
  for (const double second : {-1.2, 0.0, 1.2}) {
    const Array<double> numbers{{-1.2, second}, {-0.6, second}, {0, second}, {0.6, second}, {1.2, second}};
    print(model.decode(numbers));
  }
}
