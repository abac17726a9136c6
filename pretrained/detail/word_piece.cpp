#include "word_piece.hpp"

#include <array>
#include <utility>
#include <vector>

#include "unicode.hpp"

namespace xgrad::pretrained::detail {
namespace {

std::vector<std::pair<std::string_view, std::uint32_t>> words_of(const TokenTable& tokens) {
  std::vector<std::pair<std::string_view, std::uint32_t>> words;
  words.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].in_model) words.emplace_back(tokens[i].text, static_cast<std::uint32_t>(i));
  }
  return words;
}

enum class Kind : std::uint8_t { part, space, punctuation };

constexpr Kind kind_of(char32_t character) {
  const std::uint16_t flags = unicode::properties_of(character).flags;
  return flags & unicode::space ? Kind::space : flags & unicode::punctuation ? Kind::punctuation : Kind::part;
}

constexpr std::array<Kind, 128> ascii_kinds() {
  std::array<Kind, 128> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = kind_of(static_cast<char32_t>(i));
  return kinds;
}

constexpr std::array<Kind, 128> ascii = ascii_kinds();

}  // namespace

WordPiece::WordPiece(const TokenTable& tokens, std::string_view prefix, std::uint32_t unknown,
                     std::size_t most_characters)
    : trie_(words_of(tokens)),
      continuation_(trie_.walk(prefix)),
      unknown_(unknown),
      most_characters_(most_characters) {}

bool WordPiece::operator()(const Passage& passage, Pieces& pieces) const {
  const std::string_view text = passage.text;
  bool more = true;
  std::size_t begin = 0, characters = 0;  // of the word
  const auto end_word = [&](std::size_t end) {
    if (begin == end) return;
    if (characters > most_characters_) {
      pieces.add(passage, unknown_, begin, end);
    } else {
      match(passage, begin, end, pieces);
    }
    more = pieces.end_word();
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t next = i + unicode::first_length(text.substr(i));
    const Kind kind = byte < ascii.size() ? ascii[byte] : kind_of(unicode::first_of(text.substr(i)));
    if (kind == Kind::part) {
      ++characters;
    } else {
      end_word(i);
      begin = i;
      characters = 1;
      if (more && kind == Kind::punctuation) end_word(next);
      if (!more) return false;
      begin = next;
      characters = 0;
    }
    i = next;
  }
  end_word(text.size());
  return more;
}

void WordPiece::match(const Passage& passage, std::size_t begin, std::size_t end, Pieces& pieces) const {
  const std::size_t before = pieces.list.size();
  for (std::size_t i = begin; i < end;) {
    const Trie::Node from = i == begin ? Trie::root : continuation_;
    const Trie::Match found =
        from == Trie::no_node ? Trie::Match{} : trie_.longest(from, passage.text.substr(i, end - i));
    if (found.length == 0) {
      pieces.list.resize(before);
      pieces.add(passage, unknown_, begin, end);
      return;
    }
    pieces.add(passage, found.value, i, i + found.length);
    i += found.length;
  }
}

}  // namespace xgrad::pretrained::detail
