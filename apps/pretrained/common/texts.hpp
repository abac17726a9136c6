#pragma once

// Where programs get their texts, and how many at a time.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace apps {

/// Calls use(texts) for the texts of the command line, or else for the lines of the input: as many at once as
/// make batches of similar lengths, or one where somebody types them.
void for_each_text(const std::vector<std::string>& given, std::size_t at_once,
                   const std::function<void(std::span<const std::string>)>& use);

/// Texts in one batch of a model, and in one reading of a long input.
inline constexpr std::size_t texts_of_a_batch = 32, texts_at_once = 128 * texts_of_a_batch;

}  // namespace apps
