#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace xgrad::onnx::detail {

/// A length as an integer times lengths of named axes.
struct SymbolicLength {
  std::size_t factor;
  std::vector<std::size_t> axes = {};  ///< their indices

  bool is_fixed() const { return axes.empty(); }
};

using SymbolicShape = std::vector<SymbolicLength>;

/// The named axes of an export, and their lengths in the two traced calls.
class AxisLengths {
 public:
  void add(const std::string& name, std::size_t first, std::size_t second) {
    names_.push_back(name);
    first_.push_back(first);
    second_.push_back(second);
  }

  std::size_t size() const { return names_.size(); }
  const std::string& name(std::size_t axis) const { return names_[axis]; }

  /// The symbolic length with the value `first` in one call and `second` in the other: fixed if they are
  /// equal.
  std::optional<SymbolicLength> explain(std::size_t first, std::size_t second) const {
    if (first == second) return SymbolicLength{first};
    for (std::size_t subset = 1; subset < std::size_t{1} << names_.size(); ++subset) {
      SymbolicLength length{1};
      std::size_t one = 1, other = 1;
      for (std::size_t axis = 0; axis < names_.size(); ++axis) {
        if ((subset >> axis & 1) == 0) continue;
        length.axes.push_back(axis);
        one *= first_[axis];
        other *= second_[axis];
      }
      if (first % one != 0 || second % other != 0 || first / one != second / other) continue;
      length.factor = first / one;
      return length;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::size_t> first_, second_;
};

}  // namespace xgrad::onnx::detail
