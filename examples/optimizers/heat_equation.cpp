// Finds where it was hot from later temperatures: through a sparse factorisation of Eigen, with LBFGS
#include <cstdio>

#include <Eigen/SparseCholesky>

#include <xgrad/xgrad.hpp>

using xgrad::Array, xgrad::Variable;

constexpr int side = 16, cells = side * side;

/// 1 + dt K of an implicit step, in which heat flows between neighbours on a square plate with cold borders.
Eigen::SparseMatrix<double> implicit_step(double dt) {
  std::vector<Eigen::Triplet<double>> entries;
  for (int cell = 0; cell < cells; ++cell) {
    entries.emplace_back(cell, cell, 1 + 4 * dt);
    for (const int other : {cell + 1, cell + side}) {
      if (other >= cells || (other == cell + 1 && other % side == 0)) continue;
      entries.emplace_back(cell, other, -dt);
      entries.emplace_back(other, cell, -dt);
    }
  }
  Eigen::SparseMatrix<double> matrix(cells, cells);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

int main() {
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factors(implicit_step(0.1));
  // [solve]
  const auto solve = [&](const Array<double>& now) {  // its own transpose: the matrix is symmetric
    Array<double> next = xgrad::zeros<double>({cells});
    Eigen::Map<Eigen::VectorXd>(next.data(), cells) =
        factors.solve(Eigen::Map<const Eigen::VectorXd>(now.data(), cells));
    return next;
  };
  // [solve]
  const auto later = [&](Variable<double> heat) {
    for (int step = 0; step < 10; ++step) heat = linear_map(heat, solve, solve);
    return heat;
  };

  Array<double> truth = xgrad::zeros<double>({cells});
  truth(5 * side + 4) = truth(11 * side + 9) = 10;
  const Variable<double> measured = later(truth), start(Array<double>(xgrad::zeros<double>({cells})), true);
  xgrad::LBFGS<double> optimizer({start},
                                 {.max_iter = 200, .line_search_fn = xgrad::LineSearch::strong_wolfe});
  optimizer.step([&] {
    optimizer.zero_grad();
    const Variable<double> loss = mse_loss(later(start), measured, xgrad::Reduction::sum);
    loss.backward();
    return loss;
  });
  std::printf("heat found: %.2f and %.2f; elsewhere, such as in the middle: %.2f\n",
              start.value()(5 * side + 4), start.value()(11 * side + 9), start.value()(8 * side + 8));
}
