#include "unigram.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

/// The token "<0x0A>" of each byte.
std::array<std::uint32_t, 256> byte_tokens_of(const TokenTable& tokens, bool byte_fallback) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::array<std::uint32_t, 256> bytes;
  bytes.fill(Trie::no_value);
  for (std::size_t byte = 0; byte_fallback && byte < bytes.size(); ++byte) {
    const std::string text = {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
    if (const auto token = tokens.model_index(text)) bytes[byte] = *token;
  }
  return bytes;
}

}  // namespace

/// The best segmentation that ends at a byte.
struct Unigram::Node {
  double score = 0;
  std::size_t begin = nowhere;  // of its last token
  std::uint32_t token = 0;
};

struct Unigram::Work {
  TextBuffer shown;
  std::vector<Node> ends;
  std::vector<std::size_t> path;
};

Unigram::Unigram(const TokenTable& tokens, std::vector<double> scores, std::uint32_t unknown,
                 double unknown_score, bool byte_fallback, Metaspace metaspace)
    : trie_(model_words(tokens)),
      scores_(std::move(scores)),
      unknown_(unknown),
      unknown_score_(unknown_score),
      bytes_(byte_tokens_of(tokens, byte_fallback)),
      metaspace_(std::move(metaspace)) {}

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
  std::vector<Node>& ends = work.ends;
  ends.assign(word.text.size() + 1, {});
  const auto offer = [&](std::size_t begin, std::size_t end, std::uint32_t token, double score) {
    Node& node = ends[end];
    const double whole = score + ends[begin].score;
    if (node.begin == nowhere || whole > node.score) node = {whole, begin, token};
  };
  for (std::size_t begin = 0; begin < word.text.size();) {
    const std::size_t next = begin + unicode::first_length(word.text.substr(begin));
    bool covers_character = false;
    trie_.for_each_match(Trie::root, word.text.substr(begin), [&](const Trie::Match& match) {
      offer(begin, begin + match.length, match.value, scores_[match.value]);
      covers_character |= begin + match.length == next;
    });
    if (!covers_character) offer(begin, next, unknown_, unknown_score_);
    begin = next;
  }
  work.path.clear();
  for (std::size_t end = word.text.size(); end > 0; end = ends[end].begin) work.path.push_back(end);
  std::size_t unknown_begin = nowhere;
  for (auto end = work.path.rbegin(); end != work.path.rend(); ++end) {
    const Node& node = ends[*end];
    if (node.token == unknown_) {
      if (unknown_begin == nowhere) unknown_begin = node.begin;
      continue;
    }
    if (unknown_begin != nowhere) add_unknown(word, unknown_begin, node.begin, pieces);
    unknown_begin = nowhere;
    pieces.add(word, node.token, node.begin, *end);
  }
  if (unknown_begin != nowhere) add_unknown(word, unknown_begin, word.text.size(), pieces);
}

void Unigram::add_unknown(const Passage& word, std::size_t begin, std::size_t end, Pieces& pieces) const {
  const std::string_view text = word.text.substr(begin, end - begin);
  const auto token_of = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  // A run may happen to be a token.
  if (const Trie::Match match = trie_.longest(Trie::root, text); match.length == text.size()) {
    pieces.add(word, match.value, begin, end);
  } else if (std::ranges::find(text, Trie::no_value, token_of) == text.end()) {
    for (const char byte : text) pieces.add(word, token_of(byte), begin, end);
  } else {
    pieces.add(word, unknown_, begin, end);
  }
}

}  // namespace xgrad::tokenizers::detail
