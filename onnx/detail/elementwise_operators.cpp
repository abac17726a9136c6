// Operators on single elements, which broadcast.

#include <cmath>
#include <functional>
#include <limits>

#include "../../graph/record.hpp"
#include "../../ops/pointwise/arithmetic.hpp"
#include "../../ops/pointwise/broadcast.hpp"
#include "../../ops/pointwise/elementwise.hpp"
#include "../../ops/pointwise/rounding.hpp"
#include "../../ops/pointwise/trigonometry.hpp"
#include "../../ops/pointwise/where.hpp"
#include "arrays.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

template <class T>
using Unary = Variable<T> (*)(const Variable<T>&);

template <class T, Unary<T> f>
Operator<T> unary(const NodeDescription&) {
  return [](const Arguments<T>& given) -> std::vector<Value<T>> { return {f(given.floats(0))}; };
}

/// Integers wrap around, as in other runtimes.
template <class F>
std::int64_t wrapped(std::int64_t a, std::int64_t b, F f) {
  return static_cast<std::int64_t>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) fail<ValueError>("integers must not be divided by 0");
  return b == -1 ? wrapped(0, a, std::minus()) : a / b;
}

/// `floats` of two Variables, or `integers` of the elements of two arrays.
template <class T, class Floats, class Integers>
Operator<T> binary(Floats floats, Integers integers) {
  return [=](const Arguments<T>& given) -> std::vector<Value<T>> {
    given.check_broadcast({0, 1});
    if (std::holds_alternative<Ids>(given.value(0)))
      return {zipped<std::int64_t>(given.integers(0), given.integers(1), integers)};
    return {floats(given.floats(0), given.floats(1))};
  };
}

/// Of any number of operands.
template <class T, class Floats, class Integers>
Operator<T> variadic(Floats floats, Integers integers) {
  return [both = binary<T>(floats, integers)](const Arguments<T>& given) -> std::vector<Value<T>> {
    Value<T> result = given.value(0);
    for (std::size_t i = 1; i < given.size(); ++i) {
      const Value<T>* const pair[] = {&result, &given.value(i)};
      Value<T> next = std::move(both(given.with(pair))[0]);
      result = std::move(next);
    }
    return {std::move(result)};
  };
}

/// A comparison of floats or integers.
template <class T, class F>
Operator<T> comparison(F f) {
  return [f](const Arguments<T>& given) -> std::vector<Value<T>> {
    given.check_broadcast({0, 1});
    if (std::holds_alternative<Ids>(given.value(0)))
      return {zipped<bool>(given.integers(0), given.integers(1), f)};
    if (std::holds_alternative<Mask>(given.value(0)))
      return {zipped<bool>(given.conditions(0), given.conditions(1), f)};
    return {zipped<bool>(given.floats(0).value(), given.floats(1).value(), f)};
  };
}

template <class T, class F>
Operator<T> logical(F f) {
  return [f](const Arguments<T>& given) -> std::vector<Value<T>> {
    given.check_broadcast({0, 1});
    return {zipped<bool>(given.conditions(0), given.conditions(1), f)};
  };
}

/// Towards zero; what has no such integer becomes the least one.
template <class T>
std::int64_t to_integer(T x) {
  constexpr T end = static_cast<T>(9223372036854775808.0);
  return x >= -end && x < end ? static_cast<std::int64_t>(x) : std::numeric_limits<std::int64_t>::min();
}

template <class T>
Ids integer_power(const Arguments<T>& given) {
  const auto as_doubles = [](const auto& x) {
    return mapped<double>(x, [](auto e) { return static_cast<double>(e); });
  };
  const bool is_integer = std::holds_alternative<Ids>(given.value(1));
  const Array<double> e = is_integer ? as_doubles(given.integers(1)) : as_doubles(given.floats(1).value());
  return zipped<std::int64_t>(as_doubles(given.integers(0)), e,
                              [](double b, double e) { return to_integer(std::pow(b, e)); });
}

template <class T>
Operator<T> power(const NodeDescription&) {
  return [](const Arguments<T>& given) -> std::vector<Value<T>> {
    given.check_broadcast({0, 1});
    if (std::holds_alternative<Ids>(given.value(0))) return {integer_power(given)};
    const bool is_integer = std::holds_alternative<Ids>(given.value(1));
    const Variable<T> exponent =
        is_integer
            ? Variable<T>(mapped<T>(given.integers(1), [](std::int64_t e) { return static_cast<T>(e); }))
            : given.floats(1);
    const Variable<T>& base = given.floats(0);
    // a constant exponent has a gradient of its own, exact where the base is 0
    if (exponent.size() == 1 && exponent.dimension() <= base.dimension() && !exponent.requires_grad())
      return {pow(base, exponent.item())};
    return {pow(base, exponent)};
  };
}

template <class T>
Operator<T> negative(const NodeDescription&) {
  return [](const Arguments<T>& given) -> std::vector<Value<T>> {
    if (!std::holds_alternative<Ids>(given.value(0))) return {neg(given.floats(0))};
    return {
        mapped<std::int64_t>(given.integers(0), [](std::int64_t x) { return wrapped(0, x, std::minus()); })};
  };
}

template <class T>
Operator<T> absolute(const NodeDescription&) {
  return [](const Arguments<T>& given) -> std::vector<Value<T>> {
    if (!std::holds_alternative<Ids>(given.value(0))) return {abs(given.floats(0))};
    return {mapped<std::int64_t>(given.integers(0),
                                 [](std::int64_t x) { return x < 0 ? wrapped(0, x, std::minus()) : x; })};
  };
}

template <class T>
Operator<T> gelu_operator(const NodeDescription& node) {
  const std::string approximate = node.attributes.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    fail<ValueError>("approximate must be none or tanh, got '", approximate, "'");
  const Gelu form = approximate == "tanh" ? Gelu::tanh : Gelu::none;
  return [form](const Arguments<T>& given) -> std::vector<Value<T>> { return {gelu(given.floats(0), form)}; };
}

template <class T, Variable<T> (*f)(const Variable<T>&, T), int otherwise_in_hundredths>
Operator<T> with_alpha(const NodeDescription& node) {
  const double alpha = node.attributes.number("alpha", otherwise_in_hundredths / 100.0);
  return [alpha](const Arguments<T>& given) -> std::vector<Value<T>> {
    return {f(given.floats(0), static_cast<T>(alpha))};
  };
}

/// Bounds are attributes before opset 11, inputs since.
template <class T>
Operator<T> clip(const NodeDescription& node) {
  std::optional<T> least, most;
  if (node.opset < 11 && node.attributes.has("min")) least = static_cast<T>(node.attributes.number("min", 0));
  if (node.opset < 11 && node.attributes.has("max")) most = static_cast<T>(node.attributes.number("max", 0));
  return [least, most](const Arguments<T>& given) -> std::vector<Value<T>> {
    if (std::holds_alternative<Ids>(given.value(0))) {
      const auto bound = [&](std::size_t i, std::int64_t otherwise) {
        if (!given.has(i)) return otherwise;
        const std::vector<std::int64_t> list = given.list(i);
        if (list.size() != 1)
          xgrad::detail::fail<ShapeError>("a bound must be one number, got ", list.size());
        return list.front();
      };
      using Limits = std::numeric_limits<std::int64_t>;
      const std::int64_t low = bound(1, Limits::min()), high = bound(2, Limits::max());
      return {mapped<std::int64_t>(given.integers(0),
                                   [=](std::int64_t x) { return std::min(std::max(x, low), high); })};
    }
    const auto bound = [&](std::size_t i, const std::optional<T>& otherwise) {
      return given.has(i) ? std::optional(given.floats(i).item()) : otherwise;
    };
    const std::optional<T> low = bound(1, least), high = bound(2, most);
    return {low || high ? clamp(given.floats(0), low, high) : given.floats(0)};
  };
}

template <class T>
Operator<T> where_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> std::vector<Value<T>> {
    given.check_broadcast({0, 1, 2});
    const Mask& condition = given.conditions(0);
    if (std::holds_alternative<Variable<T>>(given.value(1)))
      return {where(condition, given.floats(1), given.floats(2))};
    const auto chosen = [&]<class E>(const Array<E>& a, const Array<E>& b) {
      const Shape both = xgrad::detail::broadcast_shape("X and Y", a.shape(), b.shape());
      const Shape shape = xgrad::detail::broadcast_shape("condition and the others", condition.shape(), both);
      const Mask is_first = stretched(condition, shape);
      const Array<E> first = stretched(a, shape);
      Array<E> y = stretched(b, shape);
      for (std::size_t i = 0; i < y.size(); ++i)
        if (is_first.data()[i]) y.data()[i] = first.data()[i];
      return y;
    };
    if (std::holds_alternative<Ids>(given.value(1))) return {chosen(given.integers(1), given.integers(2))};
    return {chosen(given.conditions(1), given.conditions(2))};
  };
}

/// The numbers of a floating-point format: so many digits, the least exponent, the largest number.
struct Format {
  int digits, least_exponent;
  double largest;
};

constexpr Format half{11, -14, 65504}, bfloat16{8, -126, 0x1.fep127};

/// The nearest number of the format; of two that are as near, the even one.
template <class T>
T nearest(T x, const Format& format) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), format.least_exponent) - (format.digits - 1);
  const T rounded = std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
  return std::abs(rounded) <= static_cast<T>(format.largest)
             ? rounded
             : std::copysign(std::numeric_limits<T>::infinity(), x);
}

constexpr Op cast_op("cast", {"x"});

/// Floats rounded to a narrower format; dx = dy, as if they were not.
template <class T>
Variable<T> rounded(const Variable<T>& x, const Format& format) {
  Variable<T> y(mapped<T>(x.value(), [&](T element) { return nearest(element, format); }));
  return record<T>(cast_op, std::move(y), Inputs(x), Saved(),
                   [](Variable<T> dy, Needs) -> Grads<T, 1> { return {dy}; });
}

/// Among integers and among conditions nothing changes: there is one type of each. Floats are rounded to
/// narrower ones, and stay T.
template <class T>
Operator<T> cast(const NodeDescription& node) {
  const std::int64_t to = node.attributes.integer("to", 0);
  const std::optional<DType> dtype = dtype_of_data_type(to);
  const auto is_among = [&](std::initializer_list<DType> types) {
    return dtype && std::ranges::find(types, *dtype) != types.end();
  };
  if (is_among({DType::F32, DType::F64, DType::F16, DType::BF16})) {
    const std::optional<Format> format = dtype == DType::F16    ? std::optional(half)
                                         : dtype == DType::BF16 ? std::optional(bfloat16)
                                                                : std::nullopt;
    return [format](const Arguments<T>& given) -> std::vector<Value<T>> {
      const auto as_floats = []<class A>(const A& x) {
        if constexpr (std::is_same_v<A, Variable<T>>) {
          return x;
        } else {
          return Variable<T>(mapped<T>(x, [](auto element) { return static_cast<T>(element); }));
        }
      };
      const Variable<T> floats = std::visit(as_floats, given.value(0));
      return {format ? rounded(floats, *format) : floats};
    };
  }
  if (is_among({DType::I64, DType::I32})) {
    return [](const Arguments<T>& given) -> std::vector<Value<T>> {
      return std::visit(
          []<class A>(const A& x) -> std::vector<Value<T>> {
            if constexpr (std::is_same_v<A, Variable<T>>) {
              return {mapped<std::int64_t>(x.value(), to_integer<T>)};
            } else {
              return {
                  mapped<std::int64_t>(x, [](auto element) { return static_cast<std::int64_t>(element); })};
            }
          },
          given.value(0));
    };
  }
  if (is_among({DType::BOOL})) {
    return [](const Arguments<T>& given) -> std::vector<Value<T>> {
      return std::visit(
          []<class A>(const A& x) -> std::vector<Value<T>> {
            const auto is_set = [](auto element) { return element != 0; };
            if constexpr (std::is_same_v<A, Variable<T>>) {
              return {mapped<bool>(x.value(), is_set)};
            } else {
              return {mapped<bool>(x, is_set)};
            }
          },
          given.value(0));
    };
  }
  fail<ValueError>("a cast to ", name_of_data_type(to), " is not supported");
}

template <class T>
Operator<T> not_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> std::vector<Value<T>> {
    return {mapped<bool>(given.conditions(0), std::logical_not())};
  };
}

}  // namespace

template <class T>
void add_elementwise_operators(OperatorTable<T>& table) {
  using V = Variable<T>;
  using Node = const NodeDescription&;
  table["Sqrt"] = unary<T, sqrt<T>>;
  table["Exp"] = unary<T, exp<T>>;
  table["Log"] = unary<T, log<T>>;
  table["Erf"] = unary<T, erf<T>>;
  table["Tanh"] = unary<T, tanh<T>>;
  table["Sigmoid"] = unary<T, sigmoid<T>>;
  table["Relu"] = unary<T, relu<T>>;
  table["Reciprocal"] = unary<T, reciprocal<T>>;
  table["Sin"] = unary<T, sin<T>>;
  table["Cos"] = unary<T, cos<T>>;
  table["Floor"] = unary<T, floor<T>>;
  table["Ceil"] = unary<T, ceil<T>>;
  table["Round"] = unary<T, round<T>>;
  table["Sign"] = unary<T, sign<T>>;
  table["Neg"] = negative<T>;
  table["Abs"] = absolute<T>;
  table["Gelu"] = gelu_operator<T>;
  table["LeakyRelu"] = with_alpha<T, leaky_relu<T>, 1>;
  table["Elu"] = with_alpha<T, elu<T>, 100>;
  table["Clip"] = clip<T>;
  table["Add"] = [](Node) {
    return binary<T>([](const V& a, const V& b) { return a + b; },
                     [](std::int64_t a, std::int64_t b) { return wrapped(a, b, std::plus()); });
  };
  table["Sub"] = [](Node) {
    return binary<T>([](const V& a, const V& b) { return a - b; },
                     [](std::int64_t a, std::int64_t b) { return wrapped(a, b, std::minus()); });
  };
  table["Mul"] = [](Node) {
    return binary<T>([](const V& a, const V& b) { return a * b; },
                     [](std::int64_t a, std::int64_t b) { return wrapped(a, b, std::multiplies()); });
  };
  table["Div"] = [](Node) { return binary<T>([](const V& a, const V& b) { return a / b; }, quotient); };
  table["Min"] = [](Node) {
    return variadic<T>([](const V& a, const V& b) { return minimum(a, b); },
                       [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  };
  table["Max"] = [](Node) {
    return variadic<T>([](const V& a, const V& b) { return maximum(a, b); },
                       [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  };
  table["Pow"] = power<T>;
  table["Equal"] = [](Node) { return comparison<T>(std::equal_to()); };
  table["Less"] = [](Node) { return comparison<T>(std::less()); };
  table["LessOrEqual"] = [](Node) { return comparison<T>(std::less_equal()); };
  table["Greater"] = [](Node) { return comparison<T>(std::greater()); };
  table["GreaterOrEqual"] = [](Node) { return comparison<T>(std::greater_equal()); };
  table["And"] = [](Node) { return logical<T>(std::logical_and()); };
  table["Or"] = [](Node) { return logical<T>(std::logical_or()); };
  table["Xor"] = [](Node) { return logical<T>(std::not_equal_to()); };
  table["Not"] = not_operator<T>;
  table["Where"] = where_operator<T>;
  table["Cast"] = cast<T>;
}

template void add_elementwise_operators(OperatorTable<float>&);
template void add_elementwise_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
