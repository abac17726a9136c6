#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <xgrad/graph/variable.hpp>

namespace xgrad_tests {

template <class T>
using Inputs = std::vector<xgrad::Variable<T>>;

template <class T>
using Function = std::function<xgrad::Variable<T>(const Inputs<T>&)>;

/// Computes in double, by loops of its own.
using Reference = std::function<xgrad::Array<double>(const std::vector<xgrad::Array<double>>&)>;

/// Where an input's elements are drawn from: [low, high], at least `gap` away from 0.
struct Range {
  double low = -2;
  double high = 2;
  double gap = 0;
};

struct Input {
  Input(std::initializer_list<std::size_t> lengths, Range from = {}) : shape(lengths), range(from) {}
  Input(xgrad::Shape of_shape, Range from = {}) : shape(std::move(of_shape)), range(from) {}

  xgrad::Shape shape;
  Range range;
};

/// One way to call an op.
struct Case {
  std::vector<Input> inputs;
  Function<float> in_float;
  Function<double> in_double;
  Reference reference;
};

/// A call that must fail, and its text.
struct ErrorCase {
  std::string expected;
  std::function<std::string()> message;
};

/// What there is to know of an op: a row is named like the op's header, or header.function.
struct Op {
  std::string name;
  std::vector<Case> cases;
  std::vector<ErrorCase> errors;

  friend std::ostream& operator<<(std::ostream& out, const Op& op) { return out << op.name; }
};

const std::vector<Op>& op_table();

}  // namespace xgrad_tests
