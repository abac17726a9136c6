#include "int8_after_attention.hpp"

#include <algorithm>

#include "../../base/detail/system/parallel.hpp"
#include "../rows/layer_norm.hpp"
#include "../thread_memory.hpp"

namespace xgrad::kernels {
namespace {

constexpr std::size_t rows_through_layers = 48;

/// y = act(layer(x)) for x (rows, layer's columns).
void int8_layer(const Int8Layer& layer, const float* x, std::size_t rows, Int8Activation act, float* y) {
  const Int8Rows rounded({x, rows, layer.weight->cols()}, Int8Range::all);
  int8_linear_rows(rounded, *layer.weight, layer.bias, y, int8_instructions(), act);
}

/// y = norm(x + residual), which may be x.
void norm_of_sum(const Int8LayersNorm& norm, const float* x, const float* residual, std::size_t rows,
                 std::size_t cols, float* statistics, float* y) {
  layer_norm_rows<float>({rows, cols, x, residual, norm.weight, norm.bias}, norm.eps,
                         {statistics, statistics + rows}, y);
}

}  // namespace

void int8_after_attention_rows(const Int8AfterAttention& layers, const float* context, const float* x,
                               std::size_t rows, float* z) {
  const std::size_t in = layers.out.weight->cols(), width = layers.out.weight->rows();
  const std::size_t inner_width = layers.up.weight->rows();
  // few rows for many threads are divided in each layer
  const std::size_t grain =
      rows < rows_through_layers * available_threads() ? std::max<std::size_t>(rows, 1) : rows_through_layers;
  parallel_chunks(rows, grain, [&](std::size_t begin, std::size_t end, std::size_t) {
    struct BetweenLayers;
    const std::size_t count = end - begin;
    float* const y = thread_memory<float, BetweenLayers>(count * (2 * width + inner_width + 2));
    float *const sum = y + count * width, *const inner = sum + count * width;
    float* const statistics = inner + count * inner_width;
    int8_layer(layers.out, context + begin * in, count, Int8Activation::none, sum);
    norm_of_sum(layers.norm1, sum, x + begin * width, count, width, statistics, y);
    int8_layer(layers.up, y, count, Int8Activation::gelu, inner);
    int8_layer(layers.down, inner, count, Int8Activation::none, sum);
    norm_of_sum(layers.norm2, sum, y, count, width, statistics, z + begin * width);
  });
}

}  // namespace xgrad::kernels
