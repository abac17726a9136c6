#include <xgrad/ops/pointwise/logarithms.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("logarithms", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"exp2", {{s.flat}}, [](auto& a) { return exp2(a[0]); }},
      {"expm1", {{s.flat}}, [](auto& a) { return expm1(a[0]); }},
      {"log1p", {positive(s.flat)}, [](auto& a) { return log1p(a[0]); }},
      {"log2", {positive(s.flat)}, [](auto& a) { return log2(a[0]); }},
      {"log10", {positive(s.flat)}, [](auto& a) { return log10(a[0]); }},
      {"xlogy", {{s.flat}, positive(s.flat)}, [](auto& a) { return xlogy(a[0], a[1]); }},
      {"logaddexp", {{s.flat}, {s.flat}}, [](auto& a) { return logaddexp(a[0], a[1]); }},
  };
});

}  // namespace
}  // namespace bench
