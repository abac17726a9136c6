#pragma once

#include <string>

#include "../../../files/gguf.hpp"

// Not installed: what a GGUF file says of its model, in the form of Hugging Face's folders.
namespace xgrad::pretrained::detail {

/// The text of a config.json with the numbers of the metadata. Throws FileError for a family that is not
/// built, and for a key or a tensor that is not known and may change what the model computes.
std::string gguf_config(const GgufFile& file, const std::string& path);

/// The text of a tokenizer.json with the tokens of the metadata. Throws FileError for a model or a
/// pre-tokenizer that is not built.
std::string gguf_tokenizer(const GgufFile& file, const std::string& path);

}  // namespace xgrad::pretrained::detail
