#include <xgrad/ops/norm/softmax.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("softmax", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"softmax", {{s.matrix}}, [](auto& a) { return softmax(a[0], -1); }},
      {"log_softmax", {{s.matrix}}, [](auto& a) { return log_softmax(a[0], -1); }},
  };
});

}  // namespace
}  // namespace bench
