#include <xgrad/ops/linalg/eigh.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("eigh", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"eigh, values",
       {{square(s)}},
       [](auto& a) { return eigh(a[0]).eigenvalues; },
       [](auto& a) { return std::get<0>(linalg_eigh(a[0])); }},
      {"eigh, vectors",
       {{square(s)}},
       [](auto& a) { return eigh(a[0]).eigenvectors; },
       [](auto& a) { return std::get<1>(linalg_eigh(a[0])); }},
  };
});

}  // namespace
}  // namespace bench
