#include <xgrad/ops/linalg/solve_triangular.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("solve_triangular", [](const Sizes& s) -> std::vector<Row> {
  const auto in_torch = [](auto& a) {
    return linalg_solve_triangular(dominant(a[0]), a[1], /*upper=*/false);
  };
  return {
      {"solve_triangular",
       {{square(s)}, {square(s)}},
       [](auto& a) { return solve_triangular(dominant(a[0]), a[1]); },
       in_torch},
      {"solve_triangular, 3 x 3",
       {{small_matrices(s)}, {small_matrices(s)}},
       [](auto& a) { return solve_triangular(dominant(a[0]), a[1]); },
       in_torch},
  };
});

}  // namespace
}  // namespace bench
