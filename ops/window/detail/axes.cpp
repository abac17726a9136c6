#include "axes.hpp"

#include <limits>

namespace xgrad::detail {

PerAxis per_axis(const char* op, const char* name, const Dims& numbers, std::size_t axes,
                 std::ptrdiff_t least, std::size_t line) {
  constexpr std::ptrdiff_t most = std::numeric_limits<std::int32_t>::max();  // so that products are sizes
  bool fits = numbers.size() == 1 || numbers.size() == axes;
  for (const std::ptrdiff_t number : numbers) fits = fits && number >= least && number <= most;
  if (!fits) {
    const std::string count = axes == 1 ? "one number" : "one number or " + std::to_string(axes);
    fail<ValueError>(op, ": ", name, " must be ", count, ", at least ", least, " and at most ", most,
                     ", got ", to_string(numbers));
  }
  const auto number = [&](std::size_t i) { return static_cast<std::size_t>(numbers[i]); };
  return {axes == 1 ? line : number(0), number(numbers.size() - 1)};
}

kernels::WindowAxis window_axis(std::size_t length, std::size_t kernel, std::size_t stride,
                                std::size_t padding, std::size_t both, std::size_t dilation) {
  const std::size_t padded = length + both, span = (kernel - 1) * dilation;
  return {length, padded > span ? (padded - span - 1) / stride + 1 : 0, kernel, stride, padding, dilation};
}

Images images(const char* op, const Shape& x, std::size_t axes) {
  const bool batched = x.size() == axes + 2;
  if (!batched && x.size() != axes + 1) {
    const char* const wanted = axes == 1 ? "(channels, length) or (batch, channels, length)"
                                         : "(channels, rows, cols) or (batch, channels, rows, cols)";
    fail<ShapeError>(op, ": x must have the axes ", wanted, ", got ", x);
  }
  return {batched ? x[0] : 1, x[x.size() - axes - 1], axes == 1 ? 1 : x[x.size() - 2], x.back(), batched};
}

Shape image_shape(const Images& x, std::size_t channels, std::size_t rows, std::size_t cols,
                  std::size_t axes) {
  Shape shape;
  if (x.batched) shape.push_back(x.batch);
  shape.push_back(channels);
  if (axes == 2) shape.push_back(rows);
  shape.push_back(cols);
  return shape;
}

}  // namespace xgrad::detail
