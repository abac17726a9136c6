#include <xgrad/ops/linalg/cholesky.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("cholesky", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"cholesky",
       {{square(s)}},
       [](auto& a) { return cholesky(dominant(a[0])); },
       [](auto& a) { return linalg_cholesky(dominant(a[0])); }},
      {"cholesky, 3 x 3",
       {{small_matrices(s)}},
       [](auto& a) { return cholesky(dominant(a[0])); },
       [](auto& a) { return linalg_cholesky(dominant(a[0])); }},
  };
});

}  // namespace
}  // namespace bench
