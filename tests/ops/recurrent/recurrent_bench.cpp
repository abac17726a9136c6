#include <xgrad/ops/recurrent/recurrent.hpp>

#include "../common/bench.hpp"

namespace bench {
namespace {

/// x (16, N, size) and the weights of one direction.
std::vector<Input> inputs(const Sizes& s, std::size_t gates) {
  const std::size_t sums = gates * s.columns;
  return {{{16, s.rows / 16 + 1, s.columns}},
          {{sums, s.columns}, -0.05, 0.05},
          {{sums, s.columns}, -0.05, 0.05},
          {{sums}},
          {{sums}}};
}

using Layers = std::vector<xgrad::RecurrentWeights<float>>;

Layers layer(const Arguments<xgrad::Variable<float>, Ids, Mask>& a) { return {{a[1], a[2], a[3], a[4]}}; }

#ifdef XGRAD_BENCH_LIBTORCH
torch::Tensor zero_state(const torch::Tensor& x) { return torch::zeros({1, x.size(1), x.size(2)}); }
#endif

const Rows rows("recurrent", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"rnn, 16 steps", inputs(s, 1), [](auto& a) { return xgrad::rnn(a[0], {}, layer(a)).output; },
       [](auto& a) {
         return std::get<0>(
             rnn_tanh(a[0], zero_state(a[0]), {a[1], a[2], a[3], a[4]}, true, 1, 0, true, false, false));
       }},
      {"gru, 16 steps", inputs(s, 3), [](auto& a) { return xgrad::gru(a[0], {}, layer(a)).output; },
       [](auto& a) {
         return std::get<0>(
             gru(a[0], zero_state(a[0]), {a[1], a[2], a[3], a[4]}, true, 1, 0, true, false, false));
       }},
      {"lstm, 16 steps", inputs(s, 4), [](auto& a) { return xgrad::lstm(a[0], {}, {}, layer(a)).output; },
       [](auto& a) {
         return std::get<0>(lstm(a[0], {zero_state(a[0]), zero_state(a[0])}, {a[1], a[2], a[3], a[4]}, true,
                                 1, 0, true, false, false));
       }},
  };
});

}  // namespace
}  // namespace bench
