#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/graph/variable.hpp>

#include "data_folder.hpp"

namespace xgrad_tests {

/// What tests/data/optim/make_cases.py wrote.
inline const nlohmann::json& optim_cases() {
  static const auto cases = nlohmann::json::parse(std::ifstream(data_folder("optim") + "cases.json"));
  return cases;
}

/// How many of a kind it has. Tests are named before any of them runs, and the file takes long to read.
inline constexpr std::size_t optimizer_cases = 62, scheduler_cases = 31, lbfgs_cases = 20;

/// A number, or the text of one that JSON has not.
inline double number_of(const nlohmann::json& number) {
  return number.is_string() ? std::stod(number.get<std::string>()) : number.get<double>();
}

template <class T>
xgrad::Array<T> array_of(const nlohmann::json& numbers, const xgrad::Shape& shape) {
  xgrad::Array<T> array = xgrad::Array<T>::from_shape(shape);
  EXPECT_EQ(numbers.size(), array.size());
  std::transform(numbers.begin(), numbers.end(), array.begin(),
                 [](const auto& number) { return static_cast<T>(number_of(number)); });
  return array;
}

/// Every element is within `tolerance` of the one of `want`, times its size where that is above 1.
template <class T>
void expect_near(const xgrad::Array<T>& got, const nlohmann::json& want, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = got.data()[i], b = number_of(want[i]);
    if (std::isfinite(b)) {
      EXPECT_NEAR(a, b, tolerance * std::max(1.0, std::abs(b))) << what << ", element " << i;
    } else {
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << what << ", element " << i << ": " << a;
    }
  }
}

}  // namespace xgrad_tests
