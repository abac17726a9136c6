#include <xgrad/ops/linalg/matrix_exp.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("matrix_exp", [](const Sizes& s) -> std::vector<Row> {
  const auto f = [](auto& a) { return matrix_exp(a[0] * 0.1f); };
  return {
      {"matrix_exp", {{square(s)}}, f},
      {"matrix_exp, 3 x 3", {{small_matrices(s)}}, f},
  };
});

}  // namespace
}  // namespace bench
