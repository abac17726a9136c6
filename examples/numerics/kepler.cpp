// Kepler's equation E - e sin E = M: derivatives of its root, which a loop of plain numbers finds
#include "../common/show.hpp"

int main(int argc, char** argv) {
  const Show show(argc, argv);
  const Array mean_anomalies = wave({1000}), eccentricity{0.3};
  const auto solver = [](const std::vector<Array>& theta) {
    Array root = theta[0];
    for (int step = 0; step < 8; ++step)
      root -= (root - theta[1] * xt::sin(root) - theta[0]) / (1 - theta[1] * xt::cos(root));
    return root;
  };
  const auto residual = [](const Variable& root, const std::vector<Variable>& theta) {
    return root - theta[1] * sin(root) - theta[0];
  };
  const auto anomaly = [&](const std::vector<Variable>& theta) {
    return implicit_function(theta, solver, residual, {.batched = true});
  };
  const auto f = [&](const std::vector<Variable>& theta) { return sum(square(anomaly(theta))); };
  const std::vector<Array> theta{mean_anomalies, eccentricity};
  show("root", [&] { return anomaly({theta.begin(), theta.end()}).value(); });
  show("gradient", [&] { return value_and_grad(f, theta).second[0]; });
  show("second derivatives", [&] { return hvp(f, theta, theta).second[0]; });
}
