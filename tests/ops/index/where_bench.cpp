#include <xgrad/ops/index/where.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("where", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"where", {{s.matrix}, {s.matrix}}, [](auto& a) { return where(a.mask, a[0], a[1]); }},
  };
});

}  // namespace
}  // namespace bench
