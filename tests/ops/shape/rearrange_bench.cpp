#include <xgrad/ops/shape/rearrange.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("rearrange", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"flip last axis", {{s.matrix}}, [](auto& a) { return flip(a[0], {1}); }},
      {"flip first axis", {{s.matrix}}, [](auto& a) { return flip(a[0], {0}); }},
      {"roll last axis", {{s.matrix}}, [](auto& a) { return roll(a[0], {3}, {1}); }},
      {"roll first axis", {{s.matrix}}, [](auto& a) { return roll(a[0], {3}, {0}); }},
      {"repeat",
       {{s.row}},
       [n = static_cast<std::int64_t>(s.rows)](auto& a) {
         return repeat(a[0], {n, 1});
       },
       [n = static_cast<std::int64_t>(s.rows)](auto& a) {
         return a[0].repeat({n, 1});
       }},
      {"pad",
       {{s.matrix}},
       [](auto& a) {
         return pad(a[0], {2, 2});
       },
       [](auto& a) {
         return constant_pad_nd(a[0], {2, 2});
       }},
  };
});

}  // namespace
}  // namespace bench
