#include <xgrad/ops/pointwise/dropout.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("dropout", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"dropout 0.1", {{s.flat}}, [](auto& a) { return dropout(a[0], 0.1); }},
  };
});

}  // namespace
}  // namespace bench
