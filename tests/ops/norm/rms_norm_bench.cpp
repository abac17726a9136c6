#include <xgrad/ops/norm/rms_norm.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("rms_norm", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"rms_norm",
       {{s.matrix}, {s.row}},
       [](auto& a) { return rms_norm(a[0], a[1].shape(), a[1], {.eps = 1e-6}); },
       [](auto& a) { return a[0] * rsqrt(a[0].square().mean(-1, true) + 1e-6) * a[1]; }},
  };
});

}  // namespace
}  // namespace bench
