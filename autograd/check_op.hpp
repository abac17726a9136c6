#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gradcheck.hpp"

namespace xgrad {

struct CheckOpOptions {
  detail::ByName by_name = {};
  GradcheckOptions gradcheck = {};  ///< of the derivatives; its seed is that of all random numbers
  /// The same function in float, whose value and gradients must agree with those in double.
  std::function<Variable<float>(const std::vector<Variable<float>>&)> in_float = {};
  double atol = 1e-11;             ///< two forms in double: |a - b| <= atol (1 + |b|)
  double float_atol = 5e-5;        ///< the same for a form in float
  double float_value_atol = 1e-5;  ///< the same for the value in float, compared with that in double
  /// Larger inputs, whose arrays kernels divide among threads, for the check "threads".
  std::vector<Variable<double>> large = {};
  std::size_t threads = 3;         ///< results have the same bits for 1 to this number of threads
  bool second_derivatives = true;  ///< false for a backward marked by once()
  bool unrecorded = true;          ///< false for a function that reads leaves which are no inputs
  bool nan = true;                 ///< false for a function that does not propagate nan
  bool empty = true;               ///< false for a function of fixed lengths that does not check them
  bool wrong_shapes = true;        ///< the same
  bool broadcast = true;           ///< the same, for operands of length 1
};

/// A check that failed.
struct [[nodiscard]] OpFailure {
  std::string check;    ///< "first derivatives"
  std::string details;  ///< "input 0, element (2): analytic -2.55269, numeric -5.10539, ..."
};

/// Result of check_op(); true if all checks passed.
struct [[nodiscard]] CheckOpReport {
  std::vector<OpFailure> failures;
  explicit operator bool() const { return failures.empty(); }
  /// A line "check: details" for each failure.
  std::string text() const;
};

/// Checks a differentiable function as the project's own ops are checked, each time with fresh leaves that
/// have the elements of `inputs`, which must be leaves that require gradients:
///
/// - "first derivatives": gradcheck(); "second derivatives": gradgradcheck()
/// - "recorded gradients": the same gradients with create_graph as without
/// - "single ops": the same value and gradients where fused() ops run in their composed form
/// - "float": the same value and gradients in float up to rounding
/// - "repetition", "threads": the same bits of both in a second call, and for any number of threads
/// - "one input alone": the same gradient of an input if no other requires one
/// - "unrecorded": no graph, and the same value, under NoGrad and for inputs that require no gradients
/// - "inputs": the elements of the inputs do not change
/// - "memory": no node or array is alive after its last handle
/// - "nan": what changes with an element is nan if the element is nan
/// - "empty", "wrong shapes": inputs with an axis of length 0, with one element more on an axis and with one
///   axis more are refused, by an exception that is derived from std::exception and has a message
///   "op: ...", or have gradients
/// - "broadcast": an input with an axis of length 1, or without its first axis, is refused likewise, or has
///   the right gradients if the result has the same shape
///
/// An exception where a result is expected fails the check; a function that reads outside its arrays may end
/// the program. Changes the number of threads of the process while it runs. Throws ValueError for inputs that
/// are not such leaves, and for threads == 0.
[[nodiscard]] CheckOpReport check_op(const CheckedFunction& f, const std::vector<Variable<double>>& inputs,
                                     const CheckOpOptions& options = {});

/// Leaves of these shapes that require gradients, for gradcheck() and check_op(). Elements are random, of
/// either sign, with absolute values from 0.5 to 1.5.
[[nodiscard]] std::vector<Variable<double>> random_inputs(const std::vector<Shape>& shapes,
                                                          std::uint64_t seed = 0);

}  // namespace xgrad
