#pragma once

#include <string>

// Not installed.

namespace xgrad::tokenizers::detail {

/// Throws FileError for a file in place of a model's folder, and for one with an adapter, which would change
/// the numbers.
void check_folder(const std::string& folder);

}  // namespace xgrad::tokenizers::detail
