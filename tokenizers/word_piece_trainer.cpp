#include "word_piece_trainer.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "../base/error.hpp"
#include "detail/models/bert_words.hpp"
#include "detail/models/token_table.hpp"
#include "detail/normalizers/normalizer.hpp"
#include "detail/trainers/pair_merger.hpp"

namespace xgrad::tokenizers {
namespace {

namespace unicode = detail::unicode;
using xgrad::detail::fail;

constexpr std::string_view continuation = "##";

using detail::TokenId, detail::Vocabulary;
using WordCounts = std::unordered_map<std::string, std::int64_t, detail::StringHash, std::equal_to<>>;
using CharacterCounts = std::map<char32_t, std::int64_t>;

/// Calls on_character(character, bytes) for each.
template <class OnCharacter>
void for_each_character(std::string_view word, OnCharacter&& on_character) {
  for (std::size_t length = 0; !word.empty(); word.remove_prefix(length)) {
    length = unicode::first_length(word);
    on_character(unicode::first_of(word), word.substr(0, length));
  }
}

constexpr std::size_t longest_word = 100;  // in characters, as max_input_chars_per_word

WordCounts counted_words(std::span<const std::string> texts, bool lowercase) {
  const detail::BertNormalizer normalizer({.strip_accents = lowercase, .lowercase = lowercase});
  detail::TextBuffer buffer;
  WordCounts counts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (const std::size_t place = unicode::find_invalid_utf8(texts[i]); place != std::string::npos)
      fail<ValueError>("train_word_piece: texts[", i, "] must be UTF-8, got an invalid byte at ", place);
    const std::string_view text = normalizer(texts[i], 0, buffer).text;
    detail::for_each_bert_word(text, [&](std::size_t begin, std::size_t end, std::size_t characters) {
      if (characters > longest_word) return true;  // which a tokenizer takes for unknown
      const std::string_view word = text.substr(begin, end - begin);
      const auto found = counts.find(word);
      ++(found != counts.end() ? found : counts.emplace(word, 0).first)->second;
      return true;
    });
  }
  if (counts.empty()) fail<ValueError>("train_word_piece: texts must have words, got none");
  return counts;
}

/// The most frequent characters.
std::set<char32_t> alphabet_of(const WordCounts& words, std::size_t limit) {
  CharacterCounts counts;
  for (const auto& [word, count] : words)
    for_each_character(word, [&, many = count](char32_t character, auto) { counts[character] += many; });
  std::vector<std::pair<char32_t, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<char32_t, std::int64_t>::second);
  sorted.resize(std::min(limit, sorted.size()));
  std::set<char32_t> kept;
  for (const auto& entry : sorted) kept.insert(entry.first);
  return kept;
}

/// Adds the characters, and those that continue a word.
void add_alphabet(const WordCounts& words, const std::set<char32_t>& alphabet, Vocabulary& vocabulary) {
  std::map<char32_t, std::string> continuing;
  for (const auto& [word, count] : words) {
    bool is_first = true;
    for_each_character(word, [&](char32_t character, std::string_view bytes) {
      if (!std::exchange(is_first, false) && alphabet.contains(character)) continuing[character] = bytes;
    });
  }
  for (const char32_t character : alphabet) {
    std::string token;
    unicode::append(token, character);
    vocabulary.add(token);
  }
  for (const auto& [character, bytes] : continuing) vocabulary.add(std::string(continuation) + bytes);
}

std::vector<TokenId> pieces_of(std::string_view word, const std::set<char32_t>& alphabet,
                               Vocabulary& vocabulary) {
  std::vector<TokenId> pieces;
  bool is_first = true;
  for_each_character(word, [&](char32_t character, std::string_view bytes) {
    const std::string prefix(std::exchange(is_first, false) ? "" : continuation);
    if (alphabet.contains(character)) pieces.push_back(vocabulary.add(prefix + std::string(bytes)));
  });
  return pieces;
}

}  // namespace

std::vector<std::string> train_word_piece(std::span<const std::string> texts,
                                          const WordPieceTrainerOptions& options) {
  const WordCounts words = counted_words(texts, options.lowercase);
  const std::set<char32_t> alphabet = alphabet_of(words, options.limit_alphabet);
  Vocabulary vocabulary(continuation);
  for (const std::string& token : options.special_tokens) vocabulary.add(token);
  add_alphabet(words, alphabet, vocabulary);
  detail::PairMerger merger;
  for (const auto& [word, count] : words) merger.add_word(pieces_of(word, alphabet, vocabulary), count);
  merger.run(vocabulary, options.vocab_size, options.min_frequency);
  return vocabulary.take();
}

}  // namespace xgrad::tokenizers
