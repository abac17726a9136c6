#include <xgrad/ops/loss/cross_entropy.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("cross_entropy", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"cross_entropy",
       {{s.matrix}},
       [](auto& a) { return cross_entropy(a[0], a.ids); },
       [](auto& a) { return cross_entropy_loss(a[0], a.ids); }},
      {"cross_entropy weights, smoothing",
       {{s.matrix}, positive(s.row)},
       [](auto& a) { return cross_entropy(a[0], a.ids, {.weight = a[1].detach(), .label_smoothing = 0.1}); },
       [](auto& a) {
         return cross_entropy_loss(a[0], a.ids, a[1].detach(), /*reduction: mean*/ 1, -100, 0.1);
       }},
      {"cross_entropy probabilities",
       {{s.matrix}, positive(s.matrix)},
       [](auto& a) { return cross_entropy(a[0], a[1].detach()); },
       [](auto& a) { return cross_entropy_loss(a[0], a[1].detach()); }},
  };
});

}  // namespace
}  // namespace bench
