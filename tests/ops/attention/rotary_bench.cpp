#include <xgrad/ops/attention/rotary.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("rotary", [](const Sizes& s) -> std::vector<Row> {
  const std::size_t width = s.columns / 2 * 2;
  const Shape x{s.rows, width}, angles{s.rows, width / 2};
  return {
      {"rotary",
       {{x}, {angles}, {angles}},
       [](auto& a) { return rotary(a[0], a[1], a[2]); },
       [](auto& a) {
         const auto halves = a[0].chunk(2, -1);
         return cat({halves[0] * a[1] - halves[1] * a[2], halves[1] * a[1] + halves[0] * a[2]}, -1);
       }},
  };
});

}  // namespace
}  // namespace bench
