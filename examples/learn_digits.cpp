// A small convolutional network learns to read noisy digits, which the program draws
#include <iostream>
#include <xgrad/xgrad.hpp>

using xgrad::Array, xgrad::Ids, xgrad::Variable;

/// Three dots in each of five rows of a digit.
constexpr const char* font[] = {"####.##.##.####", ".#.##..#..#.###", "###..#####..###", "###..####..####",
                                "#.##.####..#..#", "####..###..####", "####..####.####", "###..#..#..#..#",
                                "####.#####.####", "####.####..####"};
constexpr std::size_t side = 14;

struct Digits {
  Array<float> images;
  Ids labels;
};

/// `count` digits of double size at random places, under noise.
Digits draw(std::size_t count) {
  Digits digits{xgrad::normal<float>({count, 1, side, side}), xgrad::randint(0, 10, {count})};
  const Ids places = xgrad::randint(0, 5, {count, 2});
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t dot = 0; dot < 60; ++dot) {
      const std::size_t row = dot / 6, column = dot % 6;
      if (font[digits.labels(i)][row / 2 * 3 + column / 2] == '#')
        digits.images(i, 0, row + static_cast<std::size_t>(places(i, 0)),
                      column + static_cast<std::size_t>(places(i, 1))) += 3;
    }
  }
  return digits;
}

class Reader : public xgrad::Module<float> {
 public:
  Reader() : Module<float>("Reader") {}
  Variable<float> operator()(const Variable<float>& images) const {
    const auto scope = this->scope();
    const Variable<float> x = pool_(relu(norm1_(conv1_(images))));
    return head_(flatten(pool_(relu(norm2_(conv2_(x)))), 1));
  }

 private:
  xgrad::Conv2d<float> conv1_ = child("conv1", xgrad::Conv2d<float>(1, 8, 3, {.padding = 1}));
  xgrad::BatchNorm2d<float> norm1_ = child("norm1", xgrad::BatchNorm2d<float>(8));
  xgrad::Conv2d<float> conv2_ = child("conv2", xgrad::Conv2d<float>(8, 16, 3, {.padding = 1}));
  xgrad::BatchNorm2d<float> norm2_ = child("norm2", xgrad::BatchNorm2d<float>(16));
  xgrad::MaxPool2d<float> pool_ = child("pool", xgrad::MaxPool2d<float>(2));
  xgrad::Linear<float> head_ = child("head", xgrad::Linear<float>(16 * 3 * 3, 10));
};

/// What the model reads; batch norm by its running statistics.
Ids read(const Reader& model, const Digits& digits) {
  const xgrad::NoGrad no_grad;
  const xgrad::EvalMode eval_mode(model);
  return argmax(model(digits.images), 1);
}

int main() {
  xgrad::manual_seed(0);
  const Reader model;
  xgrad::AdamW<float> optimizer(model.parameters(), {.lr = 0.01});
  const auto step = [&](std::size_t) -> xgrad::StepResult {
    const Digits batch = draw(64);
    optimizer.zero_grad();
    const auto loss = cross_entropy(model(batch.images), batch.labels);
    loss.backward();
    optimizer.step();
    return {.loss = loss.item()};
  };
  xgrad::fit(300, step);

  const Digits tests = draw(1000);
  const Ids found = read(model, tests);
  std::size_t right = 0;
  for (std::size_t i = 0; i < 1000; ++i) right += found(i) == tests.labels(i);
  std::cout << (right >= 900 ? "more" : "less")
            << " than 90 % of new digits are read rightly\nthis is read as " << found(0) << ":\n";
  for (std::size_t pixel = 0; pixel < side * side; ++pixel)
    std::cout << (tests.images.data()[pixel] > 1.5 ? '#' : '.') << (pixel % side == side - 1 ? "\n" : "");
}
