#include <xgrad/ops/linalg/triangle.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("triangle", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"tril", {{s.matrix}}, [](auto& a) { return tril(a[0]); }},
      {"triu", {{s.matrix}}, [](auto& a) { return triu(a[0]); }},
  };
});

}  // namespace
}  // namespace bench
