#include <xgrad/ops/attention/qkv_attention.hpp>

#include <limits>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("qkv_attention", [](const Sizes& s) -> std::vector<Row> {
  const std::size_t key = std::min<std::size_t>(s.columns, 64),
                    length = std::min<std::size_t>(s.n / key, 500);
  const auto key_columns = static_cast<std::int64_t>(key);
  return {
      {"qkv_attention, causal",
       {{{s.n / (length * key), length, 3 * key}}},
       [](auto& a) { return qkv_attention(a[0], {}, {.is_causal = true}); },
       [key_columns, scale = 1 / std::sqrt(static_cast<double>(key))](auto& a) {
         const auto parts = a[0].split(key_columns, -1);
         auto scores = matmul(parts[0] * scale, parts[1].transpose(-2, -1));
         scores = scores.masked_fill(scores.new_ones({scores.size(-2), scores.size(-1)}).tril() == 0,
                                     -std::numeric_limits<float>::infinity());
         return matmul(softmax(scores, -1), parts[2]);
       }},
  };
});

}  // namespace
}  // namespace bench
