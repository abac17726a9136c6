#pragma once

#include <concepts>
#include <string_view>
#include <vector>

#include "../../graph/variable.hpp"

namespace xgrad {

/// Einstein summation: the product of all operands, summed over the letters missing from the output.
///
/// `equation` names the axes of each operand, and after "->" those of the result: "bij,bjk->bik" are batched
/// matrix products, "ij->ji" transposes, "ii->i" is a diagonal, "i,j->ij" an outer product; spaces are
/// ignored. "..." stands for axes without a letter, which broadcast from the last one on. Without "->" the
/// result has "..." and then, in alphabetical order, the letters that occur once. Axes with the same letter
/// must have the same length, or 1. Operands are multiplied from left to right, two at a time. Throws
/// ValueError for a malformed equation, and ShapeError
/// "einsum: operand 0 must have 3 axes for 'ijk', got (2, 3)".
/// https://pytorch.org/docs/stable/generated/torch.einsum.html
template <class T>
Variable<T> einsum(std::string_view equation, const std::vector<Variable<T>>& operands);
template <class T, std::same_as<Variable<T>>... More>
Variable<T> einsum(std::string_view equation, const Variable<T>& first, const More&... more) {
  return einsum(equation, std::vector<Variable<T>>{first, more...});
}

}  // namespace xgrad
