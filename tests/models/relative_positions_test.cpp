#include <xgrad/models/relative_positions.hpp>

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/autograd/gradcheck.hpp>

#include "data_folder.hpp"
#include "expect_error.hpp"

namespace {

using nlohmann::json;
using xgrad::Array, xgrad::Ids, xgrad::Variable;
using xgrad_tests::message_of;

TEST(RelativePositionsTest, BucketsAreThoseOfHuggingFace) {
  const json cases =
      json::parse(std::ifstream(xgrad_tests::data_folder("positions") + "cases.json")).at("buckets");
  ASSERT_GE(cases.size(), 5u);
  for (const json& test : cases) {
    const Ids found = xgrad::relative_position_buckets(test.at("queries"), test.at("keys"),
                                                       {.num_buckets = test.at("num_buckets"),
                                                        .max_distance = test.at("max_distance"),
                                                        .bidirectional = test.at("bidirectional")});
    const json& expected = test.at("buckets");
    for (std::size_t i = 0; i < found.shape(0); ++i) {
      for (std::size_t j = 0; j < found.shape(1); ++j)
        EXPECT_EQ(found(i, j), expected[i][j].get<std::int64_t>())
            << i << ", " << j << " of " << found.shape(1);
    }
  }
}

TEST(RelativePositionsTest, TheBiasOfAHeadIsAColumnOfTheTable) {
  const Ids buckets{{0, 2}, {1, 0}};
  const Variable<double> table(Array<double>{{1, 2}, {3, 4}, {5, 6}}, true);
  EXPECT_EQ(relative_position_bias(table, buckets).value(),
            (Array<double>{{{1, 5}, {3, 1}}, {{2, 6}, {4, 2}}}));
  EXPECT_TRUE(xgrad::gradcheck(
                  [&](const std::vector<Variable<double>>& x) {
                    const Variable<double> bias = relative_position_bias(x[0], buckets);
                    return bias * bias;
                  },
                  {table})
                  .ok);
}

TEST(RelativePositionsTest, RefusesWhatMakesNoBuckets) {
  EXPECT_EQ(message_of<xgrad::ValueError>([] { xgrad::relative_position_buckets(2, 2, {.num_buckets = 3}); }),
            "relative_position_buckets: num_buckets must be at least 4, got 3");
  EXPECT_EQ(message_of<xgrad::ValueError>(
                [] { xgrad::relative_position_buckets(2, 2, {.num_buckets = 32, .max_distance = 8}); }),
            "relative_position_buckets: max_distance must be above 8, got 8");
  EXPECT_EQ(message_of<xgrad::ShapeError>([] {
              xgrad::relative_position_bias(Variable<float>(Array<float>{1.0f, 2.0f}), Ids{{0, 1}});
            }),
            "relative_position_bias: table must be (num_buckets, heads) and buckets (queries, keys), got (2) "
            "and (1, 2)");
}

}  // namespace
