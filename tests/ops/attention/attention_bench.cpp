#include <xgrad/ops/attention/attention.hpp>

#include <limits>

#include "../common/bench.hpp"

namespace bench {
namespace {

const Rows rows("attention", [](const Sizes& s) -> std::vector<Row> {
  const std::size_t key = std::min<std::size_t>(s.columns, 64),
                    length = std::min<std::size_t>(s.n / key, 500);
  const Shape queries{s.n / (length * key), length, key};
  return {
      {"scaled_dot_product_attention",
       {{queries}, {queries}, {queries}},
       [](auto& a) { return scaled_dot_product_attention(a[0], a[1], a[2]); },
       [scale = 1 / std::sqrt(static_cast<double>(key))](auto& a) {
         return matmul(softmax(matmul(a[0] * scale, a[1].transpose(-2, -1)), -1), a[2]);
       }},
      {"scaled_dot_product_attention, causal",
       {{queries}, {queries}, {queries}},
       [](auto& a) { return scaled_dot_product_attention(a[0], a[1], a[2], {}, {.is_causal = true}); },
       [scale = 1 / std::sqrt(static_cast<double>(key))](auto& a) {
         const auto scores = matmul(a[0] * scale, a[1].transpose(-2, -1));
         const auto seen = scores.new_ones({scores.size(-2), scores.size(-1)}).tril();
         return matmul(softmax(scores.masked_fill(seen == 0, -std::numeric_limits<float>::infinity()), -1),
                       a[2]);
       }},
      {"scaled_dot_product_attention, dropout 0.1",
       {{queries}, {queries}, {queries}},
       [](auto& a) { return scaled_dot_product_attention(a[0], a[1], a[2], {}, {.dropout_p = 0.1}); },
       [scale = 1 / std::sqrt(static_cast<double>(key))](auto& a) {
         return matmul(dropout(softmax(matmul(a[0] * scale, a[1].transpose(-2, -1)), -1), 0.1), a[2]);
       }},
  };
});

}  // namespace
}  // namespace bench
