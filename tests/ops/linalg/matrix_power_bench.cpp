#include <xgrad/ops/linalg/matrix_power.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("matrix_power", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"matrix_power", {{square(s)}}, [](auto& a) { return matrix_power(a[0], 5); }},
  };
});

}  // namespace
}  // namespace bench
