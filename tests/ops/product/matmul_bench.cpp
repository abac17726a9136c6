#include <xgrad/ops/product/matmul.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("matmul", [](const Sizes& s) -> std::vector<Row> {
  const std::size_t side = integer_root(s.n), edge = std::min<std::size_t>(s.columns, 100);
  const Shape square_matrix{side, side}, squares{s.n / (edge * edge), edge, edge};
  return {
      {"matmul", {{square_matrix}, {square_matrix}}, [](auto& a) { return matmul(a[0], a[1]); }},
      {"bmm", {{squares}, {squares}}, [](auto& a) { return bmm(a[0], a[1]); }},
      {"gemm",
       {{square_matrix}, {square_matrix}, {square_matrix}},
       [](auto& a) { return gemm(a[0], a[1], a[2], {.alpha = 0.5}); },
       [](auto& a) { return addmm(a[2], a[0], a[1], /*beta=*/1, /*alpha=*/0.5); }},
  };
});

}  // namespace
}  // namespace bench
