#include <xgrad/ops/index/embedding.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("embedding", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"embedding",
       {{{s.columns, s.columns}}},
       [](auto& a) { return embedding(a.ids, a[0]); },
       [](auto& a) { return embedding(a[0], a.ids); }},
  };
});

}  // namespace
}  // namespace bench
