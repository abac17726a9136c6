#include <xgrad/ops/pointwise/rounding.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("rounding", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"floor", {{s.flat}}, [](auto& a) { return floor(a[0]); }},
      {"ceil", {{s.flat}}, [](auto& a) { return ceil(a[0]); }},
      {"round", {{s.flat}}, [](auto& a) { return round(a[0]); }},
      {"trunc", {{s.flat}}, [](auto& a) { return trunc(a[0]); }},
      {"sign", {{s.flat}}, [](auto& a) { return sign(a[0]); }},
      {"fmod", {{s.flat}, positive(s.flat)}, [](auto& a) { return fmod(a[0], a[1]); }},
      {"remainder", {{s.flat}, positive(s.flat)}, [](auto& a) { return remainder(a[0], a[1]); }},
  };
});

}  // namespace
}  // namespace bench
