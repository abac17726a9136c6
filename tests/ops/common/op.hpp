#pragma once

// What a file of tests/ops says of its op: the ways to call it, what they must give, and what it must refuse.
// every_op_test.cpp checks it.

#include <concepts>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/base/dims.hpp>
#include <xgrad/graph/variable.hpp>

#include "../../expect_error.hpp"

namespace xgrad_tests {

using xgrad::Array, xgrad::Dims, xgrad::Ids, xgrad::Mask, xgrad::Shape, xgrad::Variable;
using xgrad::IndexError, xgrad::ShapeError, xgrad::ValueError;

template <class T>
using Inputs = std::vector<Variable<T>>;

template <class T>
using Function = std::function<Variable<T>(const Inputs<T>&)>;

/// Computes in double, by loops of its own.
using Reference = std::function<Array<double>(const std::vector<Array<double>>&)>;

/// Where an input's elements are drawn from: [low, high], at least `gap` away from 0.
struct Range {
  double low = -2;
  double high = 2;
  double gap = 0;
};

inline constexpr Range positive{0.2, 3, 0};
inline constexpr Range away_from_zero{-2, 2, 0.3};

struct Input {
  Input(std::initializer_list<std::size_t> lengths, Range from = {}) : shape(lengths), range(from) {}
  Input(Shape of_shape, Range from = {}) : shape(std::move(of_shape)), range(from) {}

  Shape shape;
  Range range;
};

/// Elements for the input, which are the same numbers in float.
Array<double> draw(const Input& input, std::mt19937_64& random);

/// One way to call an op.
struct Case {
  std::vector<Input> inputs;
  Function<float> in_float;
  Function<double> in_double;
  Reference reference;
};

/// Calls f, of which copies share what it holds: cases are copied often, and may hold large arrays.
template <class F>
auto shared(F f) {
  return [f = std::make_shared<const F>(std::move(f))](const auto& x) { return (*f)(x); };
}

/// What the generic function f of a list of Variables is called with, and what it must give.
template <class F>
Case make_case(std::vector<Input> inputs, const F& f, Reference reference) {
  const auto call = shared(f);
  return {std::move(inputs), call, call, shared(std::move(reference))};
}

/// The case that `make` gives, but with these inputs, made when it is first called: what it holds takes long
/// to make.
template <class Make>
Case late_case(std::vector<Input> inputs, Make make) {
  const auto made = std::make_shared<std::optional<Case>>();
  const auto get = [=]() -> const Case& {
    if (!made->has_value()) *made = make();
    return **made;
  };
  return {std::move(inputs), [get](const auto& x) { return get().in_float(x); },
          [get](const auto& x) { return get().in_double(x); },
          [get](const auto& x) { return get().reference(x); }};
}

/// One case for each list of inputs.
template <class F>
std::vector<Case> make_cases(const std::vector<std::vector<Input>>& lists, const F& f,
                             const Reference& reference) {
  std::vector<Case> cases;
  for (const std::vector<Input>& inputs : lists) cases.push_back(make_case(inputs, f, reference));
  return cases;
}

/// A function of single elements, of which float must be as exact as double far from 0, too.
struct Tail {
  template <class F>
  Tail(const F& f) : in_float(f), in_double(f) {}

  Function<float> in_float;
  Function<double> in_double;
};

/// A call that must fail, and its text.
struct ErrorCase {
  std::string expected;
  std::function<std::string()> message;
};

template <class Error, class Call>
ErrorCase error(std::string expected, Call call) {
  return {std::move(expected), [call] { return message_of<Error>(call); }};
}

/// What there is to know of an op: a row is named like the op's header, or header.function.
struct Op {
  std::string name;
  std::vector<Case> cases = {};
  std::vector<ErrorCase> errors = {};
  std::vector<Case> large =
      {};  ///< of arrays that kernels divide among threads (base/detail/system/pieces.hpp)
  std::vector<Tail> tails = {};
  bool passes_nan_on = true;     ///< an input with nan makes a result with nan
  bool takes_any_length = true;  ///< also of no elements

  friend std::ostream& operator<<(std::ostream& out, const Op& op) { return out << op.name; }
};

/// Puts the rows of a header's ops into the table.
struct Rows {
  Rows(std::vector<Op> (*rows)());
};

/// All rows, by name.
const std::vector<Op>& op_table();

// For error cases and special values

inline constexpr float inf = std::numeric_limits<float>::infinity();
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Ones of this shape, which require a gradient: x(2, 3).
Variable<float> x(const Shape& shape);

template <std::integral... Lengths>
Variable<float> x(Lengths... lengths) {
  return x(Shape{static_cast<std::size_t>(lengths)...});
}

Mask mask_of(const Shape& shape, std::initializer_list<int> elements);
Ids ids_of(const Shape& shape, std::initializer_list<std::int64_t> elements);

// For large cases

/// A vector, a matrix, few long rows and many short ones.
inline const Shape long_vector{140001}, plane{517, 403}, wide{2, 140001}, tall{70001, 3};

/// True at two places of three, without the period of an axis.
Mask scattered_mask(const Shape& shape);

/// Ids in [0, length), some of them often.
Ids scattered_ids(const Shape& shape, std::size_t length);

}  // namespace xgrad_tests
