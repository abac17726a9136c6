#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

// Not installed.

namespace xgrad::tokenizers::detail {

/// Limits on files; real vocabularies are far smaller.
inline constexpr std::size_t most_tokens = 2'000'000, longest_token = 1000, most_token_bytes = 32'000'000;
inline constexpr std::int64_t largest_id = 2'147'483'647;

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

using TokenIds = std::unordered_map<std::string, std::int64_t, StringHash, std::equal_to<>>;

/// Indices of tokens by their texts.
using TokenIndices = std::unordered_map<std::string, std::uint32_t, StringHash, std::equal_to<>>;

/// Tokens and their ids, which may have gaps. A token also has an index from 0 to size() - 1, in the order of
/// the ids.
class TokenTable {
 public:
  struct Token {
    std::int64_t id;
    std::string text;
    bool in_model = true;  // not only an added token
    bool special = false;  // decode() can skip it
  };

  TokenTable() = default;

  /// The tokens of a model and added tokens. Throws FileError, which names the file, for two tokens with one
  /// id.
  TokenTable(const std::string& path, TokenIds model, const TokenIds& added);

  std::size_t size() const { return tokens_.size(); }
  const Token& operator[](std::size_t index) const { return tokens_[index]; }
  Token& operator[](std::size_t index) { return tokens_[index]; }

  std::optional<std::int64_t> id(std::string_view text) const;
  std::optional<std::uint32_t> index(std::int64_t id) const;
  std::optional<std::uint32_t> index(std::string_view text) const;
  /// index() for tokens of the model only.
  std::optional<std::uint32_t> model_index(std::string_view text) const;

 private:
  TokenIds ids_;
  std::vector<Token> tokens_;
};

/// Stands for the index of a token that is missing.
inline constexpr std::uint32_t no_token = std::numeric_limits<std::uint32_t>::max();

using ByteTokens = std::array<std::uint32_t, 256>;

/// The index of the token "<0x0A>" of each byte, or no_token.
ByteTokens byte_tokens_of(const TokenTable& tokens);

/// The model's tokens with their indices, for a Trie.
std::vector<std::pair<std::string_view, std::uint32_t>> model_words(const TokenTable& tokens);

}  // namespace xgrad::tokenizers::detail
