#pragma once

#include <string>

#include "../tokenizers/tokenizer.hpp"

namespace xgrad::pretrained {

/// The tokenizer of a model: that of its folder as Tokenizer::from_folder reads it, or that of a GGUF file,
/// which is byte-level byte pair encoding with the pre-tokenizers of GPT-2, SmolLM, Llama 3, Qwen2, Mistral's
/// tekken and llama.cpp's default, or sentencepiece's byte pair encoding as in Llama 2. It is that of a
/// tokenizer.json with the file's tokens, which Tokenizer::save writes. Throws FileError.
tokenizers::Tokenizer load_tokenizer(const std::string& path,
                                     const tokenizers::TokenizerOptions& options = {});

}  // namespace xgrad::pretrained
