#include <xgrad/ops/loss/linear_cross_entropy.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("linear_cross_entropy", [](const Sizes& s) -> std::vector<Row> {
  const Shape weight{s.columns, s.columns};
  return {
      {"linear_cross_entropy",
       {{s.matrix}, {weight}},
       [](auto& a) { return linear_cross_entropy(a[0], a[1], a.ids); },
       [](auto& a) { return cross_entropy_loss(linear(a[0], a[1]), a.ids); }},
  };
});

}  // namespace
}  // namespace bench
