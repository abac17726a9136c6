#pragma once

#include "../../../base/dims.hpp"
#include "../../../base/error.hpp"
#include "../../../kernels/window/windows.hpp"

// The shapes of arrays (channels, line), (batch, channels, line), (channels, rows, cols) and (batch,
// channels, rows, cols), and the arguments of ops with windows on their last axes.
namespace xgrad::detail {

/// The numbers of one argument for the axis of rows, of which a line has one, and that of columns.
struct PerAxis {
  std::size_t rows, cols;
};

/// `numbers`, one for all axes or one for each of `axes`, 1 or 2. `line` is that of the rows of a line.
/// Throws ValueError "conv2d: stride must be one number or 2, at least 1, got (1, 0)".
PerAxis per_axis(const char* op, const char* name, const Dims& numbers, std::size_t axes,
                 std::ptrdiff_t least, std::size_t line);

/// The windows of an axis with `padding` zeros at its start and `both` at both ends together: as many as fit.
kernels::WindowAxis window_axis(std::size_t length, std::size_t kernel, std::size_t stride,
                                std::size_t padding, std::size_t both, std::size_t dilation);

/// An array whose last axes are an image.
struct Images {
  std::size_t batch, channels, rows, cols;
  bool batched;

  std::size_t planes() const { return batch * channels; }
};

/// Throws ShapeError unless x has `axes` behind its channels.
Images images(const char* op, const Shape& x, std::size_t axes);

/// A shape with so many channels and this image, batched as x is.
Shape image_shape(const Images& x, std::size_t channels, std::size_t rows, std::size_t cols,
                  std::size_t axes);

}  // namespace xgrad::detail
