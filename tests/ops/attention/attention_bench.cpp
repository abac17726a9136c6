#include <xgrad/ops/attention/attention.hpp>

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
