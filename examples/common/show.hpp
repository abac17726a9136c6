#pragma once

// For the examples in numerics/: numbers that every language can make, and results that are printed or timed.

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <xgrad/xgrad.hpp>

using Array = xgrad::Array<double>;
using Variable = xgrad::Variable<double>;

/// sin(first), sin(first + 1), ... in this shape: numbers without a pattern.
Array wave(const xgrad::Shape& shape, double first = 1);

/// show(what, f) prints f's result as one number, of arrays the sum of their elements times wave(). With the
/// option --time it prints how many microseconds f takes on one thread, the median of calls, and by how many
/// MB the process grew meanwhile; --only WHAT leaves all others out.
class Show {
 public:
  /// Reads the command line, and ends the program if there is something wrong with it.
  Show(int argc, char** argv);

  Show(const Show&) = delete;
  /// Ends the program with an error if there was no result of the name that was asked for.
  ~Show();

  void operator()(const std::string& what, const std::function<Array()>& f) const;

 private:
  bool time_ = false;
  mutable bool found_ = false;
  std::string only_;
};
