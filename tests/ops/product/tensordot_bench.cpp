#include <xgrad/ops/product/tensordot.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("tensordot", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"tensordot",
       {{s.matrix}, {s.matrix}},
       [](auto& a) { return tensordot(a[0], a[1], {0}, {0}); },
       [](auto& a) { return a[0].t().matmul(a[1]); }},
      {"outer", {{s.row}, {s.row}}, [](auto& a) { return outer(a[0], a[1]); }},
  };
});

}  // namespace
}  // namespace bench
