#include <xgrad/ops/pointwise/trigonometry.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("trigonometry", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"sin", {{s.flat}}, [](auto& a) { return sin(a[0]); }},
      {"cos", {{s.flat}}, [](auto& a) { return cos(a[0]); }},
      {"tan", {{s.flat}}, [](auto& a) { return tan(a[0]); }},
      {"asin", {{s.flat, -0.9, 0.9}}, [](auto& a) { return asin(a[0]); }},
      {"acos", {{s.flat, -0.9, 0.9}}, [](auto& a) { return acos(a[0]); }},
      {"atan", {{s.flat}}, [](auto& a) { return atan(a[0]); }},
      {"atan2", {{s.flat}, {s.flat}}, [](auto& a) { return atan2(a[0], a[1]); }},
      {"sinh", {{s.flat}}, [](auto& a) { return sinh(a[0]); }},
      {"cosh", {{s.flat}}, [](auto& a) { return cosh(a[0]); }},
      {"asinh", {{s.flat}}, [](auto& a) { return asinh(a[0]); }},
      {"acosh", {{s.flat, 1.1, 9}}, [](auto& a) { return acosh(a[0]); }},
      {"atanh", {{s.flat, -0.9, 0.9}}, [](auto& a) { return atanh(a[0]); }},
  };
});

}  // namespace
}  // namespace bench
