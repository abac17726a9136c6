#include "convolution.hpp"

#include "../gemm/gemm.hpp"
#include "../gemm/pack.hpp"
#include "../lanes.hpp"
#include "../pointwise/binary.hpp"
#include "../rows/reduce.hpp"
#include "../thread_memory.hpp"
#include "direct_convolution.hpp"

namespace xgrad::kernels {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 17;  // numbers of a block of columns: half of a cache

/// A part of the work: one group of one image, and its columns in blocks of windows, which bound the memory.
struct ColumnBlocks {
  explicit ColumnBlocks(const ConvolutionSizes& sizes)
      : sizes(sizes), rows(sizes.in * sizes.windows.size()), windows(sizes.windows.count()) {
    const std::size_t most = std::max<std::size_t>(64, block_size / std::max<std::size_t>(rows, 1));
    count = ceil_div(windows, most);
    length = count == 0 ? 0 : ceil_div(windows, count);
    const WindowAxis &r = sizes.windows.rows, &c = sizes.windows.cols;
    const auto is_identity = [](const WindowAxis& axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.padding == 0 && axis.count == axis.length;
    };
    identity = is_identity(r) && is_identity(c);
  }

  std::size_t first(std::size_t block) const { return block * length; }
  std::size_t size(std::size_t block) const {
    return std::min(length, windows - std::min(windows, first(block)));
  }

  /// Additions that a block costs.
  std::size_t cost() const {
    return std::max<std::size_t>(1, rows * length * (1 + sizes.out / products_per_addition));
  }

  template <typename T>
  T* image(T* images, std::size_t item) const {
    return images + item * sizes.in * sizes.windows.image_size();
  }
  template <typename T>
  Matrix<T> map(T* maps, std::size_t item, std::size_t block) const {
    return Matrix<T>(maps + item * sizes.out * windows, sizes.out, windows)
        .some_cols(first(block), size(block));
  }
  template <typename T>
  Matrix<T> filters(T* weight, std::size_t item) const {
    return {weight + item % sizes.groups * sizes.out * rows, sizes.out, rows};
  }

  const ConvolutionSizes& sizes;
  std::size_t rows, windows, count, length;
  bool identity;  ///< columns are the image
};

/// For a block of columns.
template <typename T>
T* column_memory(const ColumnBlocks& blocks) {
  return thread_memory<T, ColumnBlocks>(blocks.rows * blocks.length);
}

/// The columns of a block: unfolded, or the image itself.
template <typename T>
Matrix<const T> columns_of(const ColumnBlocks& blocks, const T* image, std::size_t block) {
  const std::size_t first = blocks.first(block), size = blocks.size(block);
  if (blocks.identity) return Matrix<const T>(image, blocks.rows, blocks.windows).some_cols(first, size);
  T* const memory = column_memory<T>(blocks);
  unfold(image, blocks.sizes.in, blocks.sizes.windows, first, size, memory);
  return {memory, blocks.rows, size};
}

/// Whether groups have so few channels, as in depthwise convolutions, that products of columns do not pay
/// where columns would be added to images, or summed to a weight.
bool is_direct(const ConvolutionSizes& sizes) { return sizes.in * sizes.out <= 4; }

/// Calls visit(map, image, weight, n) for rows of n elements in one group of one image: pointers to the first
/// of each, of which those of the image are a stride apart, and to the weight of all.
template <typename Maps, typename Images, typename Weight, typename Visit>
XGRAD_INLINE void for_each_product(const ConvolutionSizes& sizes, Maps* maps, Images* images, Weight* weight,
                                   const Visit& visit) {
  const Windows& windows = sizes.windows;
  for (std::size_t o = 0; o < sizes.out; ++o) {
    for (std::size_t c = 0; c < sizes.in; ++c) {
      for (std::size_t k = 0; k < windows.size(); ++k, ++weight) {
        Maps* const map = maps + o * windows.count();
        Images* const image = images + c * windows.image_size();
        for_each_run(
            windows, k / windows.cols.kernel, k % windows.cols.kernel, 0, windows.count(),
            [&](std::size_t, std::size_t inside, std::size_t outside, std::size_t, std::size_t place)
                XGRAD_INLINE_LAMBDA { visit(map + inside, image + place, weight, outside - inside); });
      }
    }
  }
}

/// The images of one group of one image's maps.
XGRAD_KERNEL(void, direct_images, (const ConvolutionSizes& sizes, const T* maps, const T* weight, T* images),
             (sizes, maps, weight, images)) {
  const std::size_t stride = sizes.windows.cols.stride;
  std::fill_n(images, sizes.in * sizes.windows.image_size(), T(0));
  for_each_product(sizes, maps, images, weight,
                   [=](const T* map, T* image, const T* factor, std::size_t n) XGRAD_INLINE_LAMBDA {
                     for (std::size_t i = 0; i < n; ++i) image[i * stride] += *factor * map[i];
                   });
}

/// Adds what one group of one image gives to the weight.
XGRAD_KERNEL(void, direct_weight, (const ConvolutionSizes& sizes, const T* images, const T* maps, T* weight),
             (sizes, images, maps, weight)) {
  const std::size_t stride = sizes.windows.cols.stride;
  for_each_product(
      sizes, maps, images, weight,
      [=](const T* map, const T* image, T* sum, std::size_t n) XGRAD_INLINE_LAMBDA {
        if (stride == 1) {
          *sum += sum_lanes<T>(n, [=](std::size_t i) XGRAD_INLINE_LAMBDA { return map[i] * image[i]; });
        } else {
          *sum +=
              sum_lanes<T>(n, [=](std::size_t i) XGRAD_INLINE_LAMBDA { return map[i] * image[i * stride]; });
        }
      });
}

/// Calls compute(item) for each group of each image.
template <typename Compute>
void for_each_item(const ColumnBlocks& blocks, const Compute& compute) {
  parallel_pieces(blocks.sizes.batch * blocks.sizes.groups, blocks.count * blocks.cost(),
                  [&](std::size_t begin, std::size_t end) {
                    for (; begin < end; ++begin) compute(begin);
                  });
}

/// How the sum over images and blocks is divided for a weight's gradient.
struct WeightParts {
  /// By sizes alone: as many parts as there is work for, and memory of a few weights.
  WeightParts(const ColumnBlocks& columns, std::size_t blocks, std::size_t size)
      : items(columns.sizes.batch * blocks), size(columns.sizes.groups * size) {
    constexpr std::size_t most_parts = 16, most_numbers = std::size_t{1} << 19;
    const std::size_t of_work = columns.sizes.batch * columns.count * columns.cost() / piece_work;
    count = std::clamp<std::size_t>(
        std::min({items, of_work, most_numbers / std::max<std::size_t>(1, this->size)}), 1, most_parts);
  }

  /// Calls add(item, group, sum) for the items of each part and each group: `sums` (parts, groups, ...).
  template <typename T, typename Add>
  void for_each(const ColumnBlocks& columns, T* sums, const Add& add) const {
    const std::size_t groups = columns.sizes.groups;
    fill(T(0), sums, count * size);
    const std::size_t cost = ceil_div(columns.sizes.batch * columns.count, count) * columns.cost();
    parallel_pieces(count * groups, cost, [&](std::size_t begin, std::size_t end) {
      for (; begin < end; ++begin) {
        const std::size_t part = begin / groups, group = begin % groups;
        for (std::size_t i = part * items / count; i < (part + 1) * items / count; ++i)
          add(i, group, sums + part * size + group * (size / groups));
      }
    });
  }

  std::size_t items, size, count;
};

/// Whether a weight's gradient is summed without columns, in vectors of outputs.
bool is_summed_directly(const ColumnBlocks& columns, const WindowPlanes& planes) {
  constexpr std::size_t least_outputs = 4;
  return !columns.identity && planes.fits() && columns.sizes.out >= least_outputs &&
         !is_direct(columns.sizes);
}

/// The axis on which the image has the windows of the maps, for stride 1; there is none with more zeros
/// around the image than windows reach.
bool has_turned(const WindowAxis& axis) { return axis.stride == 1 && axis.padding <= axis.reach(); }
WindowAxis turned(const WindowAxis& axis) {
  return {axis.count, axis.length, axis.kernel, 1, axis.reach() - axis.padding, axis.dilation};
}

}  // namespace

template <typename T>
void convolution(const ConvolutionSizes& sizes, const T* images, const T* weight, T* maps) {
  const ColumnBlocks blocks(sizes);
  if (const WindowPlanes planes(sizes.windows, sizes.in); !blocks.identity && planes.fits()) {
    return direct_convolution<T>(sizes, planes, images,
                                 {weight, sizes.out * blocks.rows, blocks.rows, sizes.windows.size(), false},
                                 maps);
  }
  parallel_pieces(
      sizes.batch * sizes.groups * blocks.count, blocks.cost(), [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin) {
          const std::size_t item = begin / blocks.count, block = begin % blocks.count;
          gemm<T>(1, blocks.filters(weight, item), columns_of(blocks, blocks.image(images, item), block), 0,
                  blocks.map(maps, item, block));
        }
      });
}

template <typename T>
void transposed_convolution(const ConvolutionSizes& sizes, const T* maps, const T* weight, T* images) {
  const ColumnBlocks blocks(sizes);
  if (!blocks.identity && has_turned(sizes.windows.rows) && has_turned(sizes.windows.cols)) {
    const ConvolutionSizes other{sizes.batch,
                                 sizes.groups,
                                 sizes.out,
                                 sizes.in,
                                 {turned(sizes.windows.rows), turned(sizes.windows.cols)}};
    if (const WindowPlanes planes(other.windows, other.in); planes.fits()) {
      return direct_convolution<T>(other, planes, maps,
                                   {weight, sizes.out * blocks.rows, sizes.windows.size(), blocks.rows, true},
                                   images);
    }
  }
  if (is_direct(sizes)) {
    return for_each_item(blocks, [&](std::size_t item) {
      direct_images(sizes, blocks.map(maps, item, 0).data, blocks.filters(weight, item).data,
                    blocks.image(images, item));
    });
  }
  for_each_item(blocks, [&](std::size_t item) {
    T* const image = blocks.image(images, item);
    if (!blocks.identity) fill(T(0), image, sizes.in * sizes.windows.image_size());
    for (std::size_t block = 0; block < blocks.count; ++block) {
      const std::size_t first = blocks.first(block), size = blocks.size(block);
      const Matrix<T> columns = blocks.identity
                                    ? Matrix<T>(image, blocks.rows, blocks.windows).some_cols(first, size)
                                    : Matrix<T>(column_memory<T>(blocks), blocks.rows, size);
      gemm<T>(1, blocks.filters(weight, item).transpose(), blocks.map(maps, item, block), 0, columns);
      if (!blocks.identity) fold<T>(columns.data, sizes.in, sizes.windows, first, size, image);
    }
  });
}

template <typename T>
std::size_t convolution_weight_scratch(const ConvolutionSizes& sizes) {
  const ColumnBlocks blocks(sizes);
  const WindowPlanes planes(sizes.windows, sizes.in);
  if (is_summed_directly(blocks, planes)) {
    const WeightParts parts(blocks, planes.blocks(), DirectWeightSums::of<T>(sizes).size());
    return (parts.count + 1) * parts.size;
  }
  const WeightParts parts(blocks, blocks.count, sizes.out * blocks.rows);
  return parts.count == 1 ? 0 : parts.count * parts.size;
}

template <typename T>
void convolution_weight(const ConvolutionSizes& sizes, const T* images, const T* maps, T* weight,
                        T* scratch) {
  const ColumnBlocks blocks(sizes);
  const std::size_t groups = sizes.groups;
  if (const WindowPlanes planes(sizes.windows, sizes.in); is_summed_directly(blocks, planes)) {
    const auto sums = DirectWeightSums::of<T>(sizes);
    const WeightParts parts(blocks, planes.blocks(), sums.size());
    parts.for_each(blocks, scratch, [&](std::size_t i, std::size_t group, T* sum) {
      const std::size_t item = i / planes.blocks() * groups + group;
      add_direct_weight<T>(sizes, planes, i % planes.blocks(), blocks.image(images, item),
                           blocks.map(maps, item, 0).data, sum);
    });
    T* const total = scratch + parts.count * parts.size;
    sum_middle(scratch, 1, parts.count, parts.size, total);
    for (std::size_t group = 0; group < groups; ++group) {
      const Matrix<const T> of_group(total + group * sums.size(), blocks.rows, sizes.out, sums.cols);
      pack<T>(of_group.transpose(), blocks.filters(weight, group).data);
    }
    return;
  }
  const WeightParts parts(blocks, blocks.count, sizes.out * blocks.rows);
  parts.for_each(blocks, parts.count == 1 ? weight : scratch, [&](std::size_t i, std::size_t group, T* sum) {
    const std::size_t item = i / blocks.count * groups + group, block = i % blocks.count;
    if (is_direct(sizes)) {
      if (block == 0) direct_weight(sizes, blocks.image(images, item), blocks.map(maps, item, 0).data, sum);
      return;
    }
    gemm<T>(1, blocks.map(maps, item, block),
            columns_of(blocks, blocks.image(images, item), block).transpose(), 1,
            {sum, sizes.out, blocks.rows});
  });
  if (parts.count > 1) sum_middle(scratch, 1, parts.count, parts.size, weight);
}

#define XGRAD_INSTANTIATE(T)                                                             \
  template void convolution(const ConvolutionSizes&, const T*, const T*, T*);            \
  template std::size_t convolution_weight_scratch<T>(const ConvolutionSizes&);           \
  template void transposed_convolution(const ConvolutionSizes&, const T*, const T*, T*); \
  template void convolution_weight(const ConvolutionSizes&, const T*, const T*, T*, T*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
