#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/base/detail/text/number_text.hpp>

namespace number_text_test {

using xgrad::detail::formatted;
using xgrad::detail::Notation;
using xgrad::detail::shortest_text;

TEST(NumberTextTest, TheShortestTextOfEitherNotation) {
  EXPECT_EQ(shortest_text(0), "0");
  EXPECT_EQ(shortest_text(-1), "-1");
  EXPECT_EQ(shortest_text(0.1), "0.1");
  EXPECT_EQ(shortest_text(-0.001), "-0.001");
  EXPECT_EQ(shortest_text(0.00001), "1e-05");
  EXPECT_EQ(shortest_text(100000), "1e+05");
  EXPECT_EQ(shortest_text(123456), "123456");
  EXPECT_EQ(shortest_text(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(shortest_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(shortest_text(12345678.9), "12345678.9");
  EXPECT_EQ(shortest_text(1e23), "1e+23");
  EXPECT_EQ(shortest_text(9007199254740992.0), "9007199254740992");
  EXPECT_EQ(shortest_text(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
}

TEST(NumberTextTest, AsManyDigitsAsAsked) {
  EXPECT_EQ(formatted(2.5, Notation::fixed, 0), "2");
  EXPECT_EQ(formatted(-1.25, Notation::fixed, 4), "-1.2500");
  EXPECT_EQ(formatted(12345.678, Notation::scientific, 3), "1.235e+04");
  EXPECT_EQ(formatted(std::numeric_limits<double>::infinity(), Notation::fixed, 4), "inf");
}

}  // namespace number_text_test
