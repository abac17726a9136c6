// Operators on single elements, which broadcast.

#include <cmath>
#include <functional>
#include <limits>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../graph/record.hpp"
#include "../../../ops/index/where.hpp"
#include "../../../ops/pointwise/activations.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/pointwise/broadcast.hpp"
#include "../../../ops/pointwise/elementwise.hpp"
#include "../../../ops/pointwise/rounding.hpp"
#include "../arrays.hpp"
#include "../types.hpp"
#include "operators.hpp"
#include "unary.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail, xgrad::detail::in_quotes;

template <class T>
MakeOperator<T> unary(Variable<T> (*f)(const Variable<T>&)) {
  return [f](const NodeDescription&) -> Operator<T> {
    return [f](const Arguments<T>& given) -> Results<T> { return {f(given.floats(0))}; };
  };
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

/// An integer as one of a narrower type, as a conversion in C makes it.
std::int64_t narrowed(std::int64_t x, std::int64_t type) {
  switch (type) {
    case data_type::uint8:
      return static_cast<std::uint8_t>(x);
    case data_type::int8:
      return static_cast<std::int8_t>(x);
    case data_type::uint16:
      return static_cast<std::uint16_t>(x);
    case data_type::int16:
      return static_cast<std::int16_t>(x);
    case data_type::int32:
      return static_cast<std::int32_t>(x);
    case data_type::uint32:
      return static_cast<std::uint32_t>(x);
    default:
      return x;
  }
}

/// `floats` of two Variables, or `integers` of the elements of two arrays.
template <class T, class Floats, class Integers>
Operator<T> binary(Floats floats, Integers integers) {
  return [=](const Arguments<T>& given) -> Results<T> {
    given.check_broadcast({0, 1});
    if (std::holds_alternative<Ids>(given.value(0)))
      return {zipped<std::int64_t>(given.integers(0), given.integers(1), integers)};
    return {floats(given.floats(0), given.floats(1))};
  };
}

/// Of any number of operands.
template <class T, class Floats, class Integers>
Operator<T> variadic(Floats floats, Integers integers) {
  return [both = binary<T>(floats, integers)](const Arguments<T>& given) -> Results<T> {
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
  return [f](const Arguments<T>& given) -> Results<T> {
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
  return [f](const Arguments<T>& given) -> Results<T> {
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

/// Modulo 2^64, as products of integers are; towards zero for negative exponents.
std::int64_t power_of_integers(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return std::numeric_limits<std::int64_t>::min();
    const bool is_odd = exponent % 2 != 0;
    return base == 1 || (base == -1 && !is_odd) ? 1 : base == -1 ? -1 : 0;
  }
  std::uint64_t power = 1, square = static_cast<std::uint64_t>(base);
  for (; exponent > 0; exponent /= 2, square *= square)
    if (exponent % 2 != 0) power *= square;
  return static_cast<std::int64_t>(power);
}

template <class T>
Ids integer_power(const Arguments<T>& given) {
  if (std::holds_alternative<Ids>(given.value(1)))
    return zipped<std::int64_t>(given.integers(0), given.integers(1), power_of_integers);
  const auto as_doubles = [](const auto& x) {
    return mapped<double>(x, [](auto e) { return static_cast<double>(e); });
  };
  return zipped<std::int64_t>(as_doubles(given.integers(0)), as_doubles(given.floats(1).value()),
                              [](double b, double e) { return to_integer(std::pow(b, e)); });
}

template <class T>
Operator<T> power(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
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
  return [](const Arguments<T>& given) -> Results<T> {
    if (!std::holds_alternative<Ids>(given.value(0))) return {neg(given.floats(0))};
    return {
        mapped<std::int64_t>(given.integers(0), [](std::int64_t x) { return wrapped(0, x, std::minus()); })};
  };
}

template <class T>
Operator<T> sign_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    if (!std::holds_alternative<Ids>(given.value(0))) return {sign(given.floats(0))};
    return {mapped<std::int64_t>(given.integers(0),
                                 [](std::int64_t x) { return std::int64_t{x > 0} - std::int64_t{x < 0}; })};
  };
}

/// The remainder with the sign of the divisor, of integers only, or with that of the dividend.
template <class T>
Operator<T> modulo(const NodeDescription& node) {
  const bool is_fmod = node.attributes.integer("fmod", 0) != 0;
  return [is_fmod](const Arguments<T>& given) -> Results<T> {
    given.check_broadcast({0, 1});
    if (!std::holds_alternative<Ids>(given.value(0))) {
      if (!is_fmod) fail<ValueError>("floats need the attribute fmod");
      return {fmod(given.floats(0), given.floats(1))};
    }
    return {zipped<std::int64_t>(given.integers(0), given.integers(1), [=](std::int64_t a, std::int64_t b) {
      if (b == 0) fail<ValueError>("integers must not be divided by 0");
      if (b == -1) return std::int64_t{0};
      const std::int64_t rest = a % b;
      return !is_fmod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    })};
  };
}

template <class T>
Operator<T> is_nan(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    return {mapped<bool>(given.floats(0).value(), [](T x) { return std::isnan(x); })};
  };
}

template <class T>
Operator<T> is_infinite(const NodeDescription& node) {
  const bool above = node.attributes.integer("detect_positive", 1) != 0;
  const bool below = node.attributes.integer("detect_negative", 1) != 0;
  return [=](const Arguments<T>& given) -> Results<T> {
    return {
        mapped<bool>(given.floats(0).value(), [=](T x) { return std::isinf(x) && (x > 0 ? above : below); })};
  };
}

/// x where x > 0, else slope x; the slope broadcasts.
template <class T>
Operator<T> prelu_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    given.check_broadcast({0, 1});
    const Variable<T>& x = given.floats(0);
    return {where(mapped<bool>(x.value(), [](T e) { return e > 0; }), x, x * given.floats(1))};
  };
}

/// min(max(alpha x + beta, 0), 1).
template <class T>
Operator<T> hard_sigmoid(const NodeDescription& node) {
  const T alpha = static_cast<T>(node.attributes.number("alpha", 0.2));
  const T beta = static_cast<T>(node.attributes.number("beta", 0.5));
  return [=](const Arguments<T>& given) -> Results<T> {
    return {clamp(given.floats(0) * alpha + beta, T{0}, T{1})};
  };
}

/// gamma x where x > 0, else gamma alpha (e^x - 1).
template <class T>
Operator<T> selu_operator(const NodeDescription& node) {
  const double alpha = node.attributes.number("alpha", 1.67326319217681884765625);
  const double gamma = node.attributes.number("gamma", 1.05070102214813232421875);
  return [=](const Arguments<T>& given) -> Results<T> {
    return {elu(given.floats(0), static_cast<T>(alpha)) * static_cast<T>(gamma)};
  };
}

/// x + bias below -lambd, x - bias above lambd, else 0.
template <class T>
Operator<T> shrink(const NodeDescription& node) {
  const T bias = static_cast<T>(node.attributes.number("bias", 0));
  const T lambda = static_cast<T>(node.attributes.number("lambd", 0.5));
  return [=](const Arguments<T>& given) -> Results<T> {
    const Variable<T>& x = given.floats(0);
    const Variable<T> above =
        where(mapped<bool>(x.value(), [=](T e) { return e > lambda; }), x - bias, Variable<T>(T{0}));
    return {where(mapped<bool>(x.value(), [=](T e) { return e < -lambda; }), x + bias, above)};
  };
}

/// ln(1 + e^x).
template <class T>
Operator<T> softplus_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> { return {-log_sigmoid(-given.floats(0))}; };
}

template <class T>
Variable<T> swish(const Variable<T>& x, T alpha) {
  return alpha == 1 ? silu(x) : x * sigmoid(x * alpha);
}

template <class T>
Variable<T> thresholded_relu(const Variable<T>& x, T alpha) {
  return threshold(x, alpha, T{0});
}

/// The mean of any number of operands.
template <class T>
Operator<T> mean_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    Variable<T> sum = given.floats(0);
    for (std::size_t i = 1; i < given.size(); ++i) {
      given.check_result(broadcast_lengths(sum.shape(), given.floats(i).shape()));
      sum = sum + given.floats(i);
    }
    return {sum / static_cast<T>(given.size())};
  };
}

/// Bits of integers.
template <class T, class F>
Operator<T> bitwise(F f) {
  return [f](const Arguments<T>& given) -> Results<T> {
    given.check_broadcast({0, 1});
    return {zipped<std::int64_t>(given.integers(0), given.integers(1), f)};
  };
}

template <class T>
Operator<T> bitwise_not(const NodeDescription& node) {
  const std::int64_t type = node.type(0);
  return [type](const Arguments<T>& given) -> Results<T> {
    return {mapped<std::int64_t>(given.integers(0), [=](std::int64_t x) { return narrowed(~x, type); })};
  };
}

template <class T>
Operator<T> absolute(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    if (!std::holds_alternative<Ids>(given.value(0))) return {abs(given.floats(0))};
    return {mapped<std::int64_t>(given.integers(0),
                                 [](std::int64_t x) { return x < 0 ? wrapped(0, x, std::minus()) : x; })};
  };
}

template <class T>
Operator<T> gelu_operator(const NodeDescription& node) {
  const std::string approximate = node.attributes.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    fail<ValueError>("approximate must be none or tanh, got ", in_quotes(approximate));
  const Gelu form = approximate == "tanh" ? Gelu::tanh : Gelu::none;
  return [form](const Arguments<T>& given) -> Results<T> { return {gelu(given.floats(0), form)}; };
}

template <class T, Variable<T> (*f)(const Variable<T>&, T), int otherwise_in_hundredths>
Operator<T> with_alpha(const NodeDescription& node) {
  const double alpha = node.attributes.number("alpha", otherwise_in_hundredths / 100.0);
  return [alpha](const Arguments<T>& given) -> Results<T> {
    return {f(given.floats(0), static_cast<T>(alpha))};
  };
}

/// Bounds are attributes before opset 11, inputs since.
template <class T>
Operator<T> clip(const NodeDescription& node) {
  std::optional<T> least, most;
  if (node.opset < 11 && node.attributes.has("min")) least = static_cast<T>(node.attributes.number("min", 0));
  if (node.opset < 11 && node.attributes.has("max")) most = static_cast<T>(node.attributes.number("max", 0));
  return [least, most](const Arguments<T>& given) -> Results<T> {
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
  return [](const Arguments<T>& given) -> Results<T> {
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

template <class T>
Operator<T> cast_to_floats(std::int64_t type) {
  const std::optional<Format> format = type == data_type::float16    ? std::optional(half)
                                       : type == data_type::bfloat16 ? std::optional(bfloat16)
                                                                     : std::nullopt;
  return [format](const Arguments<T>& given) -> Results<T> {
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

template <class T>
Operator<T> cast_to_integers(std::int64_t type) {
  return [type](const Arguments<T>& given) -> Results<T> {
    return std::visit(
        [type]<class A>(const A& x) -> Results<T> {
          if constexpr (std::is_same_v<A, Variable<T>>) {
            return {mapped<std::int64_t>(x.value(), [=](T e) { return narrowed(to_integer(e), type); })};
          } else {
            return {mapped<std::int64_t>(
                x, [=](auto e) { return narrowed(static_cast<std::int64_t>(e), type); })};
          }
        },
        given.value(0));
  };
}

template <class T>
Operator<T> cast_to_conditions() {
  return [](const Arguments<T>& given) -> Results<T> {
    return std::visit(
        []<class A>(const A& x) -> Results<T> {
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

/// Floats are rounded to narrower ones, and stay T; integers wrap around in narrower ones, and stay
/// std::int64_t.
template <class T>
Operator<T> cast_to(std::int64_t type) {
  const std::optional<DType> dtype = dtype_of_data_type(type);
  if (!dtype || dtype == DType::C64)
    fail<ValueError>("a cast to ", name_of_data_type(type), " is not supported");
  switch (type) {
    case data_type::float32:
    case data_type::float64:
    case data_type::float16:
    case data_type::bfloat16:
      return cast_to_floats<T>(type);
    case data_type::boolean:
      return cast_to_conditions<T>();
    default:
      return cast_to_integers<T>(type);
  }
}

/// `saturate` and `round_mode` are for floats of 8 bits only.
template <class T>
Operator<T> cast(const NodeDescription& node) {
  node.attributes.ignore("saturate");
  node.attributes.ignore("round_mode");
  return cast_to<T>(node.attributes.integer("to", 0));
}

template <class T>
Operator<T> cast_like(const NodeDescription& node) {
  node.attributes.ignore("saturate");
  node.attributes.ignore("round_mode");
  return cast_to<T>(node.type(1));
}

template <class T>
Operator<T> not_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    return {mapped<bool>(given.conditions(0), std::logical_not())};
  };
}

}  // namespace

template <class T>
void add_elementwise_operators(OperatorTable<T>& table) {
  using V = Variable<T>;
  using Node = const NodeDescription&;
  for (const UnaryOperator<T>& one : unary_operators<T>()) table[one.name] = unary<T>(one.function);
  table["Sign"] = sign_operator<T>;  // also of integers, as Abs
  table["Abs"] = absolute<T>;
  table["Mish"] = unary<T>(mish<T>);
  table["Softplus"] = softplus_operator<T>;
  table["HardSigmoid"] = hard_sigmoid<T>;
  table["Selu"] = selu_operator<T>;
  table["Shrink"] = shrink<T>;
  table["PRelu"] = prelu_operator<T>;
  table["Neg"] = negative<T>;
  table["Gelu"] = gelu_operator<T>;
  table["LeakyRelu"] = with_alpha<T, leaky_relu<T>, 1>;
  table["Elu"] = with_alpha<T, elu<T>, 100>;
  table["Celu"] = with_alpha<T, celu<T>, 100>;
  table["Swish"] = with_alpha<T, swish<T>, 100>;
  table["ThresholdedRelu"] = with_alpha<T, thresholded_relu<T>, 100>;
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
  table["Sum"] = [](Node) {
    return variadic<T>([](const V& a, const V& b) { return a + b; },
                       [](std::int64_t a, std::int64_t b) { return wrapped(a, b, std::plus()); });
  };
  table["Mean"] = mean_operator<T>;
  table["Mod"] = modulo<T>;
  table["BitwiseAnd"] = [](Node) { return bitwise<T>(std::bit_and()); };
  table["BitwiseOr"] = [](Node) { return bitwise<T>(std::bit_or()); };
  table["BitwiseXor"] = [](Node) { return bitwise<T>(std::bit_xor()); };
  table["BitwiseNot"] = bitwise_not<T>;
  table["IsNaN"] = is_nan<T>;
  table["IsInf"] = is_infinite<T>;
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
  table["CastLike"] = cast_like<T>;
}

template void add_elementwise_operators(OperatorTable<float>&);
template void add_elementwise_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
