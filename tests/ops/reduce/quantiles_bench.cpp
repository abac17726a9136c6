#include <xgrad/ops/reduce/quantiles.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("quantiles", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"median",
       {{s.matrix}},
       [](auto& a) { return median(a[0], 1).values; },
       [](auto& a) { return std::get<0>(a[0].median(1)); }},
      {"quantile", {{s.matrix}}, [](auto& a) { return quantile(a[0], 0.3, 1); }},
  };
});

}  // namespace
}  // namespace bench
