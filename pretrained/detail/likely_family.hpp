#pragma once

#include <string>
#include <vector>

#include "family.hpp"

// Not installed: what the names of tensors tell of a folder that does not load.

namespace xgrad::pretrained::detail {

/// Why tensors of these names lack a parameter of the family, for an error: "; the names are those of a
/// roberta model", or those that the family does not have; empty if nothing tells.
std::string told_by_names(const std::vector<std::string>& tensors, const FamilyInfo& family);

}  // namespace xgrad::pretrained::detail
