#include <xgrad/ops/linalg/solve.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("solve", [](const Sizes& s) -> std::vector<Row> {
  const auto f = [](auto& a) { return solve(dominant(a[0]), a[1]); };
  const auto in_torch = [](auto& a) { return linalg_solve(dominant(a[0]), a[1]); };
  return {
      {"solve", {{square(s)}, {square(s)}}, f, in_torch},
      {"solve, 3 x 3", {{small_matrices(s)}, {small_matrices(s)}}, f, in_torch},
      {"inv",
       {{square(s)}},
       [](auto& a) { return inv(dominant(a[0])); },
       [](auto& a) { return linalg_inv(dominant(a[0])); }},
  };
});

}  // namespace
}  // namespace bench
