#include <xgrad/ops/pointwise/special.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("special", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"lgamma", {positive(s.flat)}, [](auto& a) { return lgamma(a[0]); }},
      {"digamma", {positive(s.flat)}, [](auto& a) { return digamma(a[0]); }},
      {"polygamma", {positive(s.flat)}, [](auto& a) { return polygamma(1, a[0]); }},
      {"erfc", {{s.flat}}, [](auto& a) { return erfc(a[0]); }},
      {"erfinv", {{s.flat, -0.9, 0.9}}, [](auto& a) { return erfinv(a[0]); }},
  };
});

}  // namespace
}  // namespace bench
