#include "byte_level_bpe_trainer.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "../base/error.hpp"
#include "detail/models/token_table.hpp"
#include "detail/splits/splitter.hpp"
#include "detail/trainers/pair_merger.hpp"

namespace xgrad::tokenizers {
namespace {

/// How often each word comes.
using ByteWords = std::unordered_map<std::string, std::int64_t, detail::StringHash, std::equal_to<>>;

ByteWords byte_words_of(std::span<const std::string> texts, bool add_prefix_space) {
  const detail::Splitter splitter(
      {detail::ByteLevelSplit{.add_prefix_space = add_prefix_space, .use_regex = true}});
  detail::TextBuffer buffer;
  ByteWords counts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (const std::size_t place = detail::unicode::find_invalid_utf8(texts[i]); place != std::string::npos)
      xgrad::detail::fail<ValueError>("train_byte_level_bpe: texts[", i,
                                      "] must be UTF-8, got an invalid byte at ", place);
    if (texts[i].empty()) continue;
    splitter(detail::unchanged(texts[i], 0, buffer), [&](const detail::Passage& word) {
      const auto found = counts.find(word.text);
      ++(found != counts.end() ? found : counts.emplace(word.text, 0).first)->second;
      return true;
    });
  }
  if (counts.empty()) throw ValueError("train_byte_level_bpe: texts must have words, got none");
  return counts;
}

/// The tokens of the bytes, which are added in the order of their characters.
std::array<detail::TokenId, 256> add_bytes(detail::Vocabulary& vocabulary) {
  const detail::ByteAlphabet alphabet;
  std::array<unsigned char, 256> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i);
  std::sort(bytes.begin(), bytes.end(),
            [&](unsigned char a, unsigned char b) { return alphabet.character(a) < alphabet.character(b); });
  std::array<detail::TokenId, 256> tokens{};
  for (const unsigned char byte : bytes) {
    std::string token;
    detail::unicode::append(token, alphabet.character(byte));
    tokens[byte] = vocabulary.add(token);
  }
  return tokens;
}

}  // namespace

ByteLevelBpe train_byte_level_bpe(std::span<const std::string> texts,
                                  const ByteLevelBpeTrainerOptions& options) {
  const ByteWords words = byte_words_of(texts, options.add_prefix_space);
  detail::Vocabulary vocabulary;
  for (const std::string& token : options.special_tokens) vocabulary.add(token);
  const std::array<detail::TokenId, 256> bytes = add_bytes(vocabulary);
  detail::PairMerger merger;
  for (const auto& [word, count] : words) {
    std::vector<detail::TokenId> pieces;
    pieces.reserve(word.size());
    for (const char byte : word) pieces.push_back(bytes[static_cast<unsigned char>(byte)]);
    merger.add_word(std::move(pieces), count);
  }
  ByteLevelBpe result;
  for (const detail::Pair pair : merger.run(vocabulary, options.vocab_size, options.min_frequency))
    result.merges.emplace_back(vocabulary[detail::first_piece(pair)], vocabulary[detail::second_piece(pair)]);
  result.vocabulary = vocabulary.take();
  return result;
}

}  // namespace xgrad::tokenizers
