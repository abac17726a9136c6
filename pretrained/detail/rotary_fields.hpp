#pragma once

#include "../../models/rotary_tables.hpp"
#include "json.hpp"

// Not installed: rotary positions in a config.json.
namespace xgrad::pretrained::detail {

/// Reads theta and the scaling of an object with rope_type (or type, as before), rope_theta and what the type
/// needs, into `config`. Throws FileError for a type that is not known and for what it lacks.
void read_rotary(const Json& parameters, std::size_t max_positions, RotaryConfig& config);

}  // namespace xgrad::pretrained::detail
