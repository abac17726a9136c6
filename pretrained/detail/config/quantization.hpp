#pragma once

#include <string>
#include <vector>

#include "json.hpp"

// Not installed: quantization_config of a config.json, in the format of compressed-tensors.
namespace xgrad::pretrained::detail {

/// Throws FileError unless it describes linear layers of 8-bit integers, with a scale for each output, whose
/// inputs are rounded when they are computed: the format "int-quantized" of compressed-tensors.
/// https://github.com/vllm-project/compressed-tensors
void check_quantization(const Json& json);

/// Such a quantization_config, where linear layers of these names stay float.
std::string quantization_json(const std::vector<std::string>& ignored);

}  // namespace xgrad::pretrained::detail
