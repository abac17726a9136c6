#include "added_tokens.hpp"

#include <algorithm>
#include <utility>

#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

std::vector<std::pair<std::string_view, std::uint32_t>> words_of(const std::vector<AddedToken>& tokens) {
  std::vector<std::pair<std::string_view, std::uint32_t>> words;
  words.reserve(tokens.size());
  for (const AddedToken& token : tokens)
    words.emplace_back(token.text, static_cast<std::uint32_t>(words.size()));
  return words;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), trie_(words_of(tokens_)) {
  for (const AddedToken& token : tokens_) begins_[static_cast<unsigned char>(token.text.front())] = true;
  if (std::ranges::count(begins_, true) == 1)
    begins_all_ = static_cast<unsigned char>(std::ranges::find(begins_, true) - begins_.begin());
}

std::optional<AddedTokens::Place> AddedTokens::find(std::string_view text, std::size_t from) const {
  for (; from < text.size(); ++from) {
    if (begins_all_) {
      from = text.find(static_cast<char>(*begins_all_), from);
      if (from == text.npos) break;
    } else if (!begins_[static_cast<unsigned char>(text[from])]) {
      continue;
    }
    const Trie::Match match = trie_.longest(Trie::root, text.substr(from));
    if (match.length != 0) return Place{match.value, from, from + match.length};
  }
  return std::nullopt;
}

bool AddedTokens::is_single_word(std::string_view text, const Place& place) {
  const std::string_view before = text.substr(0, place.begin), after = text.substr(place.end);
  return (before.empty() || !unicode::is(unicode::last_of(before), unicode::word)) &&
         (after.empty() || !unicode::is(unicode::first_of(after), unicode::word));
}

AddedTokens::Place AddedTokens::stripped(std::string_view text, const AddedToken& token, Place place,
                                         std::size_t done) {
  const auto is_space = [](char32_t character) { return unicode::is(character, unicode::space); };
  if (token.lstrip) {
    // What the token before took stays with it.
    while (place.begin > done && is_space(unicode::last_of(text.substr(0, place.begin))))
      place.begin = unicode::last_start(text.substr(0, place.begin));
    place.begin = std::min(std::max(place.begin, done), place.end);
  }
  while (token.rstrip && place.end < text.size() && is_space(unicode::first_of(text.substr(place.end))))
    place.end += unicode::first_length(text.substr(place.end));
  return place;
}

}  // namespace xgrad::tokenizers::detail
