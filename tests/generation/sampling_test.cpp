// The choice of the next token.

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/base/error.hpp>
#include <xgrad/generation/sampling.hpp>

#include "expect_error.hpp"

namespace sampling_test {

using xgrad::Generator, xgrad::ValueError, xgrad::generation::next_token, xgrad::generation::skip_token;
using xgrad_tests::message_of;
using Row = std::vector<std::int64_t>;

constexpr std::size_t size = 500;

/// Three rows of logits that are exact in float.
std::vector<float> logits_of(std::size_t row) {
  std::vector<float> logits;
  for (std::size_t i = row * size; i < (row + 1) * size; ++i)
    logits.push_back(static_cast<float>(i * i % 127) / 16);
  return logits;
}

/// Of torch.manual_seed(12) and torch.multinomial(torch.softmax(logits, -1), 1), six times.
const std::vector<Row> of_pytorch{{49, 240, 132},  {154, 335, 35},  {73, 146, 89},
                                  {297, 150, 259}, {332, 364, 231}, {392, 23, 319}};

TEST(NextToken, IsDrawnAsPyTorchDrawsIt) {
  Generator generator(12);
  for (const Row& expected : of_pytorch) {
    Row drawn;
    for (std::size_t row = 0; row < 3; ++row)
      drawn.push_back(next_token<float>({.do_sample = true}, logits_of(row), generator));
    EXPECT_EQ(drawn, expected);
  }
}

TEST(NextToken, RowsOfTextsThatHaveEndedAreSkipped) {
  Generator generator(12);
  for (const Row& expected : of_pytorch) {
    skip_token(size, generator);
    EXPECT_EQ(next_token<float>({.do_sample = true}, logits_of(1), generator), expected[1]);
    skip_token(size, generator);
  }
}

TEST(NextToken, IsNeverOneThatIsExcluded) {
  std::vector<double> logits(100, -std::numeric_limits<double>::infinity());
  logits[17] = -3;
  Generator generator(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(next_token<double>({.do_sample = true}, logits, generator), 17);
}

TEST(NextToken, IsTheFirstOfTheMostProbableWithoutSampling) {
  Generator generator(12);
  const std::string before = generator.get_state();
  const std::vector<float> logits{0, 3, 1, 3};
  EXPECT_EQ(next_token<float>({}, logits, generator), 1);
  EXPECT_EQ(generator.get_state(), before);
}

TEST(NextToken, NeedsAFiniteLargestLogit) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const bool do_sample : {false, true}) {
    const auto message = [&](const std::vector<float>& logits) {
      return message_of<ValueError>([&] { next_token<float>({.do_sample = do_sample}, logits); });
    };
    EXPECT_EQ(message({1, std::nanf("")}), "generation: logits must be numbers, got nan");
    EXPECT_EQ(message({1, infinity}), "generation: the largest logit must be finite, got inf");
    EXPECT_EQ(message({-infinity, -infinity}), "generation: the largest logit must be finite, got -inf");
    EXPECT_EQ(message({}), "generation: there must be logits, got none");
  }
}

}  // namespace sampling_test
