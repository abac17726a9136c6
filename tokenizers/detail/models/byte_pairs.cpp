#include "byte_pairs.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../large_pages.hpp"

namespace xgrad::tokenizers::detail {
namespace {

/// The tokens of the characters that stand for bytes, or no_token.
ByteTokens alphabet_tokens_of(const TokenTable& tokens, const std::string& where) {
  const ByteAlphabet alphabet;
  ByteTokens result;
  for (std::size_t byte = 0; byte < result.size(); ++byte) {
    std::string text;
    unicode::append(text, alphabet.character(static_cast<unsigned char>(byte)));
    result[byte] = tokens.model_index(text).value_or(no_token);
  }
  if (std::ranges::count(result, no_token) == static_cast<std::ptrdiff_t>(result.size()))
    xgrad::detail::fail<FileError>(where, ": the vocabulary must have tokens for bytes, got none");
  return result;
}

}  // namespace

struct BytePairs::Work {
  Merges::Work word;
  std::vector<WordPart> parts;  // of a short word, to be kept
  std::string known;            // bytes of a word that have tokens
};

BytePairs::BytePairs(const TokenTable& tokens, const MergeTexts& merges, Options options,
                     const std::string& where)
    : options_(std::move(options)),
      byte_tokens_(alphabet_tokens_of(tokens, where)),
      lacks_bytes_(std::ranges::count(byte_tokens_, no_token) > 0),
      joins_(std::size_t{1} << 16),
      merges_(tokens, merges, where) {
  const ByteAlphabet alphabet;
  for (const auto& [left, right] : merges) {
    std::string bytes_of_left, bytes_of_right;
    alphabet.decode(left, bytes_of_left);
    alphabet.decode(right, bytes_of_right);
    if (left.empty() || right.empty()) continue;
    joins_[place_of(bytes_of_left.back(), bytes_of_right.front())] = true;
  }
  const auto is_unknown = [&](const std::string& text) {
    return lacks_bytes_ && options_.unknown && tokens.model_index(text) == options_.unknown;
  };
  for (const auto& [left, right] : merges) {
    if (is_unknown(left) || is_unknown(right))
      xgrad::detail::fail<FileError>(where, ": merges of unknown bytes are not supported, got one of ",
                                     xgrad::detail::in_quotes(left), " and ",
                                     xgrad::detail::in_quotes(right));
  }
  if (!options_.ignore_merges) return;
  for (const auto& [text, token] : model_words(tokens)) {
    std::string bytes;
    if (alphabet.decode(text, bytes)) words_.emplace(std::move(bytes), token);
  }
}

void BytePairs::merge(std::string_view part, Work& work) const {
  work.word.symbols.clear();
  reserve_whole(work.word.symbols, part.size());
  for (const char byte : part) work.word.add(byte_tokens_[static_cast<unsigned char>(byte)], 1);
  merges_.join(work.word);
}

void BytePairs::add_word(const Passage& word, Work& work, Pieces& pieces) const {
  WordCache& cache = word_cache();
  const std::string_view text = word.text;
  std::size_t begin = 0;
  const auto add = [&](std::uint32_t token, std::size_t length) {
    pieces.add(word, token, begin, begin + length);
    begin += length;
  };
  const std::span<const WordPart> known = cache.find(owner_, text);
  for (const WordPart& part : known) add(part.token, part.length);
  if (!known.empty()) return;
  if (options_.ignore_merges) {
    if (const auto whole = words_.find(text); whole != words_.end()) return add(whole->second, text.size());
  }
  work.parts.clear();
  const auto put = [&](std::uint32_t token, std::size_t length) {
    add(token, length);
    if (WordCache::takes(text)) work.parts.push_back({token, static_cast<std::uint32_t>(length)});
  };
  // Between bytes that no merge joins, a word falls into parts of its own.
  const auto read = [&](std::string_view known) {
    for (std::size_t first = 0, last = 1; first < known.size(); first = last++) {
      while (last < known.size() && joins_[place_of(known[last - 1], known[last])]) ++last;
      merge(known.substr(first, last - first), work);
      for (const Merges::Symbol& symbol : work.word.symbols)
        if (symbol.length != 0) put(symbol.token, symbol.length);
    }
  };
  const auto is_known = [&](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)] != no_token; };
  if (!lacks_bytes_) {
    read(text);
  } else if (!options_.unknown) {
    work.known.clear();
    std::ranges::copy_if(text, std::back_inserter(work.known), is_known);
    read(work.known);
  } else {
    for (auto first = text.begin(); first != text.end();) {
      const auto unknown = std::find_if_not(first, text.end(), is_known);
      read({first, unknown});
      first = std::find_if(unknown, text.end(), is_known);
      const auto count = static_cast<std::size_t>(first - unknown);
      const std::size_t size = options_.fuse_unknown ? count : 1;
      for (std::size_t i = 0; i < count; i += size) put(*options_.unknown, size);
    }
  }
  cache.keep(owner_, text, work.parts);
}

bool BytePairs::operator()(const Passage& passage, Pieces& pieces) const {
  Work work;
  return options_.splitter(passage, [&](const Passage& word) {
    add_word(word, work, pieces);
    return pieces.end_word();
  });
}

}  // namespace xgrad::tokenizers::detail
