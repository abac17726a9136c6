#include <xgrad/models/attention/rotary_tables.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data_folder.hpp"
#include "expect_error.hpp"

namespace rotary_tables_test {

using nlohmann::json;
using xgrad_tests::message_of;

const json& cases() {
  static const json all =
      json::parse(std::ifstream(xgrad_tests::data_folder("positions") + "cases.json")).at("rotary");
  return all;
}

std::optional<double> number_in(const json& test, const char* name) {
  return test.contains(name) && !test[name].is_null() ? std::optional(test[name].get<double>())
                                                      : std::nullopt;
}

xgrad::RotaryConfig config_of(const json& test) {
  xgrad::RotaryConfig config{.dim = test.at("dim"), .theta = test.at("theta")};
  const auto kind = test.at("kind").get<std::string>();
  const std::size_t most = test.at("max_positions"),
                    original = test.value("original_max_position_embeddings", 0);
  const double factor =
      number_in(test, "factor").value_or(static_cast<double>(most) / static_cast<double>(original));
  if (kind == "linear") config.scaling = xgrad::LinearScaling{factor};
  if (kind == "dynamic") config.scaling = xgrad::DynamicScaling{.factor = factor, .max_positions = most};
  if (kind == "llama3") {
    config.scaling = xgrad::Llama3Scaling{.factor = factor,
                                          .low_freq_factor = test.at("low_freq_factor"),
                                          .high_freq_factor = test.at("high_freq_factor"),
                                          .original_max_positions = original};
  }
  if (kind == "yarn") {
    config.scaling = xgrad::YarnScaling{.factor = factor,
                                        .original_max_positions = original,
                                        .beta_fast = test.value("beta_fast", 32.0),
                                        .beta_slow = test.value("beta_slow", 1.0),
                                        .truncate = test.value("truncate", true),
                                        .attention_factor = number_in(test, "attention_factor"),
                                        .mscale = test.value("mscale", 0.0),
                                        .mscale_all_dim = test.value("mscale_all_dim", 0.0)};
  }
  if (kind == "longrope") {
    config.scaling = xgrad::LongScaling{.short_factors = test.at("short_factor"),
                                        .long_factors = test.at("long_factor"),
                                        .factor = factor,
                                        .original_max_positions = original,
                                        .attention_factor = number_in(test, "attention_factor")};
  }
  return config;
}

template <class T>
void expect_tables(double tolerance) {
  for (const json& test : cases()) {
    const std::size_t length = test.at("length");
    const auto tables = xgrad::rotary_tables<T>(config_of(test), 3, length - 3);
    const auto frequencies = test.at("frequencies").get<std::vector<double>>();
    ASSERT_EQ(tables.cos.shape(), (xgrad::Shape{3, frequencies.size()})) << test;
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const double angle = frequencies[i] * static_cast<double>(length - 3 + row);
        const double factor = test.at("cos_factor");
        EXPECT_NEAR(tables.cos.value()(row, i), factor * std::cos(angle), tolerance * (1 + angle)) << test;
        EXPECT_NEAR(tables.sin.value()(row, i), factor * std::sin(angle), tolerance * (1 + angle)) << test;
      }
    }
  }
}

TEST(RotaryTablesTest, AllScalingsAreThoseOfHuggingFace) {
  expect_tables<double>(1e-14);
  expect_tables<float>(1e-6);
}

TEST(RotaryTablesTest, AnglesArePositionsTimesPowersOfTheta) {
  const auto tables = xgrad::rotary_tables<double>({.dim = 4, .theta = 100}, 2, 5);
  EXPECT_DOUBLE_EQ(tables.cos.value()(0, 0), std::cos(5.0));
  EXPECT_DOUBLE_EQ(tables.sin.value()(1, 1), std::sin(0.6));
}

TEST(RotaryTablesTest, RefusesSizesThatDoNotFit) {
  const auto refused = [](const xgrad::RotaryConfig& config) {
    return message_of<xgrad::ValueError>([&] { xgrad::rotary_tables<float>(config, 2); });
  };
  EXPECT_EQ(refused({.dim = 3}), "rotary_tables: dim must be an even number above 0, got 3");
  EXPECT_EQ(refused({}), "rotary_tables: dim must be an even number above 0, got 0");
  EXPECT_EQ(refused({.dim = 4, .scaling = xgrad::DynamicScaling{.factor = 2}}),
            "rotary_tables: DynamicScaling needs the positions of its training, got 0");
  EXPECT_EQ(refused({.dim = 4, .scaling = xgrad::YarnScaling{.factor = 2}}),
            "rotary_tables: YarnScaling needs the positions of its training, got 0");
  EXPECT_EQ(refused({.dim = 4,
                     .scaling =
                         xgrad::LongScaling{
                             .short_factors = {1, 2}, .long_factors = {1}, .original_max_positions = 4}}),
            "rotary_tables: LongScaling needs dim / 2 = 2 factors, got 1");
}

TEST(RotaryTablesTest, RefusesNumbersThatGiveNoAngles) {
  const auto refused = [](const xgrad::RotaryConfig& config) {
    return message_of<xgrad::ValueError>([&] { xgrad::rotary_tables<float>(config, 2); });
  };
  const auto text = [](const char* name, const char* got) {
    return std::string("rotary_tables: ") + name + " must be a finite number above 0, got " + got;
  };
  EXPECT_EQ(refused({.dim = 4, .theta = 0}), text("theta", "0"));
  EXPECT_EQ(refused({.dim = 4, .theta = -1}), text("theta", "-1"));
  EXPECT_EQ(refused({.dim = 4, .theta = std::nan("")}), text("theta", "nan"));
  EXPECT_EQ(refused({.dim = 4, .scaling = xgrad::LinearScaling{0}}),
            text("the factor of LinearScaling", "0"));
  EXPECT_EQ(refused({.dim = 4, .scaling = xgrad::DynamicScaling{.factor = -1, .max_positions = 2}}),
            text("the factor of DynamicScaling", "-1"));
  EXPECT_EQ(refused({.dim = 4, .scaling = xgrad::Llama3Scaling{.factor = 0}}),
            text("the factor of Llama3Scaling", "0"));
  EXPECT_EQ(refused({.dim = 4, .scaling = xgrad::Llama3Scaling{.low_freq_factor = 0}}),
            text("the low_freq_factor of Llama3Scaling", "0"));
  EXPECT_EQ(refused({.dim = 4, .scaling = xgrad::Llama3Scaling{.high_freq_factor = -2}}),
            text("the high_freq_factor of Llama3Scaling", "-2"));
  EXPECT_EQ(refused({.dim = 4, .scaling = xgrad::YarnScaling{.factor = 0, .original_max_positions = 8}}),
            text("the factor of YarnScaling", "0"));
  EXPECT_EQ(
      refused({.dim = 4,
               .scaling = xgrad::YarnScaling{.factor = 2, .original_max_positions = 8, .beta_fast = 0}}),
      text("the beta_fast of YarnScaling", "0"));
  EXPECT_EQ(
      refused({.dim = 4,
               .scaling = xgrad::YarnScaling{.factor = 2, .original_max_positions = 8, .beta_slow = 0}}),
      text("the beta_slow of YarnScaling", "0"));
  EXPECT_EQ(refused({.dim = 4,
                     .scaling =
                         xgrad::LongScaling{
                             .short_factors = {0, 1}, .long_factors = {1, 1}, .original_max_positions = 8}}),
            text("a factor of LongScaling", "0"));
  EXPECT_EQ(
      refused({.dim = 2,
               .scaling =
                   xgrad::LongScaling{
                       .short_factors = {1}, .long_factors = {1}, .factor = 2, .original_max_positions = 1}}),
      text("attention_factor", "inf"));
}

TEST(RotaryTablesTest, RefusesPositionsThatCannotBe) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  const std::string text = std::to_string(most);
  EXPECT_EQ(message_of<xgrad::ValueError>([] { xgrad::rotary_tables<float>({.dim = 4}, 2, most); }),
            "rotary_tables: first + length must be at most " + text + ", got " + text + " and 2");
  EXPECT_EQ(message_of<xgrad::ShapeError>([] { xgrad::rotary_tables<float>({.dim = 4}, most); }),
            "rotary_tables: shape (" + text + ", 2) has too many elements");
  EXPECT_EQ(message_of<xgrad::ShapeError>([] { xgrad::rotary_tables<float>({.dim = most - 1}, 0); }),
            "rotary_tables: shape (1, " + std::to_string(most / 2) + ") has too many elements");
}

}  // namespace rotary_tables_test
