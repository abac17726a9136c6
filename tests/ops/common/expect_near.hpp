#pragma once

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/base/array.hpp>

namespace xgrad_tests {

/// |a - b| <= tolerance (1 + |b|) everywhere; nan equals nan.
template <class A, class B>
void expect_near(const xgrad::Array<A>& a, const xgrad::Array<B>& b, double tolerance, const char* what) {
  ASSERT_EQ(xgrad::to_string(a.shape()), xgrad::to_string(b.shape())) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a.data()[i], y = b.data()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_LE(std::abs(x - y), tolerance * (1 + std::abs(y)))
        << what << ", element " << i << ": " << x << ", not " << y;
  }
}

}  // namespace xgrad_tests
