#pragma once

#include <cstddef>
#include <vector>

#include "convolution.hpp"

// Convolutions without columns: sums read the elements of windows in a copy of the image with the zeros
// around it.
namespace xgrad::kernels {

/// The layout of the copy of a block of rows of windows. A plane has the elements that are a stride apart, so
/// that the elements k of neighbouring windows lie side by side.
class WindowPlanes {
 public:
  /// Of images with so many channels, in blocks that fit into a cache.
  WindowPlanes(const Windows& windows, std::size_t channels);

  /// Whether a copy needs little memory, and there is something to copy.
  bool fits() const { return fits_; }

  std::size_t blocks() const { return blocks_; }
  std::size_t first_row(std::size_t block) const { return block * block_rows_; }
  std::size_t rows(std::size_t block) const;

  /// From a window to that below.
  std::size_t width() const { return width_; }
  /// Numbers of a copy.
  std::size_t size() const;
  /// Where element k of channel c is for the first window, as number c size + k.
  const std::vector<std::size_t>& offsets() const { return offsets_; }

  /// Copies what a block has of an image (channels, image).
  template <typename T>
  void copy(const T* image, std::size_t block, T* planes) const;

 private:
  std::size_t plane_size() const { return (block_rows_ + rows_beyond_) * width_; }

  Windows windows_;
  std::size_t channels_, row_phases_, col_phases_, width_, rows_beyond_, blocks_ = 0, block_rows_ = 0;
  bool fits_;
  std::vector<std::size_t> offsets_;
};

/// The filters (groups, out, in, windows' size) of a convolution, with so many elements from one group,
/// output and input to the next; the elements of a window are in reverse order if they are `turned`.
template <typename T>
struct Filters {
  const T* data;
  std::size_t group_step, out_step, in_step;
  bool turned;
};

/// convolution() with these filters.
template <typename T>
void direct_convolution(const ConvolutionSizes& sizes, const WindowPlanes& planes, const T* images,
                        const Filters<T>& filters, T* maps);

/// The sums for the weight of a group: (in windows' size, out) with rows and columns to spare.
struct DirectWeightSums {
  template <typename T>
  static DirectWeightSums of(const ConvolutionSizes& sizes);
  std::size_t size() const { return rows * cols; }

  std::size_t rows, cols;
};

/// Adds to the sums what one group of one image gives in a block of rows.
template <typename T>
void add_direct_weight(const ConvolutionSizes& sizes, const WindowPlanes& planes, std::size_t block,
                       const T* image, const T* map, T* sums);

}  // namespace xgrad::kernels
