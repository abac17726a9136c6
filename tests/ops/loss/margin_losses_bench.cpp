#include <xgrad/ops/loss/margin_losses.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("margin_losses", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"margin_ranking_loss",
       {{s.flat}, {s.flat}, {s.flat}},
       [](auto& a) { return margin_ranking_loss(a[0], a[1], a[2]); }},
      {"soft_margin_loss", {{s.flat}, {s.flat}}, [](auto& a) { return soft_margin_loss(a[0], a[1]); }},
      {"triplet_margin_loss",
       {{s.matrix}, {s.matrix}, {s.matrix}},
       [](auto& a) { return triplet_margin_loss(a[0], a[1], a[2]); }},
  };
});

}  // namespace
}  // namespace bench
