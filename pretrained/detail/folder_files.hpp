#pragma once

// Not installed: files of a model's folder.

#include <string>

#include "../../base/detail/folder_files.hpp"

namespace xgrad::pretrained::detail {

using xgrad::detail::exists;

/// Throws FileError if the folder's weights are a pickle.
void refuse_pickle(const std::string& folder);

}  // namespace xgrad::pretrained::detail
