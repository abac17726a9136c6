#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// Not installed.

namespace xgrad::pretrained::detail {

/// Limits on what a file may ask for; real vocabularies stay far below.
inline constexpr std::size_t most_tokens = 2'000'000, longest_token = 1000, most_token_bytes = 32'000'000;
inline constexpr std::int64_t largest_id = 2'147'483'647;

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

using TokenIds = std::unordered_map<std::string, std::int64_t, StringHash, std::equal_to<>>;

/// Tokens and their ids, of which some may be missing between others. A token also has an index from 0 to
/// size() - 1, in the order of the ids.
class TokenTable {
 public:
  struct Token {
    std::int64_t id;
    std::string text;
    bool in_model = true;  // and not only added to it
    bool special = false;  // left out by decode()
  };

  TokenTable() = default;

  /// The tokens of a model and others that were added to them. Two tokens with one id throw FileError, which
  /// names the file.
  TokenTable(const std::string& path, TokenIds model, const TokenIds& added);

  std::size_t size() const { return tokens_.size(); }
  const Token& operator[](std::size_t index) const { return tokens_[index]; }
  Token& operator[](std::size_t index) { return tokens_[index]; }

  std::optional<std::int64_t> id(std::string_view text) const;
  std::optional<std::uint32_t> index(std::int64_t id) const;
  std::optional<std::uint32_t> index(std::string_view text) const;
  /// The same for a token of the model.
  std::optional<std::uint32_t> model_index(std::string_view text) const;

 private:
  TokenIds ids_;
  std::vector<Token> tokens_;
};

}  // namespace xgrad::pretrained::detail
