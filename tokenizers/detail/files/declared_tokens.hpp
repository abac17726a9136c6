#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../models/added_tokens.hpp"
#include "../models/token_table.hpp"
#include "../normalizers/text_steps.hpp"
#include "json.hpp"

// Not installed: tokens that files declare beside the vocabulary. All functions throw FileError.

namespace xgrad::tokenizers::detail {

/// A token as a file declares it.
struct Declared {
  std::optional<Json> place;  // nothing for a token that no file names
  std::string text;
  std::optional<std::int64_t> id = {};
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = true;
};

/// A token that is declared by an object with its content and how it is found.
Declared declared(const Json& object, bool special_otherwise);

/// The added_tokens of tokenizer.json.
std::vector<Declared> read_added_tokens(const std::optional<Json>& list);

/// The added tokens that the model does not have, with the next ids. They must have these in the file, too.
TokenIds new_tokens(const TokenIds& model, std::vector<Declared>& tokens);

/// Tokens to find in a text, and those to find in the normalised one.
struct AddedMatchers {
  AddedTokens raw, normalized;
};

/// As in the library, a token that is normalised takes its normalised text in the table, and is special if a
/// special token has that text.
AddedMatchers add_matchers(TokenTable& tokens, const std::vector<Declared>& all,
                           const std::optional<Normalizer>& normalizer);

}  // namespace xgrad::tokenizers::detail
