#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "../../base/detail/system/pieces.hpp"

namespace xgrad::kernels {

/// Windows along an axis of `length` elements: element k of window i is number i stride - padding +
/// k dilation, for i < count and k < kernel. There are zeros beyond the ends.
struct WindowAxis {
  std::size_t length, count, kernel, stride, padding, dilation;

  /// What a window spans beyond its first element.
  std::size_t reach() const { return (kernel - 1) * dilation; }

  /// The windows [first, second) whose element k lies on the axis.
  std::pair<std::size_t, std::size_t> inside(std::size_t k) const {
    const std::size_t shift = k * dilation;
    const auto windows_before = [&](std::size_t end) {
      return end > shift ? std::min(count, ceil_div(end - shift, stride)) : 0;
    };
    return {windows_before(padding), windows_before(padding + length)};
  }

  /// The elements [first, second) of a window that lie on the axis.
  std::pair<std::size_t, std::size_t> elements(std::size_t window) const {
    const std::size_t start = window * stride, end = padding + length;
    const std::size_t first = start < padding ? ceil_div(padding - start, dilation) : 0;
    const std::size_t last = start < end ? ceil_div(end - start, dilation) : 0;
    return {std::min(first, kernel), std::min(last, kernel)};
  }

  /// Where element k of a window lies that is inside.
  std::size_t place(std::size_t window, std::size_t k) const {
    return window * stride + k * dilation - padding;
  }
};

/// Windows of an image, numbered row by row; those of a line have one row.
struct Windows {
  WindowAxis rows, cols;

  std::size_t count() const { return rows.count * cols.count; }
  std::size_t size() const { return rows.kernel * cols.kernel; }
  std::size_t image_size() const { return rows.length * cols.length; }
};

/// Calls visit(begin, first, last, end, place) for each row of the windows [from, from + count): their
/// element (row, col) lies inside for the numbers [first, last) of [begin, end), the first of them at
/// `place`.
template <typename Visit>
XGRAD_INLINE void for_each_run(const Windows& windows, std::size_t row, std::size_t col, std::size_t from,
                               std::size_t count, const Visit& visit) {
  const auto [first_row, last_row] = windows.rows.inside(row);
  const auto [first_col, last_col] = windows.cols.inside(col);
  const std::size_t cols = windows.cols.count;
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t window_row = (from + begin) / cols, window_col = (from + begin) % cols;
    const std::size_t end = std::min(count, begin + cols - window_col);
    if (window_row < first_row || window_row >= last_row) {
      visit(begin, end, end, end, std::size_t{0});
    } else {
      const std::size_t first = std::clamp(first_col, window_col, window_col + end - begin);
      const std::size_t last = std::clamp(last_col, first, window_col + end - begin);
      const std::size_t place = first == last ? 0
                                              : windows.rows.place(window_row, row) * windows.cols.length +
                                                    windows.cols.place(first, col);
      visit(begin, begin + first - window_col, begin + last - window_col, end, place);
    }
    begin = end;
  }
}

/// columns (channels, windows' size, count) = the elements of the windows [first, first + count) of x
/// (channels, image).
template <typename T>
void unfold(const T* x, std::size_t channels, const Windows& windows, std::size_t first, std::size_t count,
            T* columns);

/// The reverse: x += each element of the windows where it was. x is not cleared.
template <typename T>
void fold(const T* columns, std::size_t channels, const Windows& windows, std::size_t first,
          std::size_t count, T* x);

}  // namespace xgrad::kernels
