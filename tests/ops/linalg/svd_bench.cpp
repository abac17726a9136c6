#include <xgrad/ops/linalg/svd.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("svd", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"svd, values",
       {{square(s)}},
       [](auto& a) { return svd(a[0], {.full_matrices = false}).S; },
       [](auto& a) { return std::get<1>(linalg_svd(a[0], false)); }},
      {"pinv",
       {{square(s)}},
       [](auto& a) { return pinv(dominant(a[0])); },
       [](auto& a) { return linalg_pinv(dominant(a[0])); }},
  };
});

}  // namespace
}  // namespace bench
