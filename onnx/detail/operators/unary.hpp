#pragma once

#include <vector>

#include "../../../ops/pointwise/activations.hpp"
#include "../../../ops/pointwise/elementwise.hpp"
#include "../../../ops/pointwise/rounding.hpp"
#include "../../../ops/pointwise/trigonometry.hpp"

namespace xgrad::onnx::detail {

/// A function of each element that is an operator of ONNX, without attributes.
template <class T>
struct UnaryOperator {
  const OpInfo* op;
  const char* name;  ///< that of ONNX
  Variable<T> (*function)(const Variable<T>&);
};

/// All of them. The exporter writes the operator for the op, the importer calls the function for the
/// operator, and the tests do both.
template <class T>
const std::vector<UnaryOperator<T>>& unary_operators() {
  static const std::vector<UnaryOperator<T>> all = {
      {&ops::abs, "Abs", abs<T>},
      {&ops::acos, "Acos", acos<T>},
      {&ops::acosh, "Acosh", acosh<T>},
      {&ops::asin, "Asin", asin<T>},
      {&ops::asinh, "Asinh", asinh<T>},
      {&ops::atan, "Atan", atan<T>},
      {&ops::atanh, "Atanh", atanh<T>},
      {&ops::ceil, "Ceil", ceil<T>},
      {&ops::cos, "Cos", cos<T>},
      {&ops::cosh, "Cosh", cosh<T>},
      {&ops::erf, "Erf", erf<T>},
      {&ops::exp, "Exp", exp<T>},
      {&ops::floor, "Floor", floor<T>},
      {&ops::hardswish, "HardSwish", hardswish<T>},
      {&ops::log, "Log", log<T>},
      {&ops::reciprocal, "Reciprocal", reciprocal<T>},
      {&ops::relu, "Relu", relu<T>},
      {&ops::round, "Round", round<T>},
      {&ops::sigmoid, "Sigmoid", sigmoid<T>},
      {&ops::sign, "Sign", sign<T>},
      {&ops::sin, "Sin", sin<T>},
      {&ops::sinh, "Sinh", sinh<T>},
      {&ops::softsign, "Softsign", softsign<T>},
      {&ops::sqrt, "Sqrt", sqrt<T>},
      {&ops::tan, "Tan", tan<T>},
      {&ops::tanh, "Tanh", tanh<T>},
  };
  return all;
}

}  // namespace xgrad::onnx::detail
