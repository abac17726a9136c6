#include <xgrad/ops/index/scatter.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("scatter", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"scatter_add", {{s.matrix}, {s.matrix}}, [](auto& a) { return scatter_add(a[0], 1, a.index, a[1]); }},
      {"index_add first axis",
       {{{s.columns, s.columns}}, {s.matrix}},
       [](auto& a) { return index_add(a[0], 0, a.ids, a[1]); }},
      {"index_put",
       {{{s.columns, s.columns}}, {s.matrix}},
       [](auto& a) { return index_put(a[0], {a.ids}, a[1], {.accumulate = true}); },
       [](auto& a) { return a[0].index_put({a.ids}, a[1], true); }},
      {"masked_select", {{s.matrix}}, [](auto& a) { return masked_select(a[0], a.mask); }},
      {"scatter", {{s.matrix}, {s.matrix}}, [](auto& a) { return scatter(a[0], 1, a.index, a[1]); }},
      {"scatter_reduce, amax",
       {{s.matrix}, {s.matrix}},
       [](auto& a) { return scatter_reduce(a[0], 1, a.index, a[1], xgrad::ScatterReduction::amax); },
       [](auto& a) { return a[0].scatter_reduce(1, a.index, a[1], "amax"); }},
  };
});

}  // namespace
}  // namespace bench
