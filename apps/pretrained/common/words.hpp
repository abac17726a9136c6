#pragma once

// Words, which blanks separate, and the tokens that they begin with.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/tokenizers/tokenizer.hpp>

namespace apps {

/// Where each word of a text begins, in characters.
std::vector<std::size_t> word_begins(const std::string& text);

/// The token that stands for each word: the first of those that lie in it; nothing for a word that was cut
/// off, or of which the tokenizer leaves nothing. `begins` has where each word begins, in characters.
std::vector<std::optional<std::size_t>> first_tokens(const xgrad::tokenizers::Encoding& encoding,
                                                     const std::vector<std::size_t>& begins);

}  // namespace apps
