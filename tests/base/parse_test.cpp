#include <cstdint>
#include <locale>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/base/detail/text/parse.hpp>
#include <xgrad/base/random.hpp>

namespace parse_test {

using xgrad::detail::parsed;

TEST(ParseTest, TheWholeTextMustBeANumber) {
  EXPECT_EQ(parsed<std::int64_t>("-12"), -12);
  EXPECT_EQ(parsed<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parsed<double>("-1.5e-3"), -1.5e-3);
  EXPECT_EQ(parsed<double>("12"), 12);
  EXPECT_EQ(parsed<double>("0.1"), 0.1);
  for (const std::string text : {"", " 1", "1 ", "1x", "x", "-", "1,5"}) {
    EXPECT_EQ(parsed<std::int64_t>(text), std::nullopt) << text;
    EXPECT_EQ(parsed<double>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parsed<std::int64_t>("1.5"), std::nullopt);
}

TEST(ParseTest, NumbersOutOfRangeAreNone) {
  EXPECT_EQ(parsed<std::uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parsed<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parsed<std::int8_t>("128"), std::nullopt);
  EXPECT_EQ(parsed<double>("1e999"), std::nullopt);
}

/// As in German: a comma stands before the fraction, and dots between thousands.
struct German : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(ParseTest, NumbersAreTheSameInEveryLocale) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new German));
  const auto number = parsed<double>("1.5"), none = parsed<double>("1,5");
  xgrad::Generator generator(3), read(4);
  generator.normal();  // another is cached, as text of the state
  const std::string state = generator.get_state();
  EXPECT_NO_THROW(read.set_state(state));
  std::locale::global(before);
  EXPECT_EQ(number, 1.5);
  EXPECT_EQ(none, std::nullopt);
  EXPECT_EQ(read.get_state(), state);
}

}  // namespace parse_test
