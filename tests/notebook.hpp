#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/graph/variable.hpp>

#include "npy.hpp"

namespace xgrad_tests {

/// The numbers of a notebook, as PyTorch computed and as the notebook printed them.
class Notebook {
 public:
  explicit Notebook(const std::string& name) : folder_(XGRAD_TEST_DATA_DIR "/" + name + "/") {
    const nlohmann::json expected = nlohmann::json::parse(std::ifstream(folder_ + "expected.json"));
    for (const nlohmann::json& tensor : expected.at("tensors")) tensors_[tensor.at("name")] = tensor;
  }

  xgrad::Ids ids(const std::string& name) const { return read_npy<std::int64_t>(file(name)); }

  template <class T>
  xgrad::Array<T> array(const std::string& name) const {
    if (tensors_.at(name).at("dtype") == "int64") return xt::cast<T>(ids(name));
    return xt::cast<T>(read_npy<float>(file(name)));
  }

  /// Compares what was computed to the tensor of that name, and to what the notebook printed of it.
  template <class T>
  void expect(const std::map<std::string, xgrad::Array<T>>& computed) const {
    for (const auto& [name, tensor] : tensors_) {
      if (const auto found = computed.find(name); found != computed.end()) {
        expect_near(name, found->second.data(), found->second.size(), array<T>(name), tolerance<T>(tensor));
      }
      if (const auto of = computed.find(tensor.value("of", ""));
          of != computed.end() && tensor.at("role") == "printed") {
        expect_printed(tensor, of->second);
      }
    }
  }

  /// The same, and nothing of these roles may be left out, but what another kernel state than the text's
  /// gave.
  template <class T>
  void expect_all(const std::map<std::string, xgrad::Array<T>>& computed,
                  const std::vector<std::string>& roles) const {
    for (const auto& [name, tensor] : tensors_) {
      const std::string role = tensor.at("role");
      const bool wanted = std::find(roles.begin(), roles.end(), role) != roles.end() &&
                          tensor.value("note", "").rfind("not reproducible", 0) != 0;
      const bool shown = role == "printed" && computed.count(tensor.value("of", "")) > 0;
      EXPECT_TRUE(!wanted || shown || computed.count(name) > 0) << name << " was not computed";
    }
    expect(computed);
  }

  /// The names of all tensors of a role.
  std::vector<std::string> names(const std::string& role) const {
    std::vector<std::string> found;
    for (const auto& [name, tensor] : tensors_) {
      if (tensor.at("role") == role) found.push_back(name);
    }
    return found;
  }

  double tolerance(const std::string& name) const { return tensors_.at(name).at("abs_tol"); }

  /// Whether the text of the notebook shows only the beginning of what it prints.
  bool cut_off(const std::string& name) const { return tensors_.at(name).contains("prefix_count"); }

 private:
  std::string file(const std::string& name) const {
    return folder_ + tensors_.at(name).at("file").get<std::string>();
  }

  template <class T>
  static double tolerance(const nlohmann::json& tensor) {
    return tensor.value(
        std::is_same_v<T, double> && tensor.contains("abs_tol_float64") ? "abs_tol_float64" : "abs_tol", 0.0);
  }

  /// What was printed is the part that some leading indices name, perhaps cut off.
  template <class T>
  void expect_printed(const nlohmann::json& tensor, const xgrad::Array<T>& whole) const {
    const std::string name = tensor.at("name");
    std::size_t offset = 0, count = whole.size(), axis = 0;
    for (const std::size_t index : tensor.value("of_slice", std::vector<std::size_t>())) {
      count /= whole.shape()[axis++];
      offset += index * count;
    }
    const xgrad::Array<T> expected = array<T>(name);
    expect_near(name, whole.data() + offset, std::min(count, tensor.value("prefix_count", count)), expected,
                tensor.at("abs_tol"));
  }

  template <class T>
  static void expect_near(const std::string& name, const T* values, std::size_t count,
                          const xgrad::Array<T>& expected, double tolerance) {
    ASSERT_EQ(count, expected.size()) << name;
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(static_cast<double>(values[i]), static_cast<double>(expected.data()[i]), tolerance)
          << name << " " << i;
    }
  }

  std::string folder_;
  std::map<std::string, nlohmann::json> tensors_;
};

}  // namespace xgrad_tests
