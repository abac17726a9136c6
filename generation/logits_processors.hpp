#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "generation_options.hpp"

namespace xgrad::generation {

/// Changes the logits of a text's next token as the options say, in Hugging Face's order: what is excluded
/// gets -infinity. `tokens` are all of the text, without padding; its first `prompt_length` are the prompt.
/// Throws ValueError as GenerationOptions::check does, IndexError for an id in the options that the logits do
/// not have. https://huggingface.co/docs/transformers/internal/generation_utils#transformers.LogitsProcessor
template <class T>
void process_logits(const GenerationOptions& options, std::span<const std::int64_t> tokens,
                    std::size_t prompt_length, std::span<T> logits);

/// The names of Hugging Face's classes of what process_logits does with these options, in order.
std::vector<std::string> names_of_processors(const GenerationOptions& options);

}  // namespace xgrad::generation
