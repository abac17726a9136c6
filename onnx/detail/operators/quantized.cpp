// Operators on integers that stand for floats: (q - zero point) scale.

#include <algorithm>
#include <functional>
#include <optional>

#include "../../../graph/grad_mode.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/product/matmul.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../arrays.hpp"
#include "convolution.hpp"
#include "operators.hpp"
#include "quantization.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

/// A scale or a zero point of all elements, or of each place along an axis, in a shape that broadcasts to x.
template <class A>
A along_axis(const A& one, std::int64_t axis, const Shape& x) {
  const Shape& shape = one.shape();
  if (element_count(shape) == 1 && shape.size() <= 1) {
    if constexpr (requires { one.value(); }) {
      return reshape(one, Dims(Shape{}));
    } else {
      A y = one;
      y.reshape(Shape{});
      return y;
    }
  }
  if (shape.size() != 1) fail<ValueError>("a scale or a zero point must be one, or one axis, got ", shape);
  const std::size_t along = axis_of(axis, x.size());
  if (shape[0] != x[along]) fail<ShapeError>(shape, " does not fit axis ", along, " of x ", x);
  Shape stretched(x.size() - along, 1);
  stretched[0] = shape[0];
  if constexpr (requires { one.value(); }) {
    return reshape(one, Dims(stretched));
  } else {
    A y = one;
    y.reshape(stretched);
    return y;
  }
}

template <class T>
Operator<T> quantize_linear(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", 1);
  const std::int64_t wanted = node.attributes.integer("output_dtype", 0);
  node.attributes.ignore("saturate");
  check_precision(node.attributes, "precision");
  if (node.attributes.integer("block_size", 0) != 0) fail<ValueError>("block_size is not supported");
  const std::int64_t of_zero_point = node.takes(2) ? node.type(2) : wanted;
  if (wanted != 0 && of_zero_point != 0 && wanted != of_zero_point)
    fail<ValueError>("output_dtype and the zero point must have one type, got ", name_of_data_type(wanted),
                     " and ", name_of_data_type(of_zero_point));
  const std::int64_t type = wanted != 0 ? wanted : node.takes(2) ? of_zero_point : data_type::uint8;
  return [axis, range = IntegerRange(type)](const Arguments<T>& given) -> Results<T> {
    const Array<T>& x = given.floats(0).value();
    const Array<T> scale = stretched(along_axis(given.floats(1), axis, x.shape()).value(), x.shape());
    Ids y = given.has(2) ? stretched(along_axis(given.integers(2), axis, x.shape()), x.shape())
                         : Ids(x.shape(), std::int64_t{0});
    for (std::size_t i = 0; i < y.size(); ++i)
      y.data()[i] = range.quantized(x.data()[i] / scale.data()[i], y.data()[i]);
    return {std::move(y)};
  };
}

/// Integers as floats.
template <class T>
Variable<T> as_floats(const Ids& x) {
  return Variable<T>(mapped<T>(x, [](std::int64_t element) { return static_cast<T>(element); }));
}

/// x - zero point.
Ids without_zero_point(const Ids& x, const Ids& zero_point) {
  if (zero_point.dimension() == 0 && *zero_point.data() == 0) return x;
  return zipped<std::int64_t>(x, zero_point, [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  });
}

template <class T>
Operator<T> dequantize_linear(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", 1);
  node.attributes.ignore("output_dtype");
  if (node.attributes.integer("block_size", 0) != 0) fail<ValueError>("block_size is not supported");
  return [axis](const Arguments<T>& given) -> Results<T> {
    Ids x = given.integers(0);
    if (given.has(2)) x = without_zero_point(x, along_axis(given.integers(2), axis, x.shape()));
    return {as_floats<T>(x) * along_axis(given.floats(1), axis, x.shape())};
  };
}

/// x as integers from 0 to 255 for the numbers from its least to its largest, and 0; the scale; the zero
/// point.
template <class T>
struct DynamicallyQuantized : DynamicScale<T> {
  Ids y;

  explicit DynamicallyQuantized(const Array<T>& x)
      : DynamicScale<T>(extreme(x, std::less<T>()), extreme(x, std::greater<T>())),
        y(Ids::from_shape(x.shape())) {
    const IntegerRange range(data_type::uint8);
    std::transform(x.begin(), x.end(), y.data(),
                   [&](T element) { return range.quantized(element / this->scale, this->zero_point); });
  }

 private:
  /// Of x and 0; comparisons with nan are false.
  template <class F>
  static T extreme(const Array<T>& x, F is_beyond) {
    T found = 0;
    for (const T element : x)
      if (is_beyond(element, found)) found = element;
    return found;
  }
};

template <class T>
Operator<T> dynamic_quantize_linear(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    DynamicallyQuantized<T> found(given.floats(0).value());
    return {std::move(found.y), Variable<T>(found.scale), Ids(Shape{}, found.zero_point)};
  };
}

/// Integers of 8 or 16 bits without their zero points: double holds the sums of their products.
void check_small(const Ids& x) {
  constexpr std::int64_t most = 65535;
  for (const std::int64_t element : x)
    if (element < -most || element > most)
      fail<ValueError>("integers without their zero point must be between -65535 and 65535, got ", element);
}

/// The exact product of matrices of small integers.
template <class T>
Array<double> exact_product(const Arguments<T>& given, const Ids& a, const Ids& b) {
  given.check_product(a.shape(), b.shape());
  check_small(a);
  check_small(b);
  const NoGrad guard;
  return matmul(as_floats<double>(a), as_floats<double>(b)).value();
}

/// A matrix without its zero point, one of all elements, of each row of a, or of each column of b.
template <class T>
Ids without_zero_point(const Arguments<T>& given, std::size_t x, std::size_t zero_point, bool is_of_rows) {
  const Ids& matrix = given.integers(x);
  if (!given.has(zero_point)) return matrix;
  const Ids& zero = given.integers(zero_point);
  const auto rank = static_cast<std::int64_t>(matrix.dimension());
  if (zero.dimension() > 1) {
    if (!same_shape(broadcast_lengths(matrix.shape(), zero.shape()), matrix.shape()))
      fail<ShapeError>("zero points ", zero.shape(), " do not fit ", matrix.shape());
    return without_zero_point(matrix, zero);
  }
  return without_zero_point(matrix, along_axis(zero, is_of_rows ? rank - 2 : rank - 1, matrix.shape()));
}

Ids as_integers(const Array<double>& x) {
  return mapped<std::int64_t>(x, [](double element) { return static_cast<std::int64_t>(element); });
}

template <class T>
Operator<T> matmul_integer(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    const Ids a = without_zero_point(given, 0, 2, true), b = without_zero_point(given, 1, 3, false);
    return {as_integers(exact_product(given, a, b))};
  };
}

/// y scaled to integers of a type, with a zero point.
template <class T>
Ids requantized(const Array<double>& y, const Array<T>& scale, const Ids& zero_point,
                const IntegerRange& range) {
  const Array<T> scales = stretched(scale, y.shape());
  Ids result = stretched(zero_point, y.shape());
  for (std::size_t i = 0; i < result.size(); ++i)
    result.data()[i] = range.quantized(static_cast<T>(y.data()[i]) * scales.data()[i], result.data()[i]);
  return result;
}

/// Of a, its scale and zero point, the same of b, and of the result.
template <class T>
Operator<T> qlinear_matmul(const NodeDescription& node) {
  return [range = IntegerRange(node.type(7))](const Arguments<T>& given) -> Results<T> {
    const Ids a = without_zero_point(given, 0, 2, true), b = without_zero_point(given, 3, 5, false);
    const Array<double> y = exact_product(given, a, b);
    const auto rank = static_cast<std::int64_t>(y.dimension());
    const NoGrad guard;
    const Variable<T> scale = along_axis(given.floats(1), rank - 2, y.shape()) *
                              along_axis(given.floats(4), rank - 1, y.shape()) /
                              along_axis(given.floats(6), rank - 2, y.shape());
    return {requantized(y, scale.value(), along_axis(given.integers(7), rank - 2, y.shape()), range)};
  };
}

/// The exact convolution of integers, without their zero points: one of x, and one of the weight or of each
/// of its filters.
template <class T>
Array<double> exact_convolution(const Convolution& conv, const Arguments<T>& given, std::size_t x,
                                std::size_t x_zero, std::size_t w, std::size_t w_zero) {
  const auto without = [&](std::size_t i, std::size_t zero) {
    const Ids& ids = given.integers(i);
    return given.has(zero) ? without_zero_point(ids, along_axis(given.integers(zero), 0, ids.shape())) : ids;
  };
  const Ids a = without(x, x_zero), b = without(w, w_zero);
  check_small(a);
  check_small(b);
  given.check_result(conv.result_shape(a.shape(), b.shape()));
  given.check_result(conv.padded_shape(a.shape(), b.shape()));
  const NoGrad guard;
  return conv(as_floats<double>(a), as_floats<double>(b), Variable<double>()).value();
}

template <class T>
Operator<T> conv_integer(const NodeDescription& node) {
  return [conv = Convolution(node.attributes)](const Arguments<T>& given) -> Results<T> {
    return {as_integers(exact_convolution(conv, given, 0, 2, 1, 3))};
  };
}

/// Of x, its scale and zero point, the same of the weight and of the result, and a bias of integers.
template <class T>
Operator<T> qlinear_conv(const NodeDescription& node) {
  return [conv = Convolution(node.attributes),
          range = IntegerRange(node.type(7))](const Arguments<T>& given) -> Results<T> {
    Array<double> y = exact_convolution(conv, given, 0, 2, 3, 5);
    const NoGrad guard;
    if (given.has(8)) {
      const Array<double> bias =
          stretched(along_axis(as_floats<double>(given.integers(8)), 1, y.shape()).value(), y.shape());
      for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] += bias.data()[i];
    }
    const Variable<T> scale = along_axis(given.floats(1), 1, y.shape()) *
                              along_axis(given.floats(4), 1, y.shape()) /
                              along_axis(given.floats(6), 1, y.shape());
    return {requantized(y, scale.value(), along_axis(given.integers(7), 1, y.shape()), range)};
  };
}

/// The product of floats, which are quantized on the way, or of integers, and a matrix of integers, as
/// floats: a, b, the scales, the zero points, a bias. Input 1 is b.
template <class T, bool is_dynamic>
Operator<T> scaled_product(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    const std::size_t b_zero = is_dynamic ? 3 : 5, b_scale = is_dynamic ? 2 : 3, bias = is_dynamic ? 4 : 6;
    const Ids b = without_zero_point(given, 1, b_zero, false);
    Ids a;
    Variable<T> scale;
    if constexpr (is_dynamic) {
      const DynamicallyQuantized<T> found(given.floats(0).value());
      a = without_zero_point(found.y, Ids(Shape{}, found.zero_point));
      scale = Variable<T>(found.scale);
    } else {
      a = without_zero_point(given, 0, 4, true);
      scale = along_axis(given.floats(2), 0, a.shape());
    }
    const Array<double> product = exact_product(given, a, b);
    const auto rank = static_cast<std::int64_t>(product.dimension());
    Variable<T> y(mapped<T>(product, [](double element) { return static_cast<T>(element); }));
    y = y * (scale * along_axis(given.floats(b_scale), rank - 1, product.shape()));
    if (!given.has(bias)) return {y};
    given.check_result(broadcast_lengths(y.shape(), given.floats(bias).shape()));
    return {y + given.floats(bias)};
  };
}

}  // namespace

template <class T>
void add_quantized_operators(OperatorTable<T>& table) {
  table["QuantizeLinear"] = quantize_linear<T>;
  table["DequantizeLinear"] = dequantize_linear<T>;
  table["DynamicQuantizeLinear"] = dynamic_quantize_linear<T>;
  table["MatMulInteger"] = matmul_integer<T>;
  table["QLinearMatMul"] = qlinear_matmul<T>;
  table["ConvInteger"] = conv_integer<T>;
  table["QLinearConv"] = qlinear_conv<T>;
  table["com.microsoft.QuantizeLinear"] = quantize_linear<T>;
  table["com.microsoft.DequantizeLinear"] = dequantize_linear<T>;
  table["com.microsoft.DynamicQuantizeMatMul"] = scaled_product<T, true>;
  table["com.microsoft.MatMulIntegerToFloat"] = scaled_product<T, false>;
}

template void add_quantized_operators(OperatorTable<float>&);
template void add_quantized_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
