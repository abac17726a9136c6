#pragma once

#include <string>
#include <vector>

// Not installed.

namespace xgrad::tokenizers::detail {

/// The names of all files of tokenizers.
const std::vector<std::string>& tokenizer_files();

/// To be called before the files of a model are read, which complete_folder() completes. Throws FileError for
/// a file in place of a model's folder, and for one with an adapter, which would change the numbers.
void check_folder(const std::string& folder);

}  // namespace xgrad::tokenizers::detail
