#include <xgrad/ops/pointwise/gated.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("gated", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"gated, silu",
       {{s.flat}, {s.flat}},
       [](auto& a) { return gated(a[0], a[1], xgrad::Gate::silu); },
       [](auto& a) { return silu(a[0]) * a[1]; }},
      {"gated, gelu",
       {{s.flat}, {s.flat}},
       [](auto& a) { return gated(a[0], a[1], xgrad::Gate::gelu); },
       [](auto& a) { return gelu(a[0]) * a[1]; }},
  };
});

}  // namespace
}  // namespace bench
