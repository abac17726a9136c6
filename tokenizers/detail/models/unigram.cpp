#include "unigram.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
constexpr double unknown_penalty = 10;  // of an unknown character, below the rarest token

std::vector<double> by_index(const TokenTable& tokens, const std::vector<double>& scores) {
  std::vector<double> result(tokens.size());
  for (const auto& [text, token] : model_words(tokens))
    result[token] = scores[static_cast<std::size_t>(tokens[token].id)];
  return result;
}

}  // namespace

Unigram::Unigram(const TokenTable& tokens, const std::vector<double>& scores, std::uint32_t unknown,
                 bool byte_fallback, Splitter splitter)
    : best_path_(model_words(tokens), by_index(tokens, scores),
                 {.unknown = unknown, .unknown_score = std::ranges::min(scores) - unknown_penalty}),
      splitter_(std::move(splitter)) {
  if (byte_fallback) bytes_ = byte_tokens_of(tokens);
}

bool Unigram::operator()(const Passage& passage, Pieces& pieces) const {
  BestPath::Work work;
  return splitter_(passage, [&](const Passage& word) {
    segment(word, work, pieces);
    return pieces.end_word();
  });
}

void Unigram::segment(const Passage& word, BestPath::Work& work, Pieces& pieces) const {
  std::size_t unknown_begin = nowhere;
  best_path_(word.text, work, [&](std::uint32_t token, std::size_t begin, std::size_t end) {
    if (token == best_path_.unknown()) {
      if (unknown_begin == nowhere) unknown_begin = begin;
      return;
    }
    if (unknown_begin != nowhere) add_unknown(word, unknown_begin, begin, pieces);
    unknown_begin = nowhere;
    pieces.add(word, token, begin, end);
  });
  if (unknown_begin != nowhere) add_unknown(word, unknown_begin, word.text.size(), pieces);
}

void Unigram::add_unknown(const Passage& word, std::size_t begin, std::size_t end, Pieces& pieces) const {
  const std::string_view text = word.text.substr(begin, end - begin);
  const auto token_of = [&](char byte) { return (*bytes_)[static_cast<unsigned char>(byte)]; };
  // A run may happen to be a token.
  if (const std::uint32_t token = best_path_.find(text); token != no_token) {
    pieces.add(word, token, begin, end);
  } else if (bytes_ && std::ranges::find(text, no_token, token_of) == text.end()) {
    for (const char byte : text) pieces.add(word, token_of(byte), begin, end);
  } else {
    pieces.add(word, best_path_.unknown(), begin, end);
  }
}

}  // namespace xgrad::tokenizers::detail
