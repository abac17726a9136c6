#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "../../../base/array.hpp"

namespace xgrad::detail {

/// The axes of an operand: letters, and negative numbers for those of "...", -1 for the last one.
using EinsumLabels = std::vector<int>;

inline bool contains(const EinsumLabels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct EinsumEquation {
  std::vector<EinsumLabels> operands;
  EinsumLabels output;
};

/// "ij,jk->ik" for operands of these shapes. Throws ValueError and ShapeError as einsum() does.
EinsumEquation parse_einsum(std::string_view text, std::span<const Shape> operands);

}  // namespace xgrad::detail
