#include <xgrad/ops/reduce/scans.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("scans", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"cumsum", {{s.flat}}, [](auto& a) { return cumsum(a[0], 0); }},
      {"cumsum over last axis", {{s.matrix}}, [](auto& a) { return cumsum(a[0], 1); }},
      {"cumsum over first axis", {{s.matrix}}, [](auto& a) { return cumsum(a[0], 0); }},
      {"cumprod over last axis", {{s.matrix, 0.9, 1.1}}, [](auto& a) { return cumprod(a[0], 1); }},
      {"cumprod over first axis", {{s.matrix, 0.9, 1.1}}, [](auto& a) { return cumprod(a[0], 0); }},
      {"logcumsumexp over last axis", {{s.matrix}}, [](auto& a) { return logcumsumexp(a[0], 1); }},
      {"logcumsumexp over first axis", {{s.matrix}}, [](auto& a) { return logcumsumexp(a[0], 0); }},
      {"cummax",
       {{s.matrix}},
       [](auto& a) { return cummax(a[0], 1).values; },
       [](auto& a) { return std::get<0>(a[0].cummax(1)); }},
  };
});

}  // namespace
}  // namespace bench
