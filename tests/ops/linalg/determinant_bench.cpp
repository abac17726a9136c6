#include <xgrad/ops/linalg/determinant.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("determinant", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"slogdet",
       {{square(s)}},
       [](auto& a) { return slogdet(dominant(a[0])).logabsdet; },
       [](auto& a) { return std::get<1>(linalg_slogdet(dominant(a[0]))); }},
      {"logdet", {{square(s)}}, [](auto& a) { return logdet(dominant(a[0])); }},
      {"det, 3 x 3",
       {{small_matrices(s)}},
       [](auto& a) { return det(a[0]); },
       [](auto& a) { return linalg_det(a[0]); }},
  };
});

}  // namespace
}  // namespace bench
