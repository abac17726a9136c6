#include "word_piece.hpp"

#include "bert_words.hpp"

namespace xgrad::tokenizers::detail {
WordPiece::WordPiece(const TokenTable& tokens, std::string_view prefix, std::uint32_t unknown,
                     std::size_t most_characters)
    : trie_(model_words(tokens)),
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

}  // namespace xgrad::tokenizers::detail
