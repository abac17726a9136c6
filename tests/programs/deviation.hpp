#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include <xgrad/base/array.hpp>

namespace xgrad_tests {

/// The element that is furthest off, and how far, in units of what is allowed there: above 1 is wrong.
struct Deviation {
  double excess = 0, distance = 0;
  std::size_t at = 0;
};

/// Compares arrays of one shape; allowed(i) is the largest distance that element i may have.
template <class Got, class Want, class Allowed>
Deviation worst_deviation(const xgrad::Array<Got>& got, const xgrad::Array<Want>& want,
                          const Allowed& allowed) {
  Deviation worst;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = got.data()[i], b = want.data()[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const bool comparable = std::isfinite(a) && std::isfinite(b);
    const double distance = comparable ? std::abs(a - b) : std::numeric_limits<double>::infinity();
    const double excess = distance / allowed(i);
    if (!(excess <= worst.excess)) worst = {excess, distance, i};
  }
  return worst;
}

}  // namespace xgrad_tests
