#include <xgrad/ops/reduce/sorting.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("sorting", [](const Sizes& s) -> std::vector<Row> {
  const auto values = [](const auto& ranked) { return std::get<0>(ranked); };
  const auto k = static_cast<std::ptrdiff_t>(s.columns / 10);
  return {
      {"max with indices, last axis",
       {{s.matrix}},
       [](auto& a) { return max(a[0], 1).values; },
       [=](auto& a) { return values(a[0].max(1)); }},
      {"max with indices, first axis",
       {{s.matrix}},
       [](auto& a) { return max(a[0], 0).values; },
       [=](auto& a) { return values(a[0].max(0)); }},
      {"sort last axis",
       {{s.matrix}},
       [](auto& a) { return sort(a[0], 1).values; },
       [=](auto& a) { return values(a[0].sort(1)); }},
      {"sort first axis",
       {{s.matrix}},
       [](auto& a) { return sort(a[0], 0).values; },
       [=](auto& a) { return values(a[0].sort(0)); }},
      {"topk",
       {{s.matrix}},
       [=](auto& a) { return topk(a[0], k).values; },
       [=](auto& a) { return values(a[0].topk(k)); }},
  };
});

}  // namespace
}  // namespace bench
