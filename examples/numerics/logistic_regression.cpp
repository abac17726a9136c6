// Logistic regression of 2,000 samples with 50 features, fitted by L-BFGS
#include "../common/show.hpp"

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const Array x = wave({2000, 50});
  const Array noise = wave({2000}, 11);
  const Array y = xt::cast<double>(xt::sum(x * wave({50}, 3), {1}) + noise > 0.0);
  const Variable features(x), labels(y);
  show("minimum", [&] {
    const Variable w(Array(xgrad::Shape{50}, 0.0), true);
    xgrad::LBFGS<double> optimizer(
        {w}, {.lr = 1, .max_iter = 100, .line_search_fn = xgrad::LineSearch::strong_wolfe});
    const auto loss = [&] {
      return binary_cross_entropy_with_logits(matmul(features, w), labels) + 1e-3 * sum(square(w));
    };
    optimizer.step([&] {
      optimizer.zero_grad();
      const Variable now = loss();
      now.backward();
      return now;
    });
    return loss().value();
  });
}
