#include <xgrad/ops/product/bfloat16_linear.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("bfloat16_linear", [](const Sizes& s) -> std::vector<Row> {
  const xgrad::Bfloat16Weight weight(Array<float>(Shape{s.columns, s.columns}, 0.5F));
  return {
      {"bfloat16_linear", {{s.matrix}}, [weight](auto& a) { return bfloat16_linear(a[0], weight); }},
  };
});

}  // namespace
}  // namespace bench
