#include "direct_convolution.hpp"

#include <cstring>
#include <numeric>
#include <type_traits>

#include "../gemm/pack.hpp"
#include "../lanes.hpp"
#include "../thread_memory.hpp"

namespace xgrad::kernels {
namespace {

constexpr std::size_t tile_height = 8;                    // outputs, or elements of windows
constexpr std::size_t tile_vectors = 2, wide_bytes = 64;  // of a row of a tile, and of a vector

template <typename T>
constexpr std::size_t tile_width = tile_vectors* wide_bytes / sizeof(T);

/// How many places in a stride the elements of windows have: those of the first elements, which recur.
std::size_t phase_count(const WindowAxis& axis) {
  return std::min(axis.kernel, axis.stride / std::gcd(axis.stride, axis.dilation));
}
std::size_t phase_of(const WindowAxis& axis, std::size_t k) { return k * axis.dilation % axis.stride; }

/// The numbers [first, second) below `count` whose elements, one at the phase of each stride, lie in the
/// image.
std::pair<std::size_t, std::size_t> inside(const WindowAxis& axis, std::size_t phase, std::size_t count) {
  const auto before = [&](std::size_t end) {
    return end > phase ? std::min(count, ceil_div(end - phase, axis.stride)) : 0;
  };
  return {before(axis.padding), before(axis.padding + axis.length)};
}

/// Calls f(at, size) for the parts of [0, n), of constant sizes: rows are too short for calls of memcpy.
template <typename F>
XGRAD_INLINE void in_parts(std::size_t n, const F& f) {
  std::size_t at = 0;
  for (; at + 16 <= n; at += 16) f(at, std::integral_constant<std::size_t, 16>());
  const auto rest = [&](auto size) XGRAD_INLINE_LAMBDA {
    if ((n & size) == 0) return;
    f(at, size);
    at += size;
  };
  rest(std::integral_constant<std::size_t, 8>());
  rest(std::integral_constant<std::size_t, 4>());
  rest(std::integral_constant<std::size_t, 2>());
  rest(std::integral_constant<std::size_t, 1>());
}

template <typename T>
XGRAD_INLINE void copy_row(const T* x, std::size_t n, T* y) {
  in_parts(n, [=](std::size_t at, auto size)
                  XGRAD_INLINE_LAMBDA { std::memcpy(y + at, x + at, size * sizeof(T)); });
}

template <typename T>
XGRAD_INLINE void clear_row(T* y, std::size_t n) {
  in_parts(n,
           [=](std::size_t at, auto size) XGRAD_INLINE_LAMBDA { std::memset(y + at, 0, size * sizeof(T)); });
}

// What thread_memory() is used for.
struct PackedFilters;
struct PlanesCopy;
struct TurnedOrSummed;

/// Whether there are registers enough for tiles of the full height and width.
bool has_wide_vectors() {
#if defined(XGRAD_VERSIONS)
  return __builtin_cpu_supports("avx512f");
#elif defined(__AVX512F__)
  return true;
#else
  return false;
#endif
}

/// Sums that stay in registers, for each row `vectors` vectors of `lanes` numbers. They are read and written
/// one by one, or else compilers keep them in memory.
template <std::size_t height, std::size_t vectors, std::size_t lanes, typename T>
struct Tile {
  using Vector = typename Lanes<T, lanes>::type;
  Vector sums[height * vectors]{};

  /// Adds the products of factor(r) for row r with as many numbers as it has columns.
  template <typename Factor>
  XGRAD_INLINE void add(const Factor& factor, const T* numbers) {
    Vector row[vectors];
#pragma GCC unroll 2
    for (std::size_t v = 0; v < vectors; ++v) std::memcpy(&row[v], numbers + v * lanes, sizeof row[v]);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < height; ++r) {
      const T number = factor(r);
#pragma GCC unroll 2
      for (std::size_t v = 0; v < vectors; ++v) sums[r * vectors + v] += number * row[v];
    }
  }

  /// y (height, pitch) = the sums, added to what is there if `adds`.
  template <bool adds>
  XGRAD_INLINE void store(T* y, std::size_t pitch) const {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < height; ++r) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < vectors; ++v) {
        Vector sum = sums[r * vectors + v];
        T* const to = y + r * pitch + v * lanes;
        if constexpr (adds) {
          Vector before;
          std::memcpy(&before, to, sizeof before);
          sum += before;
        }
        std::memcpy(to, &sum, sizeof sum);
      }
    }
  }
};

/// `height` outputs, whose weights lie side by side, of the windows at all positions: y (height, pitch).
template <std::size_t height, std::size_t lanes, typename T>
XGRAD_INLINE void map_rows(const T* planes, const std::vector<std::size_t>& offsets, const T* weight,
                           std::size_t positions, T* y, std::size_t pitch) {
  for (std::size_t at = 0; at < positions; at += tile_vectors * lanes) {
    Tile<height, tile_vectors, lanes, T> tile;
    const T* factors = weight;
    for (const std::size_t offset : offsets) {
      tile.add([=](std::size_t r) XGRAD_INLINE_LAMBDA { return factors[r]; }, planes + offset + at);
      factors += height;
    }
    tile.template store<false>(y + at, pitch);
  }
}

/// How many outputs a tile has where so many are left.
std::size_t outputs_at_once(std::size_t left) {
  const std::size_t most = has_wide_vectors() ? tile_height : tile_height / 2;
  std::size_t height = most;
  while (height > left) height /= 2;
  return height;
}

/// Bound by flops.
XGRAD_KERNEL(void, map_outputs,
             (const T* planes, const std::vector<std::size_t>& offsets, const T* weight, std::size_t height,
              std::size_t positions, T* y, std::size_t pitch, bool wide),
             (planes, offsets, weight, height, positions, y, pitch, wide)) {
  constexpr std::size_t lanes = wide_bytes / sizeof(T);
  const auto map = [&](auto rows) XGRAD_INLINE_LAMBDA {
    if (wide) {
      map_rows<rows, lanes>(planes, offsets, weight, positions, y, pitch);
    } else {
      map_rows<std::min<std::size_t>(rows, tile_height / 2), lanes / 2>(planes, offsets, weight, positions, y,
                                                                        pitch);
    }
  };
  if (height == 8) return map(std::integral_constant<std::size_t, 8>());
  if (height == 4) return map(std::integral_constant<std::size_t, 4>());
  if (height == 2) return map(std::integral_constant<std::size_t, 2>());
  map(std::integral_constant<std::size_t, 1>());
}

/// `height` elements of windows and the outputs of a tile's columns, of all windows of a block: adds to sums
/// (height, pitch) the products of elements with the outputs' gradients, map (rows, cols, outs).
template <std::size_t height, std::size_t vectors, std::size_t lanes, typename T>
XGRAD_INLINE void weight_rows(const T* planes, const std::size_t* offsets, std::size_t width, const T* map,
                              std::size_t outs, std::size_t rows, std::size_t cols, T* sums,
                              std::size_t pitch) {
  Tile<height, vectors, lanes, T> tile;
  const T* element[height];
  for (std::size_t r = 0; r < height; ++r) element[r] = planes + offsets[r];
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t at = row * width; at < row * width + cols; ++at, map += outs)
      tile.add([&](std::size_t r) XGRAD_INLINE_LAMBDA { return element[r][at]; }, map);
  }
  tile.template store<true>(sums, pitch);
}

/// Bound by flops.
XGRAD_KERNEL(void, add_weight_sums,
             (const T* planes, const std::vector<std::size_t>& offsets, std::size_t width, const T* map,
              std::size_t outs, std::size_t rows, std::size_t cols, const DirectWeightSums& size, T* sums,
              bool wide),
             (planes, offsets, width, map, outs, rows, cols, size, sums, wide)) {
  constexpr std::size_t lanes = wide_bytes / sizeof(T), low = tile_height / 2;
  for (std::size_t first = 0; first < outs; first += tile_width<T>) {
    const bool is_half = outs - first <= lanes;
    for (std::size_t k = 0; k < size.rows; k += tile_height) {
      T* const to = sums + k * size.cols + first;
      const std::size_t* const from = offsets.data() + k;
      if (!wide) {
        for (std::size_t half = 0; half < tile_height; half += low) {
          for (std::size_t o = 0; o < (is_half ? 1 : 2) * lanes; o += lanes) {
            weight_rows<low, 2, lanes / 2>(planes, from + half, width, map + first + o, outs, rows, cols,
                                           to + half * size.cols + o, size.cols);
          }
        }
      } else if (is_half) {
        weight_rows<tile_height, 1, lanes>(planes, from, width, map + first, outs, rows, cols, to, size.cols);
      } else {
        weight_rows<tile_height, 2, lanes>(planes, from, width, map + first, outs, rows, cols, to, size.cols);
      }
    }
  }
}

/// The weights of each tile's outputs side by side, in one group.
template <typename T>
void pack_filters(const ConvolutionSizes& sizes, const Filters<T>& filters, std::size_t group, T* packed) {
  const std::size_t size = sizes.windows.size();
  const T* const of_group = filters.data + group * filters.group_step;
  for (std::size_t o = 0, height = 0; o < sizes.out; o += height) {
    height = outputs_at_once(sizes.out - o);
    for (std::size_t c = 0; c < sizes.in; ++c) {
      for (std::size_t k = 0; k < size; ++k) {
        const T* const from =
            of_group + o * filters.out_step + c * filters.in_step + (filters.turned ? size - 1 - k : k);
        for (std::size_t r = 0; r < height; ++r) *packed++ = from[r * filters.out_step];
      }
    }
  }
}

}  // namespace

WindowPlanes::WindowPlanes(const Windows& windows, std::size_t channels)
    : windows_(windows),
      channels_(channels),
      row_phases_(phase_count(windows.rows)),
      col_phases_(phase_count(windows.cols)),
      width_(windows.cols.count + windows.cols.reach() / windows.cols.stride),
      rows_beyond_(windows.rows.reach() / windows.rows.stride) {
  constexpr std::size_t cached = std::size_t{1} << 17, most = std::size_t{1} << 20;
  const std::size_t planes = channels * row_phases_ * col_phases_;
  const auto is_at_most = [](std::size_t a, std::size_t b, std::size_t limit) {
    return a == 0 || b <= limit / a;
  };
  fits_ = channels > 0 && windows.rows.count > 0 && is_at_most(planes, width_, most) &&
          is_at_most(planes * width_, rows_beyond_ + 1, most);
  if (!fits_) return;
  const std::size_t cached_rows = cached / std::max<std::size_t>(1, planes * width_);
  block_rows_ =
      std::clamp<std::size_t>(cached_rows - std::min(cached_rows, rows_beyond_), 1, windows.rows.count);
  blocks_ = ceil_div(windows.rows.count, block_rows_);
  block_rows_ = ceil_div(windows.rows.count, blocks_);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t row = 0; row < windows.rows.kernel; ++row) {
      for (std::size_t col = 0; col < windows.cols.kernel; ++col) {
        const std::size_t plane = (c * row_phases_ + row % row_phases_) * col_phases_ + col % col_phases_;
        offsets_.push_back(plane * plane_size() + row * windows.rows.dilation / windows.rows.stride * width_ +
                           col * windows.cols.dilation / windows.cols.stride);
      }
    }
  }
}

std::size_t WindowPlanes::rows(std::size_t block) const {
  return std::min(block_rows_, windows_.rows.count - std::min(windows_.rows.count, first_row(block)));
}

std::size_t WindowPlanes::size() const { return channels_ * row_phases_ * col_phases_ * plane_size(); }

template <typename T>
void WindowPlanes::copy(const T* image, std::size_t block, T* planes) const {
  const WindowAxis &rows = windows_.rows, &cols = windows_.cols;
  const std::size_t first = first_row(block), height = block_rows_ + rows_beyond_;
  for (std::size_t c = 0; c < channels_; ++c, image += windows_.image_size()) {
    for (std::size_t phase = 0; phase < row_phases_ * col_phases_; ++phase) {
      const std::size_t row_phase = phase_of(rows, phase / col_phases_),
                        col_phase = phase_of(cols, phase % col_phases_);
      const auto [top, bottom] = inside(rows, row_phase, first + height);
      const auto [left, right] = inside(cols, col_phase, width_);
      for (std::size_t row = first; row < first + height; ++row, planes += width_) {
        if (row < top || row >= bottom || left == right) {
          clear_row(planes, width_);
          continue;
        }
        const T* from = image + (row * rows.stride + row_phase - rows.padding) * cols.length +
                        (left * cols.stride + col_phase - cols.padding);
        clear_row(planes, left);
        if (cols.stride == 1) {
          copy_row(from, right - left, planes + left);
        } else {
          for (std::size_t i = left; i < right; ++i, from += cols.stride) planes[i] = *from;
        }
        clear_row(planes + right, width_ - right);
      }
    }
  }
}

template <typename T>
void direct_convolution(const ConvolutionSizes& sizes, const WindowPlanes& planes, const T* images,
                        const Filters<T>& filters, T* maps) {
  const Windows& windows = sizes.windows;
  const std::size_t cols = windows.cols.count, elements = sizes.in * windows.size();
  const std::size_t weight_size = sizes.out * elements;
  T* const weight = thread_memory<T, PackedFilters>(sizes.groups * weight_size);
  for (std::size_t group = 0; group < sizes.groups; ++group)
    pack_filters(sizes, filters, group, weight + group * weight_size);
  const bool wide = has_wide_vectors();
  const std::size_t pitch = ceil_div(planes.rows(0) * planes.width(), tile_width<T>) * tile_width<T>;
  const auto compute = [&](std::size_t item, std::size_t block) {
    T* const copy = thread_memory<T, PlanesCopy>(planes.size() + tile_width<T>);
    T* const sums = thread_memory<T, TurnedOrSummed>(tile_height * pitch);
    planes.copy(images + item * sizes.in * windows.image_size(), block, copy);
    const T* factors = weight + item % sizes.groups * weight_size;
    const std::size_t rows = planes.rows(block);
    for (std::size_t o = 0, height = 0; rows > 0 && o < sizes.out;
         o += height, factors += height * elements) {
      height = outputs_at_once(sizes.out - o);
      map_outputs(copy, planes.offsets(), factors, height, (rows - 1) * planes.width() + cols, sums, pitch,
                  wide);
      for (std::size_t r = 0; r < height; ++r) {
        T* map = maps + (item * sizes.out + o + r) * windows.count() + planes.first_row(block) * cols;
        for (std::size_t row = 0; row < rows; ++row, map += cols)
          copy_row(sums + r * pitch + row * planes.width(), cols, map);
      }
    }
  };
  const std::size_t cost = (planes.size() + planes.rows(0) * cols * weight_size / products_per_addition) | 1;
  parallel_pieces(sizes.batch * sizes.groups * planes.blocks(), cost,
                  [&](std::size_t begin, std::size_t end) {
                    for (; begin < end; ++begin) compute(begin / planes.blocks(), begin % planes.blocks());
                  });
}

template <typename T>
DirectWeightSums DirectWeightSums::of(const ConvolutionSizes& sizes) {
  constexpr std::size_t lanes = wide_bytes / sizeof(T);
  return {ceil_div(sizes.in * sizes.windows.size(), tile_height) * tile_height,
          ceil_div(sizes.out, lanes) * lanes};
}

template <typename T>
void add_direct_weight(const ConvolutionSizes& sizes, const WindowPlanes& planes, std::size_t block,
                       const T* image, const T* map, T* sums) {
  const std::size_t cols = sizes.windows.cols.count, rows = planes.rows(block);
  const auto size = DirectWeightSums::of<T>(sizes);
  T* const copy = thread_memory<T, PlanesCopy>(planes.size() + tile_width<T>);
  T* const turned = thread_memory<T, TurnedOrSummed>(rows * cols * sizes.out + tile_width<T>);
  planes.copy(image, block, copy);
  const Matrix<const T> of_block = Matrix<const T>(map, sizes.out, sizes.windows.count())
                                       .some_cols(planes.first_row(block) * cols, rows * cols);
  pack<T>(of_block.transpose(), turned);
  std::vector<std::size_t> offsets = planes.offsets();
  offsets.resize(size.rows);
  add_weight_sums(copy, offsets, planes.width(), turned, sizes.out, rows, cols, size, sums,
                  has_wide_vectors());
}

#define XGRAD_INSTANTIATE(T)                                                                           \
  template void WindowPlanes::copy(const T*, std::size_t, T*) const;                                   \
  template DirectWeightSums DirectWeightSums::of<T>(const ConvolutionSizes&);                          \
  template void direct_convolution(const ConvolutionSizes&, const WindowPlanes&, const T*,             \
                                   const Filters<T>&, T*);                                             \
  template void add_direct_weight(const ConvolutionSizes&, const WindowPlanes&, std::size_t, const T*, \
                                  const T*, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
