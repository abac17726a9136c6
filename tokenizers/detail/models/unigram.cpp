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
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].in_model) result[i] = scores[static_cast<std::size_t>(tokens[i].id)];
  return result;
}

}  // namespace

struct Unigram::Work {
  TextBuffer shown;
  BestPath::Work path;
};

Unigram::Unigram(const TokenTable& tokens, const std::vector<double>& scores, std::uint32_t unknown,
                 bool byte_fallback, Metaspace metaspace)
    : best_path_(model_words(tokens), by_index(tokens, scores),
                 {.unknown = unknown, .unknown_score = std::ranges::min(scores) - unknown_penalty}),
      metaspace_(std::move(metaspace)) {
  if (byte_fallback) bytes_ = byte_tokens_of(tokens);
}

bool Unigram::operator()(const Passage& passage, Pieces& pieces) const {
  Work work;
  if (!metaspace_.splits_spaces_first) return read_part(passage, work, pieces);
  const std::string_view text = passage.text;
  const auto is_space = [&](std::size_t i) {
    return unicode::is(unicode::first_of(text.substr(i)), unicode::space);
  };
  const auto skip = [&](std::size_t i, bool spaces) {
    while (i < text.size() && is_space(i) == spaces) i += unicode::first_length(text.substr(i));
    return i;
  };
  for (std::size_t begin = skip(0, true); begin < text.size();) {
    const std::size_t end = skip(begin, false);
    if (!read_part(passage.part(begin, end), work, pieces)) return false;
    begin = skip(end, true);
  }
  return true;
}

bool Unigram::read_part(const Passage& part, Work& work, Pieces& pieces) const {
  if (part.text.empty()) return true;
  TextBuffer& shown = work.shown;
  shown.clear();
  shown.text.reserve(part.text.size());
  shown.sources.reserve(part.text.size());
  const auto put_blank = [&](std::uint32_t source) {
    shown.text += metaspace_.blank;
    shown.sources.resize(shown.text.size(), source);
  };
  const bool prepends = metaspace_.prepend == Metaspace::Prepend::always ||
                        (metaspace_.prepend == Metaspace::Prepend::first && part.source(0) == 0);
  if (prepends && part.text.front() != ' ' && !part.text.starts_with(metaspace_.blank))
    put_blank(part.source(0));
  for (std::size_t i = 0; i < part.text.size(); ++i) {
    if (part.text[i] == ' ') {
      put_blank(part.source(i));
    } else {
      shown.text.push_back(part.text[i]);
      shown.sources.push_back(part.source(i));
    }
  }
  const Passage all{shown.text, shown.sources.data()};
  for (std::size_t begin = 0; begin < shown.text.size();) {
    const std::string_view rest = std::string_view(shown.text).substr(begin);
    const std::size_t after_blank = rest.starts_with(metaspace_.blank) ? metaspace_.blank.size() : 0;
    const std::size_t length = metaspace_.split ? rest.find(metaspace_.blank, after_blank) : rest.size();
    const std::size_t end = begin + std::min(length, rest.size());
    segment(all.part(begin, end), work, pieces);
    if (!pieces.end_word()) return false;
    begin = end;
  }
  return true;
}

void Unigram::segment(const Passage& word, Work& work, Pieces& pieces) const {
  std::size_t unknown_begin = nowhere;
  best_path_(word.text, work.path, [&](std::uint32_t token, std::size_t begin, std::size_t end) {
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
