#include <xgrad/ops/index/masked_fill.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("masked_fill", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"masked_fill", {{s.matrix}}, [](auto& a) { return masked_fill(a[0], a.mask, 0.0f); }},
  };
});

}  // namespace
}  // namespace bench
