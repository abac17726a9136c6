#include <xgrad/ops/product/linear_map.hpp>

#include "../common/bench.hpp"
#include "running_sums.hpp"

namespace bench {
namespace {

const Rows rows("linear_map", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"linear_map",
       {{s.matrix}},
       [](auto& a) { return cumulated(a[0]); },
       [](auto& a) { return cumsum(a[0], -1); }},
  };
});

}  // namespace
}  // namespace bench
