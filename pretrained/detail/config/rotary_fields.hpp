#pragma once

#include "../../../models/attention/rotary_tables.hpp"
#include "../family.hpp"

// Not installed: rotary positions in a config.json.
namespace xgrad::pretrained::detail {

/// The largest theta, factor and bound of a scaling.
inline constexpr double most_rotary_number = 1e12;

/// All that a config says of them but dim, as JSON.
std::string described(const RotaryConfig& rotary);

/// Reads theta and the scaling of an object with rope_type (or type, as before), rope_theta and what the type
/// needs, into `config`. Throws FileError for a type or a field that is not known and for what the type
/// lacks.
void read_rotary(const Json& parameters, std::size_t max_positions, RotaryConfig& config);

/// A field with theta beside such an object, within its limit.
void theta_field(Fields& fields, const char* name, RotaryConfig& rotary);

/// rope_theta with rope_scaling, as transformers 4 writes them, and rope_parameters of 5.
void rotary_fields(Fields& fields, std::size_t max_positions, RotaryConfig& rotary);

/// Writes them with the scaling, which rotary_fields only reads, in both spellings.
void write_rotary(Fields& fields, const RotaryConfig& rotary);

/// The field head_dim.
void head_dim_field(Fields& fields, Config& config);

/// The rule that heads of this size or their rotary positions break, or empty.
std::string broken_rotary_rule(RotaryConfig rotary, std::size_t head_dim);

}  // namespace xgrad::pretrained::detail
