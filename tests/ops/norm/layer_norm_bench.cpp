#include <xgrad/ops/norm/layer_norm.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("layer_norm", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"layer_norm",
       {{s.matrix}, {s.row}, {s.row}},
       [](auto& a) { return layer_norm(a[0], a[1].shape(), a[1], a[2]); },
       [](auto& a) { return layer_norm(a[0], a[1].sizes(), a[1], a[2]); }},
  };
});

}  // namespace
}  // namespace bench
