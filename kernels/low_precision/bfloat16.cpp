#include "bfloat16.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/detail/system/pieces.hpp"
#include "../gemm/onednn_gemm.hpp"
#include "../gemm/transpose_square.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace xgrad::kernels {
namespace {

/// Two bfloat16 numbers, neighbours along k, the first in the lower half: instructions add both products.
using Pair = std::uint32_t;

// Tiles of C are as many numbers as fit in registers; their rows of A stay in the first cache level while all
// panels of B's block come from the second.
constexpr std::size_t tile_rows = bfloat16_rows, few_rows = 4, tile_cols = bfloat16_cols, block_rows = 96,
                      block_pairs = 512, block_cols = 256;
static_assert(block_rows % tile_rows == 0 && block_cols % tile_cols == 0);

struct BlockMemory {
  alignas(64) Pair a[block_rows * block_pairs], b[block_pairs * block_cols], lines[tile_cols * block_pairs];
};

BlockMemory& block_memory() {
  thread_local const auto memory = std::unique_ptr<BlockMemory>(new BlockMemory);
  return *memory;
}

XGRAD_INLINE Pair pair_of(float first, float second) {
  return rounded_bits(first) >> 16 | rounded_bits(second);
}

/// Lines of `depth` numbers, each contiguous in memory, as lines of pairs; 0 behind an odd number.
XGRAD_VECTORIZED(void, round_lines,
                 (const float* from, std::size_t ld, std::size_t lines, std::size_t depth, Pair* to),
                 (from, ld, lines, depth, to)) {
  const std::size_t whole = depth / 2;
  for (std::size_t l = 0; l < lines; ++l, from += ld) {
    XGRAD_INDEPENDENT
    for (std::size_t q = 0; q < whole; ++q) to[q] = pair_of(from[2 * q], from[2 * q + 1]);
    to += whole;
    if (depth % 2 != 0) *to++ = pair_of(from[depth - 1], 0);
  }
}

/// Lines beside each other in memory, whose numbers are ld apart: the first pair of every line, `width` with
/// the zeros behind the last, then their second pairs.
XGRAD_VECTORIZED(void, round_neighbours,
                 (const float* from, std::size_t ld, std::size_t lines, std::size_t depth, Pair* to,
                  std::size_t width),
                 (from, ld, lines, depth, to, width)) {
  for (std::size_t i = 0; i < depth; i += 2, from += 2 * ld, to += width) {
    if (i + 1 < depth) {
      XGRAD_INDEPENDENT
      for (std::size_t l = 0; l < lines; ++l) to[l] = pair_of(from[l], from[ld + l]);
    } else {
      XGRAD_INDEPENDENT
      for (std::size_t l = 0; l < lines; ++l) to[l] = pair_of(from[l], 0);
    }
    std::fill(to + lines, to + width, 0);
  }
}

/// Lines of pairs in the order of round_neighbours.
XGRAD_VECTORIZED(void, turn,
                 (const Pair* from, std::size_t lines, std::size_t pairs, Pair* to, std::size_t width),
                 (from, lines, pairs, to, width)) {
  const std::size_t square_lines = lines / 4 * 4, square_pairs = pairs / 4 * 4;
  for (std::size_t q = 0; q < square_pairs; q += 4) {
    for (std::size_t l = 0; l < square_lines; l += 4)
      transpose_square(from + l * pairs + q, pairs, to + q * width + l, width);
  }
  for (std::size_t q = 0; q < pairs; ++q, to += width) {
    for (std::size_t l = q < square_pairs ? square_lines : 0; l < lines; ++l) to[l] = from[l * pairs + q];
    std::fill(to + lines, to + width, 0);
  }
}

/// Where the pairs of a block of A are.
struct Rows {
  const Pair* data;
  std::size_t row, pair;  // how far apart rows are, and the pairs of one
};

/// c (rows, cols) = alpha times the products of some rows of A and a panel of B + beta c.
XGRAD_VECTORIZED(void, multiply_tile,
                 (std::size_t rows, std::size_t cols, float alpha, const Rows& a, const Pair* b,
                  std::size_t pairs, float beta, float* c, std::size_t ldc),
                 (rows, cols, alpha, a, b, pairs, beta, c, ldc)) {
  const auto first = [](Pair pair) XGRAD_INLINE_LAMBDA { return bit_cast<float>(pair << 16); };
  const auto second = [](Pair pair) XGRAD_INLINE_LAMBDA { return bit_cast<float>(pair & 0xffff0000); };
  float sums[tile_rows * tile_cols] = {};
  for (std::size_t q = 0; q < pairs; ++q, b += tile_cols) {
    for (std::size_t r = 0; r < rows; ++r) {
      const Pair x = a.data[r * a.row + q * a.pair];
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < tile_cols; ++i)
        sums[r * tile_cols + i] += second(x) * second(b[i]) + first(x) * first(b[i]);
    }
  }
  const float* sum = sums;
  for (std::size_t r = 0; r < rows; ++r, sum += tile_cols, c += ldc) {
    if (beta == 0) {
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < cols; ++i) c[i] = alpha * sum[i];
    } else {
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < cols; ++i) c[i] = alpha * sum[i] + beta * c[i];
    }
  }
}

/// What is done in one way by plain loops, and in another by instructions for bfloat16 numbers.
struct Kernels {
  decltype(&round_lines) lines;
  decltype(&round_neighbours) neighbours;
  decltype(&multiply_tile) multiply;
};

constexpr Kernels plain_kernels{round_lines, round_neighbours, multiply_tile};

#if defined(__x86_64__)
#define XGRAD_WITH_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

constexpr std::size_t lanes = 16;

/// The mask of the first `count` lanes; of all if `count` is larger.
XGRAD_INLINE XGRAD_WITH_BFLOAT16 __mmask16 lanes_of(std::size_t count) {
  return static_cast<__mmask16>((std::uint32_t{1} << std::min(count, lanes)) - 1);
}

/// The rounded numbers of `first`, then those of `second`.
XGRAD_INLINE XGRAD_WITH_BFLOAT16 __m512i rounded(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

// Whole vectors are stored without a mask: with one a store takes several times as long on AMD's processors.

XGRAD_WITH_BFLOAT16 void round_lines_in_vectors(const float* from, std::size_t ld, std::size_t lines,
                                                std::size_t depth, Pair* to) {
  const std::size_t pairs = ceil_div(depth, 2);
  for (std::size_t l = 0; l < lines; ++l, from += ld, to += pairs) {
    std::size_t q = 0;
    for (; 2 * (q + lanes) <= depth; q += lanes) {
      _mm512_storeu_si512(to + q,
                          rounded(_mm512_loadu_ps(from + 2 * q), _mm512_loadu_ps(from + 2 * q + lanes)));
    }
    if (q == pairs) continue;
    const std::size_t left = depth - 2 * q;
    const __m512 first = _mm512_maskz_loadu_ps(lanes_of(left), from + 2 * q);
    const __m512 second = _mm512_maskz_loadu_ps(lanes_of(left - std::min(left, lanes)), from + 2 * q + lanes);
    _mm512_mask_storeu_epi32(to + q, lanes_of(pairs - q), rounded(first, second));
  }
}

/// Places of what rounded() gives: of each number of `first`, and of the one of `second` behind it.
alignas(64) constexpr auto in_turns = [] {
  std::array<Pair, lanes> places{};
  for (std::uint32_t l = 0; l < lanes; ++l) places[l] = (lanes + l) << 16 | l;
  return places;
}();

XGRAD_WITH_BFLOAT16 void round_neighbours_in_vectors(const float* from, std::size_t ld, std::size_t lines,
                                                     std::size_t depth, Pair* to, std::size_t width) {
  const __m512i alternate = _mm512_load_si512(in_turns.data());
  for (std::size_t i = 0; i < depth; i += 2, from += 2 * ld, to += width) {
    const bool is_single = i + 1 == depth;
    std::size_t l = 0;
    for (; l + lanes <= lines; l += lanes) {
      const __m512 second = is_single ? _mm512_setzero_ps() : _mm512_loadu_ps(from + ld + l);
      const __m512i both = rounded(_mm512_loadu_ps(from + l), second);
      _mm512_storeu_si512(to + l, _mm512_permutexvar_epi16(alternate, both));
    }
    for (; l < width; l += lanes) {
      const __mmask16 there = lanes_of(lines - std::min(lines, l));
      const __m512 second = _mm512_maskz_loadu_ps(is_single ? 0 : there, from + ld + l);
      const __m512i both = rounded(_mm512_maskz_loadu_ps(there, from + l), second);
      _mm512_mask_storeu_epi32(to + l, lanes_of(width - l), _mm512_permutexvar_epi16(alternate, both));
    }
  }
}

template <std::size_t rows>
XGRAD_WITH_BFLOAT16 void multiply_rows(std::size_t cols, float alpha, const Rows& a, const Pair* b,
                                       std::size_t pairs, float beta, float* c, std::size_t ldc) {
  __m512 left[rows], right[rows];
  for (std::size_t r = 0; r < rows; ++r) left[r] = right[r] = _mm512_setzero_ps();
  for (std::size_t q = 0; q < pairs; ++q, b += tile_cols) {
    const auto b_left = reinterpret_cast<__m512bh>(_mm512_load_si512(b));
    const auto b_right = reinterpret_cast<__m512bh>(_mm512_load_si512(b + lanes));
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
      const Pair x = a.data[r * a.row + q * a.pair];
      __m512i repeated = _mm512_set1_epi32(static_cast<int>(x));
#if defined(__clang__)
      asm("" : "+v"(repeated));  // clang 16 crashes when it turns a broadcast into bfloat16 numbers
#endif
      const auto same = reinterpret_cast<__m512bh>(repeated);
      left[r] = _mm512_dpbf16_ps(left[r], same, b_left);
      right[r] = _mm512_dpbf16_ps(right[r], same, b_right);
    }
  }
  const __m512 alphas = _mm512_set1_ps(alpha), betas = _mm512_set1_ps(beta);
  const __mmask16 in_left = lanes_of(cols), in_right = lanes_of(cols - std::min(cols, lanes));
#pragma GCC unroll 16
  for (std::size_t r = 0; r < rows; ++r, c += ldc) {
    left[r] = _mm512_mul_ps(alphas, left[r]);
    right[r] = _mm512_mul_ps(alphas, right[r]);
    if (beta != 0) {
      left[r] = _mm512_fmadd_ps(betas, _mm512_maskz_loadu_ps(in_left, c), left[r]);
      right[r] = _mm512_fmadd_ps(betas, _mm512_maskz_loadu_ps(in_right, c + lanes), right[r]);
    }
    if (cols == tile_cols) {
      _mm512_storeu_ps(c, left[r]);
      _mm512_storeu_ps(c + lanes, right[r]);
    } else {
      _mm512_mask_storeu_ps(c, in_left, left[r]);
      _mm512_mask_storeu_ps(c + lanes, in_right, right[r]);
    }
  }
}

void multiply_tile_in_vectors(std::size_t rows, std::size_t cols, float alpha, const Rows& a, const Pair* b,
                              std::size_t pairs, float beta, float* c, std::size_t ldc) {
  if (rows == tile_rows) return multiply_rows<tile_rows>(cols, alpha, a, b, pairs, beta, c, ldc);
  if (rows == few_rows) return multiply_rows<few_rows>(cols, alpha, a, b, pairs, beta, c, ldc);
  multiply_rows<1>(cols, alpha, a, b, pairs, beta, c, ldc);
}

constexpr Kernels vector_kernels{round_lines_in_vectors, round_neighbours_in_vectors,
                                 multiply_tile_in_vectors};
#else
constexpr Kernels vector_kernels = plain_kernels;
#endif

Rows pack_rows(const Kernels& kernels, const Matrix<const float>& a, Pair* to) {
  if (a.transposed) {
    kernels.neighbours(a.data, a.stride, a.rows, a.cols, to, a.rows);
    return {to, 1, a.rows};
  }
  kernels.lines(a.data, a.stride, a.rows, a.cols, to);
  return {to, ceil_div(a.cols, 2), 1};
}

/// Panels of tile_cols columns.
void pack_columns(const Kernels& kernels, const Matrix<const float>& b, Pair* to, Pair* lines) {
  const std::size_t pairs = ceil_div(b.rows, 2);
  for (std::size_t left = 0; left < b.cols; left += tile_cols, to += pairs * tile_cols) {
    const Matrix<const float> panel = b.some_cols(left, std::min(tile_cols, b.cols - left));
    if (panel.transposed) {
      kernels.lines(panel.data, panel.stride, panel.cols, panel.rows, lines);
      turn(lines, panel.cols, pairs, to, tile_cols);
    } else {
      kernels.neighbours(panel.data, panel.stride, panel.cols, panel.rows, to, tile_cols);
    }
  }
}

/// A block of rows of C, of which those of A and the panels of B are packed.
void multiply_block(const Kernels& kernels, float alpha, const Rows& a, const Pair* b, std::size_t pairs,
                    float beta, const Matrix<float>& c) {
  for (std::size_t i = 0; i < c.rows;) {
    const std::size_t left = c.rows - i;
    const std::size_t rows = left >= tile_rows ? tile_rows : left >= few_rows ? few_rows : 1;
    for (std::size_t j = 0; j < c.cols; j += tile_cols) {
      kernels.multiply(rows, std::min(tile_cols, c.cols - j), alpha, {a.data + i * a.row, a.row, a.pair},
                       b + j * pairs, pairs, beta, c.data + i * c.stride + j, c.stride);
    }
    i += rows;
  }
}

}  // namespace

/// Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(from_bfloat16, n, 1, (const std::uint16_t* bits, T* values, std::size_t n),
                      (bits, values, n)) {
  XGRAD_INDEPENDENT
  for (std::size_t i = begin; i < end; ++i) values[i] = bit_cast<float>(std::uint32_t{bits[i]} << 16);
}

bool has_bfloat16_instructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

bool bfloat16_is_faster() {
#if defined(__x86_64__)
  static const bool vectors = __builtin_cpu_is("amd") && has_bfloat16_instructions();
#else
  constexpr bool vectors = false;
#endif
  return vectors || has_matrix_unit();
}

/// Bound by flops; rounding and packing take some tenth of it. What is packed serves no other product: its
/// pairs run along k, which is another axis of the same array in a layer's product and in those of its
/// gradients.
void bfloat16_gemm(float alpha, const Matrix<const float>& a, const Matrix<const float>& b, float beta,
                   const Matrix<float>& c, bool by_instructions) {
  const Kernels& kernels = by_instructions ? vector_kernels : plain_kernels;
  constexpr std::size_t block_depth = 2 * block_pairs;
  BlockMemory& memory = block_memory();
  for (std::size_t j = 0; j < c.cols; j += block_cols) {
    const std::size_t cols = std::min(block_cols, c.cols - j);
    for (std::size_t p = 0; p < a.cols; p += block_depth) {
      const std::size_t depth = std::min(block_depth, a.cols - p);
      pack_columns(kernels, b.some_rows(p, depth).some_cols(j, cols), memory.b, memory.lines);
      for (std::size_t i = 0; i < c.rows; i += block_rows) {
        const std::size_t rows = std::min(block_rows, c.rows - i);
        const Rows packed = pack_rows(kernels, a.some_rows(i, rows).some_cols(p, depth), memory.a);
        multiply_block(kernels, alpha, packed, memory.b, ceil_div(depth, 2), p == 0 ? beta : 1.0F,
                       c.some_rows(i, rows).some_cols(j, cols));
      }
    }
  }
}

}  // namespace xgrad::kernels
