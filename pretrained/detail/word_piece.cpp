#include "word_piece.hpp"

#include <utility>
#include <vector>

#include "bert_words.hpp"

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

}  // namespace

WordPiece::WordPiece(const TokenTable& tokens, std::string_view prefix, std::uint32_t unknown,
                     std::size_t most_characters)
    : trie_(words_of(tokens)),
      continuation_(trie_.walk(prefix)),
      unknown_(unknown),
      most_characters_(most_characters) {}

bool WordPiece::operator()(const Passage& passage, Pieces& pieces) const {
  const auto on_word = [&](std::size_t begin, std::size_t end, std::size_t characters) {
    if (characters > most_characters_) {
      pieces.add(passage, unknown_, begin, end);
    } else {
      match(passage, begin, end, pieces);
    }
    return pieces.end_word();
  };
  return for_each_bert_word(passage.text, on_word);
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
