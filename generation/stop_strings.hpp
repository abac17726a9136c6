#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../tokenizers/tokenizer.hpp"

namespace xgrad::generation {

/// Strings that end a text, as Hugging Face's StopStringCriteria does: with the token that completes one of
/// them, which stays. A string may begin in tokens before it, also in those of the prompt, and more may come
/// behind it in the same token.
/// https://huggingface.co/docs/transformers/internal/generation_utils#transformers.StopStringCriteria
class StopStrings {
 public:
  /// The bytes that a token adds to a text; none for an id without a token.
  using BytesOf = std::function<std::optional<std::string>(std::int64_t id)>;

  StopStrings(std::vector<std::string> strings, BytesOf bytes_of);
  StopStrings(std::vector<std::string> strings, const tokenizers::Tokenizer& tokenizer);

  /// Whether the last of the tokens completes a string.
  bool end(std::span<const std::int64_t> tokens) const;

 private:
  std::vector<std::string> strings_;
  std::size_t longest_ = 0;  // of the strings, in bytes
  BytesOf bytes_of_;
};

}  // namespace xgrad::generation
