#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../../base/array.hpp"
#include "model.hpp"

// Matrices that save() transposes: runtimes multiply by a constant (in, out), where a layer has its weight
// (out, in).
namespace xgrad::onnx::detail {

inline constexpr std::string_view producer = "xgrad";

/// How the documentation of a transposed constant begins; the name of the matrix follows.
inline constexpr std::string_view transpose_of = "transpose of ";

/// The elements of a row-major matrix, column by column.
std::vector<std::byte> transposed_elements(std::span<const std::byte> elements, const Shape& shape);

/// A model with the matrices that save() transposed as they were, each under its name and with a node that
/// transposes it. Those whose name is taken, and models of others, stay as they are.
Model restored_matrices(const Model& file);

}  // namespace xgrad::onnx::detail
