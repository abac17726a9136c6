#include <xgrad/ops/product/linear.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("bfloat16_linear", [](const Sizes& s) -> std::vector<Row> {
  const auto weight = xgrad::Weight<float>::bfloat16(Array<float>(Shape{s.columns, s.columns}, 0.5F));
  return {
      {"bfloat16_linear", {{s.matrix}}, [weight](auto& a) { return linear(a[0], weight); }},
  };
});

}  // namespace
}  // namespace bench
