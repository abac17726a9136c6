#include "token_table.hpp"

#include <algorithm>
#include <tuple>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"

namespace xgrad::tokenizers::detail {

TokenTable::TokenTable(const std::string& path, TokenIds model, const TokenIds& added)
    : ids_(std::move(model)) {
  tokens_.reserve(ids_.size() + added.size());
  for (const auto& [text, id] : ids_) tokens_.push_back({id, text});
  for (const auto& [text, id] : added) tokens_.push_back({id, text, false});
  ids_.insert(added.begin(), added.end());
  std::ranges::sort(tokens_, [](const Token& a, const Token& b) {
    return std::tie(a.id, a.text) < std::tie(b.id, b.text);
  });
  const auto twice = std::ranges::adjacent_find(tokens_, {}, &Token::id);
  if (twice != tokens_.end())
    xgrad::detail::fail<FileError>(
        path, ": an id must have one token, got ", xgrad::detail::in_quotes(twice->text), " and ",
        xgrad::detail::in_quotes(std::next(twice)->text), " with the id ", twice->id);
}

std::optional<std::int64_t> TokenTable::id(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> TokenTable::index(std::int64_t id) const {
  // Without gaps below, an id is its index.
  if (id >= 0 && static_cast<std::uint64_t>(id) < tokens_.size() &&
      tokens_[static_cast<std::size_t>(id)].id == id)
    return static_cast<std::uint32_t>(id);
  const auto place = std::ranges::lower_bound(tokens_, id, {}, &Token::id);
  if (place == tokens_.end() || place->id != id) return std::nullopt;
  return static_cast<std::uint32_t>(place - tokens_.begin());
}

std::optional<std::uint32_t> TokenTable::index(std::string_view text) const {
  const std::optional<std::int64_t> found = id(text);
  return found ? index(*found) : std::nullopt;
}

std::optional<std::uint32_t> TokenTable::model_index(std::string_view text) const {
  const std::optional<std::uint32_t> found = index(text);
  return found && tokens_[*found].in_model ? found : std::nullopt;
}

ByteTokens byte_tokens_of(const TokenTable& tokens) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  ByteTokens bytes;
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    const std::string text = {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
    bytes[byte] = tokens.model_index(text).value_or(no_token);
  }
  return bytes;
}

std::vector<std::pair<std::string_view, std::uint32_t>> model_words(const TokenTable& tokens) {
  std::vector<std::pair<std::string_view, std::uint32_t>> words;
  words.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].in_model) words.emplace_back(tokens[i].text, static_cast<std::uint32_t>(i));
  }
  return words;
}

}  // namespace xgrad::tokenizers::detail
