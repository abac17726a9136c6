#include <xgrad/ops/index/indexing.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("indexing", [](const Sizes& s) -> std::vector<Row> {
  const auto half = static_cast<std::ptrdiff_t>(s.columns / 2);
  return {
      {"narrow",
       {{s.matrix}},
       [=](auto& a) { return narrow(a[0], 1, 1, half); },
       [=](auto& a) { return narrow(a[0], 1, 1, half).contiguous(); }},
      {"slice",
       {{s.matrix}},
       [=](auto& a) { return slice(a[0], 1, 0, half); },
       [=](auto& a) { return slice(a[0], 1, 0, half).contiguous(); }},
      {"select",
       {{{s.rows, 2, s.columns / 2}}},
       [](auto& a) { return select(a[0], 1, 1); },
       [](auto& a) { return select(a[0], 1, 1).contiguous(); }},
      {"index_select first axis",
       {{{s.columns, s.columns}}},
       [](auto& a) { return index_select(a[0], 0, a.ids); }},
      {"index_select last axis", {{s.matrix}}, [](auto& a) { return index_select(a[0], 1, a.ids); }},
      {"gather", {{s.matrix}}, [](auto& a) { return gather(a[0], 1, a.index); }},
      {"index",
       {{s.matrix}},
       [=](auto& a) { return index(a[0], xgrad::range(1), xgrad::range(1, half)); },
       [=](auto& a) { return a[0].slice(0, 1).slice(1, 1, half).contiguous(); }},
  };
});

}  // namespace
}  // namespace bench
