#include <xgrad/ops/shape/shapes.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("shapes", [](const Sizes& s) -> std::vector<Row> {
  const std::size_t heads = std::max<std::size_t>(integer_root(s.columns * 2 / 5), 1),
                    width = s.columns / heads;
  const Shape split_heads{std::max<std::size_t>(s.rows / width, 1), width, heads, width};
  const auto half = static_cast<std::ptrdiff_t>(s.columns / 2);
  return {
      {"reshape",
       {{s.flat}},
       [=](auto& a) { return reshape(a[0], s.matrix); },
       [rows = static_cast<std::int64_t>(s.rows)](auto& a) {
         return reshape(a[0], {rows, -1}).clone();
       }},
      {"flatten",
       {{s.matrix}},
       [](auto& a) { return flatten(a[0]); },
       [](auto& a) { return flatten(a[0]).clone(); }},
      {"unsqueeze",
       {{s.matrix}},
       [](auto& a) { return unsqueeze(a[0], 1); },
       [](auto& a) { return unsqueeze(a[0], 1).clone(); }},
      {"squeeze",
       {{{s.rows, 1, s.columns}}},
       [](auto& a) { return squeeze(a[0], 1); },
       [](auto& a) { return squeeze(a[0], 1).clone(); }},
      {"expand a row",
       {{s.row}},
       [=](auto& a) { return expand(a[0], s.matrix); },
       [rows = static_cast<std::int64_t>(s.rows)](auto& a) {
         return a[0].expand({rows, -1}).contiguous();
       }},
      {"expand a column",
       {{{s.rows, 1}}},
       [=](auto& a) { return expand(a[0], s.matrix); },
       [columns = static_cast<std::int64_t>(s.columns)](auto& a) {
         return a[0].expand({-1, columns}).contiguous();
       }},
      {"mT", {{s.matrix}}, [](auto& a) { return mT(a[0]); }, [](auto& a) { return a[0].mT().contiguous(); }},
      {"transpose",
       {{s.matrix}},
       [](auto& a) { return transpose(a[0], 0, 1); },
       [](auto& a) { return transpose(a[0], 0, 1).contiguous(); }},
      {"permute 0 2 1 3",
       {{split_heads}},
       [](auto& a) {
         return permute(a[0], {0, 2, 1, 3});
       },
       [](auto& a) {
         return permute(a[0], {0, 2, 1, 3}).contiguous();
       }},
      {"permute 3 2 1 0",
       {{split_heads}},
       [](auto& a) {
         return permute(a[0], {3, 2, 1, 0});
       },
       [](auto& a) {
         return permute(a[0], {3, 2, 1, 0}).contiguous();
       }},
      {"cat first axis", {{s.matrix}, {s.matrix}}, [](auto& a) { return cat(a.x, 0); }},
      {"cat last axis", {{s.matrix}, {s.matrix}}, [](auto& a) { return cat(a.x, -1); }},
      {"stack", {{s.matrix}, {s.matrix}}, [](auto& a) { return stack(a.x); }},
      {"split",
       {{s.matrix}},
       [=](auto& a) { return split(a[0], half, 1).back(); },
       [=](auto& a) {
         auto parts = split(a[0], half, 1);
         for (auto& part : parts) part = part.contiguous();
         return parts.back();
       }},
  };
});

}  // namespace
}  // namespace bench
