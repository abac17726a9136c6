#include <xgrad/ops/pointwise/activations.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("activations", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"mish", {{s.flat}}, [](auto& a) { return mish(a[0]); }},
      {"hardswish", {{s.flat}}, [](auto& a) { return hardswish(a[0]); }},
      {"hardsigmoid", {{s.flat}}, [](auto& a) { return hardsigmoid(a[0]); }},
      {"hardtanh", {{s.flat}}, [](auto& a) { return hardtanh(a[0]); }},
      {"selu", {{s.flat}}, [](auto& a) { return selu(a[0]); }},
      {"celu", {{s.flat}}, [](auto& a) { return celu(a[0]); }},
  };
});

}  // namespace
}  // namespace bench
