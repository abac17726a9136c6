#include <xgrad/ops/linalg/diagonal.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("diagonal", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"diagonal",
       {{s.matrix}},
       [](auto& a) { return diagonal(a[0]); },
       [](auto& a) { return diagonal(a[0]).contiguous(); }},
      {"diag_embed", {{small_matrices(s)}}, [](auto& a) { return diag_embed(a[0]); }},
      {"trace", {{s.matrix}}, [](auto& a) { return trace(a[0]); }, [](auto& a) { return a[0].trace(); }},
  };
});

}  // namespace
}  // namespace bench
