#include <xgrad/ops/linalg/lstsq.hpp>

#include "../common/bench_matrices.hpp"

namespace bench {
namespace {

const Rows rows("lstsq", [](const Sizes& s) -> std::vector<Row> {
  const std::size_t equations = std::max<std::size_t>(s.n / 20, 20);
  return {
      {"lstsq",
       {{{equations, 20}}, {{equations, 1}}},
       [](auto& a) { return lstsq(a[0], a[1]); },
       [](auto& a) { return std::get<0>(linalg_lstsq(a[0], a[1])); }},
  };
});

}  // namespace
}  // namespace bench
