#pragma once

#include <string>

#include "module.hpp"

namespace xgrad {

/// A table of a model: the layers as an indented tree with their types, the parameters with shapes and
/// numbers of elements, and the total.
template <class T>
[[nodiscard]] std::string summary(const Module<T>& model);

}  // namespace xgrad
