#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model.hpp"

namespace xgrad::onnx::detail {

/// Numbers of TensorProto.DataType.
namespace data_type {

inline constexpr std::int64_t float32 = 1, uint8 = 2, int8 = 3, uint16 = 4, int16 = 5, int32 = 6, int64 = 7,
                              boolean = 9, float16 = 10, float64 = 11, uint32 = 12, uint64 = 13,
                              bfloat16 = 16;

}  // namespace data_type

/// The element types of a node's outputs, from those of its inputs; 0 for what is unknown. Values of a graph
/// do not tell how wide their elements are in the file.
std::vector<std::int64_t> output_types(const Node& node, std::span<const std::int64_t> inputs);

/// Whether T would lose digits of the numbers of a graph: an input, an initializer or a cast of doubles.
bool has_doubles(const Subgraph& graph);

}  // namespace xgrad::onnx::detail
