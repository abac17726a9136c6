#include <xgrad/models/attention/relative_positions.hpp>

#include <fstream>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/ops/attention/attention_with_weights.hpp>
#include <xgrad/ops/index/indexing.hpp>

#include "data_folder.hpp"
#include "expect_error.hpp"

namespace relative_positions_test {

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
            (Array<double>{{{{1, 5}, {3, 1}}, {{2, 6}, {4, 2}}}}));
  EXPECT_TRUE(xgrad::gradcheck(
                  [&](const std::vector<Variable<double>>& x) {
                    const Variable<double> bias = relative_position_bias(x[0], buckets);
                    return bias * bias;
                  },
                  {table})
                  .ok);
}

TEST(RelativePositionsTest, SignedBucketsAreThoseOfHuggingFace) {
  const json cases =
      json::parse(std::ifstream(xgrad_tests::data_folder("positions") + "cases.json")).at("signed_buckets");
  ASSERT_GE(cases.size(), 6u);
  for (const json& test : cases) {
    const std::size_t length = test.at("length");
    const Ids found = xgrad::signed_position_buckets(
        length, {.num_buckets = test.at("num_buckets"), .max_distance = test.at("max_distance")});
    for (std::size_t i = 0; i < length; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const auto expected = test.at("buckets")[i - j].get<std::int64_t>();
        ASSERT_EQ(found(i, j), expected) << i << ", " << j << " of " << test.at("num_buckets");
        ASSERT_EQ(found(j, i), -expected) << j << ", " << i << " of " << test.at("num_buckets");
      }
    }
  }
}

/// The sums of the definition.
Array<double> expected_disentangled(const Array<double>& q, const Array<double>& k,
                                    const Array<double>* pos_k, const Array<double>* pos_q, const Ids& rows) {
  const std::size_t heads = 2, head_dim = q.shape(2) / heads;
  Array<double> y = xt::zeros<double>({q.shape(0), heads, q.shape(1), k.shape(1)});
  for (std::size_t b = 0; b < q.shape(0); ++b) {
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t i = 0; i < q.shape(1); ++i) {
        for (std::size_t j = 0; j < k.shape(1); ++j) {
          for (std::size_t e = h * head_dim; e < (h + 1) * head_dim; ++e) {
            if (pos_k != nullptr) y(b, h, i, j) += 0.5 * q(b, i, e) * (*pos_k)(rows(i, j), e);
            if (pos_q != nullptr) y(b, h, i, j) += 0.5 * k(b, j, e) * (*pos_q)(rows(i, j), e);
          }
        }
      }
    }
  }
  return y;
}

TEST(RelativePositionsTest, ADisentangledBiasIsContentsTimesPositions) {
  xgrad::manual_seed(1);
  const auto drawn = [](const xgrad::Shape& shape) {
    return Variable<double>(xgrad::normal<double>(shape), true);
  };
  const Variable<double> q = drawn({2, 3, 4}), k = drawn({2, 4, 4}), pos_k = drawn({5, 4}),
                         pos_q = drawn({5, 4}), none;
  const Ids rows{{0, 2, 4, 1}, {3, 0, 0, 2}, {1, 3, 4, 4}};
  for (const bool has_k : {false, true}) {
    for (const bool has_q : {false, true}) {
      if (!has_k && !has_q) continue;
      const auto bias = [&](const std::vector<Variable<double>>& x) {
        return disentangled_bias(x[0], x[1], has_k ? x[2] : none, has_q ? x[3] : none, rows,
                                 {.num_heads = 2, .scale = 0.5});
      };
      const std::vector<Variable<double>> inputs{q, k, pos_k, pos_q};
      const Array<double> expected = expected_disentangled(
          q.value(), k.value(), has_k ? &pos_k.value() : nullptr, has_q ? &pos_q.value() : nullptr, rows);
      EXPECT_TRUE(xt::allclose(bias(inputs).value(), expected, 1e-14, 1e-14));
      EXPECT_TRUE(xgrad::gradcheck(
                      [&](const std::vector<Variable<double>>& x) {
                        const Variable<double> y = bias(x);
                        return y * y;
                      },
                      inputs)
                      .ok);
    }
  }
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
  EXPECT_EQ(message_of<xgrad::ValueError>([] { xgrad::signed_position_buckets(2, {.num_buckets = 1}); }),
            "signed_position_buckets: num_buckets must be 0 or at least 2, got 1");
  EXPECT_EQ(message_of<xgrad::ValueError>(
                [] { xgrad::signed_position_buckets(6, {.num_buckets = 8, .max_distance = 5}); }),
            "signed_position_buckets: max_distance must be above 5 for a length of 6, got 5");
  const Variable<float> x(xt::ones<float>({1, 2, 4})), positions(xt::ones<float>({3, 4})), none;
  EXPECT_EQ(message_of<xgrad::ValueError>([&] {
              disentangled_bias(x, x, none, none, Ids{{0, 0}, {0, 0}});
            }),
            "disentangled_bias: pos_k or pos_q must be defined");
  EXPECT_EQ(message_of<xgrad::IndexError>([&] {
              disentangled_bias(x, x, positions, none, Ids{{0, 0}, {-1, 0}});
            }),
            "disentangled_bias: index must be in [0, 3), got -1");
  EXPECT_EQ(
      message_of<xgrad::ShapeError>([&] {
        disentangled_bias(x, x, positions, none, Ids{{0, 0}});
      }),
      "disentangled_bias: q (batch, L, H E), k (batch, S, H E), positions (R, H E) and rows (L, S) must "
      "fit together, got q (1, 2, 4), k (1, 2, 4), pos_k (3, 4), pos_q () and rows (1, 2), with 1 heads");
}

TEST(RelativePositionsTest, RefusesLengthsThatCannotBe) {
  constexpr std::size_t many = std::numeric_limits<std::size_t>::max();
  const std::string text =
      ": shape (" + std::to_string(many) + ", " + std::to_string(many) + ") has too many elements";
  EXPECT_EQ(message_of<xgrad::ShapeError>([] { xgrad::relative_position_buckets(many, many); }),
            "relative_position_buckets" + text);
  EXPECT_EQ(message_of<xgrad::ShapeError>([] { xgrad::signed_position_buckets(many); }),
            "signed_position_buckets" + text);
}

/// As many heads as sequences.
TEST(RelativePositionsTest, TheBiasIsOneOfHeads) {
  const Variable<double> x(xgrad::normal<double>({2, 3, 4})), table(xgrad::normal<double>({4, 2}));
  const Variable<double> bias = relative_position_bias(
      table, xgrad::relative_position_buckets(3, 3, {.num_buckets = 4, .max_distance = 4}));
  const auto both = attention_with_weights(x, x, x, bias, {.num_heads = 2}).weights.value();
  const Variable<double> second = slice(x, 0, 1);
  EXPECT_DOUBLE_EQ(
      both(1, 1, 0, 2),
      attention_with_weights(second, second, second, bias, {.num_heads = 2}).weights.value()(0, 1, 0, 2));
}

}  // namespace relative_positions_test
