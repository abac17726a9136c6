// Fits a logistic regression with Ceres Solver, which gets values and gradients from xgrad
#include <algorithm>
#include <cstdio>

#include <ceres/ceres.h>

#include <xgrad/xgrad.hpp>

using xgrad::Array, xgrad::Variable;

/// Whether the first of three numbers is larger than the sum of the others, with some noise.
struct Loss final : ceres::FirstOrderFunction {
  const Array<double> x = xgrad::normal<double>({200, 3}), noise = xgrad::normal<double>({200});
  const Array<double> larger = xt::cast<double>(xt::col(x, 0) + 0.5 * noise > xt::col(x, 1) + xt::col(x, 2));

  int NumParameters() const override { return 3; }

  bool Evaluate(const double* parameters, double* cost, double* gradient) const override {
    const Array<double> weights = xt::adapt(parameters, 3, xt::no_ownership(), std::vector<std::size_t>{3});
    const auto loss = [this](const Variable<double>& w) {
      return binary_cross_entropy_with_logits(matmul(Variable<double>(x), w), larger);
    };
    const auto [y, g] = value_and_grad(loss, weights);
    *cost = y();
    if (gradient != nullptr) std::copy(g.begin(), g.end(), gradient);
    return true;
  }
};

int main() {
  xgrad::manual_seed(0);
  const ceres::GradientProblem problem(new Loss);
  ceres::GradientProblemSolver::Options options;
  options.logging_type = ceres::SILENT;
  options.gradient_tolerance = 1e-9;
  ceres::GradientProblemSolver::Summary summary;
  double weights[] = {0, 0, 0};
  ceres::Solve(options, problem, weights, &summary);
  std::printf("weights %.3f %.3f %.3f, loss from %.4f to %.4f\n", weights[0], weights[1], weights[2],
              summary.initial_cost, summary.final_cost);
}
