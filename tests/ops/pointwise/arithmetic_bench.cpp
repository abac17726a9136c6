#include <xgrad/ops/pointwise/arithmetic.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("arithmetic", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"add", {{s.flat}, {s.flat}}, [](auto& a) { return add(a[0], a[1]); }},
      {"sub", {{s.flat}, {s.flat}}, [](auto& a) { return sub(a[0], a[1]); }},
      {"mul", {{s.flat}, {s.flat}}, [](auto& a) { return mul(a[0], a[1]); }},
      {"div", {{s.flat}, positive(s.flat)}, [](auto& a) { return div(a[0], a[1]); }},
      {"pow", {positive(s.flat), {s.flat}}, [](auto& a) { return pow(a[0], a[1]); }},
      {"pow 3", {{s.flat}}, [](auto& a) { return pow(a[0], 3); }},
      {"maximum", {{s.flat}, {s.flat}}, [](auto& a) { return maximum(a[0], a[1]); }},
      {"minimum", {{s.flat}, {s.flat}}, [](auto& a) { return minimum(a[0], a[1]); }},
      {"add a row", {{s.matrix}, {s.row}}, [](auto& a) { return add(a[0], a[1]); }},
      {"add a column", {{s.matrix}, {{s.rows, 1}}}, [](auto& a) { return add(a[0], a[1]); }},
      {"hypot", {{s.flat}, {s.flat}}, [](auto& a) { return hypot(a[0], a[1]); }},
      {"lerp", {{s.flat}, {s.flat}, {s.flat}}, [](auto& a) { return lerp(a[0], a[1], a[2]); }},
  };
});

}  // namespace
}  // namespace bench
