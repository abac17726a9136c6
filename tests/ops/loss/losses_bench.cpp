#include <xgrad/ops/loss/losses.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("losses", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"mse_loss", {{s.flat}, {s.flat}}, [](auto& a) { return mse_loss(a[0], a[1]); }},
      {"l1_loss", {{s.flat}, {s.flat}}, [](auto& a) { return l1_loss(a[0], a[1]); }},
      {"huber_loss", {{s.flat}, {s.flat}}, [](auto& a) { return huber_loss(a[0], a[1]); }},
      {"smooth_l1_loss", {{s.flat}, {s.flat}}, [](auto& a) { return smooth_l1_loss(a[0], a[1]); }},
      {"kl_div", {{s.flat}, positive(s.flat)}, [](auto& a) { return kl_div(a[0], a[1]); }},
      {"binary_cross_entropy",
       {{s.flat, 0.1, 0.9}, {s.flat}},
       [](auto& a) { return binary_cross_entropy(a[0], a[1]); }},
      {"binary_cross_entropy_with_logits",
       {{s.flat}, {s.flat}},
       [](auto& a) { return binary_cross_entropy_with_logits(a[0], a[1]); }},
      {"nll_loss", {{s.matrix}}, [](auto& a) { return nll_loss(a[0], a.ids); }},
  };
});

}  // namespace
}  // namespace bench
