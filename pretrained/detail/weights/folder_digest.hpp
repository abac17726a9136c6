#pragma once

#include <span>
#include <string>

// Not installed: a digest of a folder of sentence-transformers.

namespace xgrad::pretrained::detail {

/// A digest of the names and bytes of all files that may change a vector: of the folder's JSON, texts and
/// models of SentencePiece, of the weights that are loaded, and of all files beside those of the modules.
/// Throws FileError.
std::string digest_of_folder(const std::string& folder, std::span<const std::string> files_of_modules);

}  // namespace xgrad::pretrained::detail
