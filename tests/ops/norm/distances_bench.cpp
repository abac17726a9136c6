#include <xgrad/ops/norm/distances.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("distances", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"normalize",
       {{s.matrix}},
       [](auto& a) { return normalize(a[0], 1); },
       [](auto& a) { return a[0] / a[0].norm(2, 1, true).clamp_min(1e-12); }},
      {"cdist",
       {{{s.columns / 10 + 1, s.columns}}, {{s.columns / 10 + 1, s.columns}}},
       [](auto& a) { return cdist(a[0], a[1]); }},
  };
});

}  // namespace
}  // namespace bench
