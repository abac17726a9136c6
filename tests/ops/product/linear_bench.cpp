#include <xgrad/ops/product/linear.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("linear", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"linear",
       {{s.matrix}, {{s.columns, s.columns}}, {s.row}},
       [](auto& a) { return linear(a[0], a[1], a[2]); }},
  };
});

}  // namespace
}  // namespace bench
