#include "int8.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/detail/system/pieces.hpp"
#include "../lanes.hpp"
#include "../pointwise/vectorized_math.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace xgrad::kernels {
namespace {

constexpr std::size_t int8_group = Int8Matrix::group, int8_tile_cols = Int8Matrix::panel_rows,
                      int8_tile_rows = 12, int8_block_rows = 10 * int8_tile_rows;
constexpr std::int32_t int8_zero = 128;  // what 0 is in a symmetric range

/// How far numbers are above and below 0; nan for both if one of them is not finite.
struct Extent {
  float above, below;
};

XGRAD_INLINE Extent extent_of(const float* x, std::size_t n) {
  constexpr std::size_t lanes = 32, least_lanes = 8;
  float above[lanes] = {}, below[lanes] = {}, nothing[lanes] = {};
  const auto take = [&](std::size_t lane, float high, float low, float none) XGRAD_INLINE_LAMBDA {
    above[lane] = high > above[lane] ? high : above[lane];
    below[lane] = low < below[lane] ? low : below[lane];
    nothing[lane] += none;
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
#pragma GCC unroll 1  // a loop that is unrolled before it is vectorised stays scalar
    for (std::size_t l = 0; l < lanes; ++l) take(l, x[i + l], x[i + l], x[i + l] * 0);
  }
  for (std::size_t width = lanes / 2; width >= least_lanes; width /= 2) {
#pragma GCC unroll 1
    for (std::size_t l = 0; l < width; ++l) take(l, above[l + width], below[l + width], nothing[l + width]);
  }
  for (std::size_t l = 1; l < least_lanes; ++l) take(0, above[l], below[l], nothing[l]);
  for (; i < n; ++i) take(0, x[i], x[i], x[i] * 0);
  return {above[0] + nothing[0], nothing[0] - below[0]};
}

/// How the numbers of a row are integers from 0 to 255: x is about scale (integer - zero).
struct Int8Scale {
  float scale, factor;
  std::int32_t zero;
};

XGRAD_INLINE Int8Scale int8_scale_of(const Extent& extent, Int8Range range) {
  constexpr float least = 1e-35F, half_steps = 127;
  const auto& [above, below] = extent;
  const bool is_symmetric = range == Int8Range::symmetric;
  // half of the range, which is finite
  const float half = !is_symmetric ? above / 2 + below / 2 : above > below ? above : below;
  if (half < least) return {0, 0, int8_zero};
  const float factor = half_steps / half, places = below * factor;
  if (is_symmetric || !(places >= 0)) return {half / half_steps, factor, int8_zero};
  // rounded up, so that all integers are from 0 to 255
  const auto zero = static_cast<std::int32_t>(places);
  return {half / half_steps, factor, static_cast<float>(zero) < places ? zero + 1 : zero};
}

/// Rows of float numbers as integers, and how they are.
XGRAD_VECTORIZED(void, round_to_int8,
                 (const float* x, std::size_t ld, std::size_t rows, std::size_t cols, Int8Range range,
                  std::uint8_t* q, std::size_t stride, float* scales, std::int32_t* zeros),
                 (x, ld, rows, cols, range, q, stride, scales, zeros)) {
  for (std::size_t r = 0; r < rows; ++r, x += ld, q += stride) {
    const Int8Scale row = int8_scale_of(extent_of(x, cols), range);
    scales[r] = row.scale;
    zeros[r] = row.zero;
    // the last bits of a number plus this are those of the nearest integer
    const float factor = row.factor, shift = 0x1.8p23F + static_cast<float>(row.zero);
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < cols; ++i)
      q[i] = static_cast<std::uint8_t>(bit_cast<std::uint32_t>(x[i] * factor + shift));
  }
}

/// The extremes of numbers and 0: comparisons with nan are false.
XGRAD_VECTORIZED(void, find_extremes, (const float* x, std::size_t n, Extremes& found), (x, n, found)) {
  constexpr std::size_t lanes = 32;
  float least[lanes] = {}, largest[lanes] = {};
  const auto take = [&](std::size_t lane, float one) XGRAD_INLINE_LAMBDA {
    least[lane] = one < least[lane] ? one : least[lane];
    largest[lane] = one > largest[lane] ? one : largest[lane];
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
#pragma GCC unroll 1  // a loop that is unrolled before it is vectorised stays scalar
    for (std::size_t l = 0; l < lanes; ++l) take(l, x[i + l]);
  }
  for (; i < n; ++i) take(0, x[i]);
  for (std::size_t l = 0; l < lanes; ++l) {
    found.least = least[l] < found.least ? least[l] : found.least;
    found.largest = largest[l] > found.largest ? largest[l] : found.largest;
  }
}

/// Rows of float numbers as integers of one step and one zero, and the sum of each.
XGRAD_VECTORIZED(void, round_by_step,
                 (const float* x, std::size_t ld, std::size_t rows, std::size_t cols, float step,
                  std::int32_t zero, std::uint8_t* q, std::size_t stride, std::int32_t* sums),
                 (x, ld, rows, cols, step, zero, q, stride, sums)) {
  // an even number, so that its sum with a number is rounded as that one is
  constexpr float shift = 0x1.8p23F;
  const float low = static_cast<float>(-zero), high = static_cast<float>(255 - zero);
  for (std::size_t r = 0; r < rows; ++r, x += ld, q += stride) {
    XGRAD_INDEPENDENT
    for (std::size_t i = 0; i < cols; ++i) {
      float places = x[i] / step;
      places = places > low ? places : low;
      places = places < high ? places : high;
      const std::uint32_t bits = bit_cast<std::uint32_t>(places + shift);
      q[i] = static_cast<std::uint8_t>(bits + static_cast<std::uint32_t>(zero));
    }
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < cols; ++i) sum += q[i];
    sums[r] = sum;
  }
}

/// Some rows of x, `stride` bytes apart, and what their sums become.
struct Int8TileRows {
  const std::uint8_t* values;
  std::size_t stride;
  const float* scales;
  const std::int32_t *zeros, *sums;  // sums: null if the weight has no zeros

  XGRAD_INLINE Int8TileRows from(std::size_t r) const {
    return {values + r * stride, stride, scales + r, zeros + r, sums == nullptr ? nullptr : sums + r};
  }
};

/// A panel of the weight, of which the first `cols` rows are some, and what sums of its rows become.
struct Int8TilePanel {
  const std::int8_t* values;
  std::size_t groups, cols;
  const std::int32_t *sums, *zeros;
  const float *scales, *bias;
};

/// y = act((sum - zero weight_sum - x_sum weight_zero) scales + bias), where parts of the sum may be beyond
/// 32 bits.
template <Int8Activation act>
XGRAD_INLINE void finish_int8_row(const std::int32_t* sums, std::size_t cols, float scale, std::int32_t zero,
                                  std::int32_t x_sum, const Int8TilePanel& panel, float* y) {
  const auto by_zero = static_cast<std::uint32_t>(zero), by_sum = static_cast<std::uint32_t>(x_sum);
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < cols; ++i) {
    const std::uint32_t sum = static_cast<std::uint32_t>(sums[i]) -
                              by_zero * static_cast<std::uint32_t>(panel.sums[i]) -
                              by_sum * static_cast<std::uint32_t>(panel.zeros[i]);
    float z = static_cast<float>(static_cast<std::int32_t>(sum)) * (scale * panel.scales[i]) + panel.bias[i];
    if constexpr (act == Int8Activation::gelu) vectorized::coarse_gelu(z);
    y[i] = z;
  }
}

/// y (rows, cols) from the sums (rows, 32).
XGRAD_VECTORIZED(void, finish_int8_tile_by_loops,
                 (const std::int32_t* sums, std::size_t rows, const Int8TileRows& x,
                  const Int8TilePanel& panel, Int8Activation act, float* y, std::size_t ld),
                 (sums, rows, x, panel, act, y, ld)) {
  const Int8TilePanel here = panel;
  with_length(here.cols, [&](auto cols) XGRAD_INLINE_LAMBDA {
    for (std::size_t r = 0; r < rows; ++r, sums += int8_tile_cols, y += ld) {
      const std::int32_t x_sum = x.sums == nullptr ? 0 : x.sums[r];
      if (act == Int8Activation::gelu) {
        finish_int8_row<Int8Activation::gelu>(sums, cols, x.scales[r], x.zeros[r], x_sum, here, y);
      } else {
        finish_int8_row<Int8Activation::none>(sums, cols, x.scales[r], x.zeros[r], x_sum, here, y);
      }
    }
  });
}

/// sums (rows, 32) = rows times a panel.
XGRAD_VECTORIZED(void, sum_int8_tile_by_loops,
                 (std::size_t rows, const Int8TileRows& x, const Int8TilePanel& panel, std::int32_t* sums),
                 (rows, x, panel, sums)) {
  std::fill_n(sums, rows * int8_tile_cols, 0);
  const std::int8_t* values = panel.values;
  for (std::size_t g = 0; g < panel.groups; ++g, values += int8_tile_cols * int8_group) {
    for (std::size_t r = 0; r < rows; ++r) {
      const std::uint8_t* const four = x.values + r * x.stride + g * int8_group;
      std::int32_t* const sum = sums + r * int8_tile_cols;
      XGRAD_INDEPENDENT
      for (std::size_t i = 0; i < int8_tile_cols; ++i) {
        const std::int8_t* const by = values + i * int8_group;
        sum[i] += four[0] * by[0] + four[1] * by[1] + four[2] * by[2] + four[3] * by[3];
      }
    }
  }
}

/// The two steps of a tile by some instructions.
struct Int8Tile {
  decltype(&sum_int8_tile_by_loops) sum;
  decltype(&finish_int8_tile_by_loops) finish;
};

#if defined(__x86_64__)
#define XGRAD_WITH_AVX2 __attribute__((target("avx2")))
#define XGRAD_WITH_VNNI __attribute__((target("avx512f,avx512vnni")))

XGRAD_INLINE std::int32_t four_of_int8(const std::uint8_t* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof four);
  return four;
}

/// As many sums as fit into 16 registers, in halves: products of 8 bits would not fit into 16.
template <std::size_t rows>
XGRAD_WITH_AVX2 void sum_int8_rows_avx2(const Int8TileRows& x, const Int8TilePanel& panel,
                                        std::int32_t* sums) {
  constexpr std::size_t parts = 4, part_bytes = 16, half_bytes = parts * part_bytes;
  for (std::size_t half = 0; half < 2; ++half) {
    __m256i sum[rows][parts];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (std::size_t p = 0; p < parts; ++p) sum[r][p] = _mm256_setzero_si256();
    }
    const std::int8_t* by = panel.values + half * half_bytes;
    for (std::size_t g = 0; g < panel.groups; ++g, by += 2 * half_bytes) {
      __m256i four[rows];
#pragma GCC unroll 4
      for (std::size_t r = 0; r < rows; ++r)
        four[r] =
            _mm256_cvtepu8_epi16(_mm_set1_epi32(four_of_int8(x.values + r * x.stride + g * int8_group)));
#pragma GCC unroll 4
      for (std::size_t p = 0; p < parts; ++p) {
        const __m256i wide =
            _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(by + p * part_bytes)));
#pragma GCC unroll 4
        for (std::size_t r = 0; r < rows; ++r)
          sum[r][p] = _mm256_add_epi32(sum[r][p], _mm256_madd_epi16(four[r], wide));
      }
    }
#pragma GCC unroll 4
    for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (std::size_t p = 0; p < parts; p += 2) {
        const __m256i pairs = _mm256_hadd_epi32(sum[r][p], sum[r][p + 1]);
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(sums + r * int8_tile_cols + half * int8_tile_cols / 2 + 4 * p),
            _mm256_permute4x64_epi64(pairs, 0xd8));
      }
    }
  }
}

void sum_int8_tile_avx2(std::size_t rows, const Int8TileRows& x, const Int8TilePanel& panel,
                        std::int32_t* sums) {
  constexpr std::size_t most = 2;
  std::size_t r = 0;
  for (; r + most <= rows; r += most) sum_int8_rows_avx2<most>(x.from(r), panel, sums + r * int8_tile_cols);
  if (r < rows) sum_int8_rows_avx2<1>(x.from(r), panel, sums + r * int8_tile_cols);
}

template <std::size_t rows>
XGRAD_WITH_VNNI void sum_int8_rows_vnni(const Int8TileRows& x, const Int8TilePanel& panel,
                                        std::int32_t* sums) {
  constexpr std::size_t bytes = 64, lanes_of_sums = 16;
  __m512i left[rows], right[rows];
#pragma GCC unroll 12
  for (std::size_t r = 0; r < rows; ++r) left[r] = right[r] = _mm512_setzero_si512();
  const std::int8_t* by = panel.values;
  for (std::size_t g = 0; g < panel.groups; ++g, by += 2 * bytes) {
    const __m512i by_left = _mm512_loadu_si512(by), by_right = _mm512_loadu_si512(by + bytes);
#pragma GCC unroll 12
    for (std::size_t r = 0; r < rows; ++r) {
      const __m512i four = _mm512_set1_epi32(four_of_int8(x.values + r * x.stride + g * int8_group));
      left[r] = _mm512_dpbusd_epi32(left[r], four, by_left);
      right[r] = _mm512_dpbusd_epi32(right[r], four, by_right);
    }
  }
#pragma GCC unroll 12
  for (std::size_t r = 0; r < rows; ++r, sums += int8_tile_cols) {
    _mm512_storeu_si512(sums, left[r]);
    _mm512_storeu_si512(sums + lanes_of_sums, right[r]);
  }
}

void sum_int8_tile_vnni(std::size_t rows, const Int8TileRows& x, const Int8TilePanel& panel,
                        std::int32_t* sums) {
  using OfRows = void (*)(const Int8TileRows&, const Int8TilePanel&, std::int32_t*);
  constexpr auto of_rows = []<std::size_t... r>(std::index_sequence<r...>) {
    return std::array<OfRows, sizeof...(r)>{sum_int8_rows_vnni<r + 1>...};
  }
  (std::make_index_sequence<int8_tile_rows>());
  of_rows[rows - 1](x, panel, sums);
}
/// Whole panels with what belongs to their columns in registers; gelu is what takes time.
XGRAD_WITH_VNNI void finish_int8_tile_avx512(const std::int32_t* sums, std::size_t rows,
                                             const Int8TileRows& x, const Int8TilePanel& panel,
                                             Int8Activation act, float* y, std::size_t ld) {
  if (panel.cols < int8_tile_cols) return finish_int8_tile_by_loops(sums, rows, x, panel, act, y, ld);
  constexpr std::size_t parts = 2, lanes_of_sums = int8_tile_cols / parts;
  __m512i weight_sums[parts];
  __m512 scales[parts], bias[parts];
  for (std::size_t p = 0; p < parts; ++p) {
    weight_sums[p] = _mm512_loadu_si512(panel.sums + p * lanes_of_sums);
    scales[p] = _mm512_loadu_ps(panel.scales + p * lanes_of_sums);
    bias[p] = _mm512_loadu_ps(panel.bias + p * lanes_of_sums);
  }
  for (std::size_t r = 0; r < rows; ++r, sums += int8_tile_cols, y += ld) {
    const __m512i zero = _mm512_set1_epi32(x.zeros[r]);
    const __m512 scale = _mm512_set1_ps(x.scales[r]);
    for (std::size_t p = 0; p < parts; ++p) {
      const __m512i sum = _mm512_loadu_si512(sums + p * lanes_of_sums);
      __m512i product = _mm512_sub_epi32(sum, _mm512_mullo_epi32(zero, weight_sums[p]));
      if (x.sums != nullptr) {
        const __m512i weight_zeros = _mm512_loadu_si512(panel.zeros + p * lanes_of_sums);
        product = _mm512_sub_epi32(product, _mm512_mullo_epi32(_mm512_set1_epi32(x.sums[r]), weight_zeros));
      }
      __m512 z =
          _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(product), _mm512_mul_ps(scale, scales[p])), bias[p]);
      if (act == Int8Activation::gelu) vectorized::coarse_gelu(z);
      _mm512_storeu_ps(y + p * lanes_of_sums, z);
    }
  }
}
#endif

Int8Tile int8_tile([[maybe_unused]] Int8Instructions instructions) {
#if defined(__x86_64__)
  if (instructions == Int8Instructions::vnni) return {sum_int8_tile_vnni, finish_int8_tile_avx512};
  if (instructions == Int8Instructions::avx2) return {sum_int8_tile_avx2, finish_int8_tile_by_loops};
#endif
  return {sum_int8_tile_by_loops, finish_int8_tile_by_loops};
}

/// Some rows of y, and some panels of the weight. Tiles of a block of rows stay in the second cache level, a
/// panel in the first or second.
struct Int8Piece {
  std::size_t first_row, rows, first_panel, panels;
};

void multiply_int8_piece(const Int8Tile& tile, const Int8Rows& x, const Int8Matrix& weight,
                         const float* scales, const float* bias, Int8Activation act, float* y,
                         const Int8Piece& piece) {
  alignas(64) std::int32_t sums[int8_tile_rows * int8_tile_cols];
  constexpr float no_bias[int8_tile_cols] = {};
  constexpr std::int32_t no_zeros[int8_tile_cols] = {};
  const std::size_t n = weight.rows(), stride = weight.groups() * int8_group;
  const std::size_t end = piece.first_row + piece.rows;
  for (std::size_t block = piece.first_row; block < end; block += int8_block_rows) {
    const std::size_t rows = std::min(int8_block_rows, end - block), tiles = ceil_div(rows, int8_tile_rows);
    for (std::size_t p = piece.first_panel; p < piece.first_panel + piece.panels; ++p) {
      const std::size_t j = p * int8_tile_cols;
      const Int8TilePanel panel{weight.panel(p),
                                weight.groups(),
                                std::min(int8_tile_cols, n - j),
                                weight.sums() + j,
                                weight.zeros() != nullptr ? weight.zeros() + j : no_zeros,
                                scales + j,
                                bias != nullptr ? bias + j : no_bias};
      for (std::size_t t = 0; t < tiles; ++t) {
        const std::size_t first = t * rows / tiles, i = block + first;
        const std::size_t height = (t + 1) * rows / tiles - first;
        const Int8TileRows some{x.row(i), stride, x.scales() + i, x.zeros() + i,
                                weight.zeros() != nullptr ? x.sums() + i : nullptr};
        tile.sum(height, some, panel, sums);
        tile.finish(sums, height, some, panel, act, y + i * n + j, n);
      }
    }
  }
}

}  // namespace

Int8Instructions int8_instructions() {
#if defined(__x86_64__)
  static const Int8Instructions found = __builtin_cpu_supports("avx512vnni") ? Int8Instructions::vnni
                                        : __builtin_cpu_supports("avx2")     ? Int8Instructions::avx2
                                                                             : Int8Instructions::none;
  return found;
#else
  return Int8Instructions::none;
#endif
}

Extremes extremes_with_zero(const float* x, std::size_t n) {
  const std::size_t pieces = ceil_div(n, piece_work);
  std::vector<Extremes> found(std::max<std::size_t>(pieces, 1));
  parallel_for(pieces, [&](std::size_t i, std::size_t) {
    const std::size_t begin = i * piece_work;
    find_extremes(x + begin, std::min(piece_work, n - begin), found[i]);
  });
  for (const Extremes& one : found) {
    found[0].least = std::min(found[0].least, one.least);
    found[0].largest = std::max(found[0].largest, one.largest);
  }
  return found[0];
}

Int8Rows::Int8Rows(std::size_t rows, std::size_t cols)
    : rows_(rows),
      cols_(cols),
      stride_(ceil_div(cols, int8_group) * int8_group),
      scales_(rows),
      zeros_(rows, int8_zero) {
  const std::size_t bytes = rows * stride_;
  values_ = {static_cast<std::uint8_t*>(detail::pool_allocate(bytes)), {bytes}};
}

Int8Rows::Int8Rows(const Matrix<const float>& x, Int8Range range) : Int8Rows(x.rows, x.cols) {
  constexpr std::size_t cost = 2;
  parallel_pieces(rows_, cost * cols_, [&](std::size_t begin, std::size_t end) {
    round_to_int8(x.data + begin * x.stride, x.stride, end - begin, cols_, range,
                  values_.get() + begin * stride_, stride_, scales_.data() + begin, zeros_.data() + begin);
  });
}

Int8Rows::Int8Rows(const Matrix<const float>& x, float step, std::int32_t zero) : Int8Rows(x.rows, x.cols) {
  constexpr std::size_t cost = 3;
  sums_.resize(rows_);
  parallel_pieces(rows_, cost * cols_, [&](std::size_t begin, std::size_t end) {
    round_by_step(x.data + begin * x.stride, x.stride, end - begin, cols_, step, zero,
                  values_.get() + begin * stride_, stride_, sums_.data() + begin);
  });
  std::fill(scales_.begin(), scales_.end(), 1.0F);
  std::fill(zeros_.begin(), zeros_.end(), zero);
}

Int8Rows::Int8Rows(const std::int8_t* values, std::size_t rows, std::size_t cols) : Int8Rows(rows, cols) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c)
      values_.get()[r * stride_ + c] = static_cast<std::uint8_t>(values[r * cols + c] + int8_zero);
  }
  std::fill(scales_.begin(), scales_.end(), 1.0F);
}

std::vector<std::int8_t> Int8Rows::values() const {
  std::vector<std::int8_t> all;
  all.reserve(rows_ * cols_);
  for (std::size_t r = 0; r < rows_; ++r) {
    for (std::size_t c = 0; c < cols_; ++c) all.push_back(static_cast<std::int8_t>(row(r)[c] - int8_zero));
  }
  return all;
}

Int8Matrix::Int8Matrix(std::span<const std::int8_t> values, std::span<const float> scales, std::size_t cols,
                       std::span<const std::int32_t> zeros)
    : cols_(cols),
      scales_(scales.begin(), scales.end()),
      packed_(panels() * panel_rows * groups() * group),
      sums_(panels() * panel_rows),
      zeros_(zeros.begin(), zeros.end()) {
  if (!zeros.empty()) zeros_.resize(panels() * panel_rows);
  const std::size_t panel_bytes = panel_rows * groups() * group;
  for (std::size_t r = 0; r < rows(); ++r) {
    const std::int8_t* const from = values.data() + r * cols;
    std::int8_t* const to = packed_.data() + r / panel_rows * panel_bytes + r % panel_rows * group;
    std::int32_t sum = zeros.empty() ? 0 : -static_cast<std::int32_t>(cols) * zeros[r];
    for (std::size_t c = 0; c < cols; ++c) {
      to[c / group * panel_rows * group + c % group] = from[c];
      sum += from[c];
    }
    sums_[r] = sum;
  }
}

std::vector<std::int8_t> Int8Matrix::values() const {
  std::vector<std::int8_t> all;
  all.reserve(rows() * cols_);
  for (std::size_t r = 0; r < rows(); ++r) {
    const std::int8_t* const from = panel(r / panel_rows) + r % panel_rows * group;
    for (std::size_t c = 0; c < cols_; ++c) all.push_back(from[c / group * panel_rows * group + c % group]);
  }
  return all;
}

void int8_linear_rows(const Int8Rows& x, const Int8Matrix& weight, const float* bias, float* y,
                      Int8Instructions instructions, Int8Activation act) {
  int8_linear_rows(x, weight, weight.scales().data(), bias, y, instructions, act);
}

void int8_linear_rows(const Int8Rows& x, const Int8Matrix& weight, const float* scales, const float* bias,
                      float* y, Int8Instructions instructions, Int8Activation act) {
  constexpr std::size_t least_product = std::size_t{1} << 21, least_rows = 48;
  const std::size_t m = x.rows(), panels = weight.panels();
  const std::size_t wanted = std::min(available_threads(), m * weight.rows() * weight.cols() / least_product);
  const bool by_rows = m >= wanted * least_rows;
  const std::size_t pieces = std::max<std::size_t>(by_rows ? wanted : std::min(wanted, panels), 1);
  const Int8Tile tile = int8_tile(instructions);
  parallel_for(pieces, [&](std::size_t i, std::size_t) {
    const std::size_t length = by_rows ? m : panels, begin = i * length / pieces;
    const std::size_t size = (i + 1) * length / pieces - begin;
    multiply_int8_piece(tile, x, weight, scales, bias, act, y,
                        by_rows ? Int8Piece{begin, size, 0, panels} : Int8Piece{0, m, begin, size});
  });
}

}  // namespace xgrad::kernels
