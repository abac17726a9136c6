#include "onednn_gemm.hpp"

#ifdef XGRAD_WITH_ONEDNN
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include <dnnl.hpp>

#include "../../base/detail/system/openmp.hpp"
#include "../../base/detail/system/pieces.hpp"
#include "../low_precision/bfloat16.hpp"

namespace xgrad::kernels {
namespace {

using Bfloat16 = std::uint16_t;

constexpr std::size_t block_depth = 1024;

/// A tile of A and a block of B.
struct RoundedMemory {
  alignas(64) Bfloat16 a[onednn_rows * block_depth], b[block_depth * onednn_cols];
};

RoundedMemory& rounded_memory() {
  thread_local const std::unique_ptr<RoundedMemory> memory(new RoundedMemory);
  return *memory;
}

XGRAD_VECTORIZED(void, round_line, (const float* x, std::size_t n, Bfloat16* y), (x, n, y)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<Bfloat16>(rounded_bits(x[i]) >> 16);
}

/// How far apart rows of A lie. oneDNN 3.7 multiplies what lies behind a row, up to a multiple of 32 numbers,
/// by 0: zeros, as the next row may be infinite.
std::size_t padded(std::size_t depth) { return ceil_div(depth, 32) * 32; }
static_assert(block_depth % 32 == 0);

/// The lines that are contiguous in memory, `stride` apart, with zeros between.
void round_matrix(const Matrix<const float>& matrix, std::size_t stride, Bfloat16* rounded) {
  const std::size_t lines = matrix.transposed ? matrix.cols : matrix.rows;
  const std::size_t length = matrix.transposed ? matrix.rows : matrix.cols;
  for (std::size_t l = 0; l < lines; ++l) {
    Bfloat16* const line = rounded + l * stride;
    round_line(matrix.data + l * matrix.stride, length, line);
    std::fill(line + length, line + stride, Bfloat16{0});
  }
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// What oneDNN compiles a product for: c (m, n) = alpha a b + beta c.
struct Product {
  std::size_t m, n, k, stride;
  bool trans_a, trans_b;
  float alpha, beta;

  auto operator<=>(const Product&) const = default;
};

dnnl::memory::desc rounded_layout(std::size_t rows, std::size_t cols, std::size_t stride, bool transposed) {
  using dnnl::memory;
  const auto apart = static_cast<memory::dim>(stride);
  return {{static_cast<memory::dim>(rows), static_cast<memory::dim>(cols)},
          memory::data_type::bf16,
          transposed ? memory::dims{1, apart} : memory::dims{apart, 1}};
}

/// A compiled product with what it reads and writes, which each call sets.
class Compiled {
 public:
  explicit Compiled(const Product& product)
      : a_(rounded_layout(product.m, product.k, product.trans_a ? product.m : padded(product.k),
                          product.trans_a),
           engine(), nullptr),
        b_(rounded_layout(product.k, product.n, product.trans_b ? product.k : product.n, product.trans_b),
           engine(), nullptr),
        c_({{static_cast<dnnl::memory::dim>(product.m), static_cast<dnnl::memory::dim>(product.n)},
            dnnl::memory::data_type::f32,
            dnnl::memory::dims{static_cast<dnnl::memory::dim>(product.stride), 1}},
           engine(), nullptr) {
    dnnl::post_ops after;
    dnnl::primitive_attr attributes;
    const auto a = a_.get_desc(), b = b_.get_desc(), c = c_.get_desc();
#if DNNL_VERSION_MAJOR >= 3
    if (product.alpha != 1) after.append_eltwise(dnnl::algorithm::eltwise_linear, product.alpha, 0);
#else  // where a function before a sum is computed by plain loops
    if (product.alpha != 1) attributes.set_output_scales(0, {product.alpha});
#endif
    if (product.beta != 0) after.append_sum(product.beta);
    attributes.set_post_ops(after);
#if DNNL_VERSION_MAJOR >= 3
    multiply_ = dnnl::matmul(dnnl::matmul::primitive_desc(engine(), a, b, c, attributes));
#else
    multiply_ = dnnl::matmul(dnnl::matmul::primitive_desc({a, b, c}, attributes, engine()));
#endif
  }

  void operator()(dnnl::stream& stream, Bfloat16* a, Bfloat16* b, float* c) {
    a_.set_data_handle(a);
    b_.set_data_handle(b);
    c_.set_data_handle(c);
    multiply_.execute(stream, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}});
  }

 private:
  dnnl::memory a_, b_, c_;
  dnnl::matmul multiply_;
};

/// Compiled once in a thread.
Compiled& compiled(const Product& product) {
  constexpr std::size_t most_products = 512;
  thread_local std::map<Product, Compiled> known;
  if (const auto found = known.find(product); found != known.end()) return found->second;
  if (known.size() >= most_products) known.clear();
  return known.try_emplace(product, product).first->second;
}

}  // namespace

bool has_onednn() { return true; }

bool has_matrix_unit() {
  constexpr auto amx = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);  // and newer ones have its bits
  static const bool found = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & amx) == amx;
  return found;
}

/// Bound by flops; rounding takes some tenth of it beside a matrix unit.
void onednn_gemm(float alpha, const Matrix<const float>& a, const Matrix<const float>& b, float beta,
                 const Matrix<float>& c) {
  thread_local dnnl::stream stream(engine());
  const OneOpenMpThread alone;
  RoundedMemory& memory = rounded_memory();
  for (std::size_t j = 0; j < c.cols; j += onednn_cols) {
    const std::size_t cols = std::min(onednn_cols, c.cols - j);
    for (std::size_t p = 0; p < a.cols; p += block_depth) {
      const std::size_t depth = std::min(block_depth, a.cols - p);
      round_matrix(b.some_rows(p, depth).some_cols(j, cols), b.transposed ? depth : cols, memory.b);
      for (std::size_t i = 0; i < c.rows; i += onednn_rows) {
        const std::size_t rows = std::min(onednn_rows, c.rows - i);
        round_matrix(a.some_rows(i, rows).some_cols(p, depth), a.transposed ? rows : padded(depth), memory.a);
        float* const tile = c.data + i * c.stride + j;
        const Product product{rows,         cols,         depth, c.stride,
                              a.transposed, b.transposed, alpha, p == 0 ? beta : 1};
        compiled(product)(stream, memory.a, memory.b, tile);
      }
    }
  }
}

}  // namespace xgrad::kernels

#else

#include <stdexcept>

namespace xgrad::kernels {

bool has_onednn() { return false; }

bool has_matrix_unit() { return false; }

void onednn_gemm(float, const Matrix<const float>&, const Matrix<const float>&, float, const Matrix<float>&) {
  throw std::logic_error("onednn_gemm: the library was built without oneDNN");
}

}  // namespace xgrad::kernels
#endif
