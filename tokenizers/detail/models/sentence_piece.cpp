#include "sentence_piece.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "../large_pages.hpp"
#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

constexpr std::uint32_t end_of_list = ~std::uint32_t{0};

template <class Keep>
std::vector<std::pair<std::string_view, std::uint32_t>> words_where(const TokenTable& tokens, Keep&& keep) {
  std::vector<std::pair<std::string_view, std::uint32_t>> words = model_words(tokens);
  std::erase_if(words, [&](const auto& word) { return !keep(word.second); });
  return words;
}

}  // namespace

/// Takes the tokens of a text in order.
class SentencePiece::Output {
 public:
  Output(const SentencePiece& model, const TextBuffer& text, Pieces& pieces)
      : model_(model), text_(text), pieces_(pieces) {}

  void operator()(std::uint32_t token, std::size_t begin, std::size_t end) {
    const std::uint32_t first = text_.sources[begin], last = text_.sources[end];
    const std::string_view part = std::string_view(text_.text).substr(begin, end - begin);
    const bool is_unknown = token == model_.unknown_;
    if (!is_unknown) end_unknown();
    if (begin > 0 && part.starts_with(sentence_piece_blank)) ++pieces_.words;
    if (is_unknown && model_.options_.byte_fallback) {
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::uint32_t byte = model_.bytes_[static_cast<unsigned char>(part[i])];
        add(byte == no_token ? token : byte, first, i + 1 < part.size() ? first : last);
      }
    } else if (is_unknown && !unknown_.empty()) {
      pieces_.list.back().end = last;  // a run is one token
    } else {
      add(token, first, last);
    }
    if (is_unknown) unknown_ = {unknown_.empty() ? part.data() : unknown_.data(), part.data() + part.size()};
  }

  /// Ends a run of unknown characters, which may be a token of the vocabulary. To be called at the end.
  void end_unknown() {
    const auto& vocabulary = model_.options_.vocabulary;
    if (!unknown_.empty() && vocabulary && !model_.options_.byte_fallback) {
      const auto found = vocabulary->texts.find(unknown_);
      pieces_.list.back().token = found == vocabulary->texts.end() ? vocabulary->unknown : found->second;
    }
    unknown_ = {};
  }

 private:
  void add(std::uint32_t token, std::uint32_t begin, std::uint32_t end) {
    const auto& vocabulary = model_.options_.vocabulary;
    pieces_.list.push_back({vocabulary ? vocabulary->tokens[token] : token, begin, end, pieces_.words});
  }

  const SentencePiece& model_;
  const TextBuffer& text_;
  Pieces& pieces_;
  std::string_view unknown_;  // the run of unknown characters that is being read
};

/// Byte pair encoding: of all neighbours that are a token together, those with the highest score are joined
/// first, of equal ones the leftmost. The parts of a text that no token joins are merged one after the other.
class SentencePiece::Merging {
 public:
  Merging(const SentencePiece& model, std::string_view text) : model_(model), text_(text) {}

  void run(Output& output) {
    for (std::size_t begin = 0; begin < text_.size();) {
      if (!symbols_.empty() && !model_.may_join(text_, begin)) finish_part(output);
      const std::string_view rest = text_.substr(begin);
      const std::size_t fixed = model_.user_defined_.longest(Trie::root, rest).length;
      const std::size_t length = fixed != 0 ? fixed : unicode::first_length(rest);
      const auto place = static_cast<std::uint32_t>(symbols_.size());
      symbols_.push_back({begin, begin + length, place - 1, place + 1, fixed != 0});
      begin += length;
    }
    finish_part(output);
  }

 private:
  struct Symbol {
    std::size_t begin, end;
    std::uint32_t previous, next;
    bool is_fixed, is_gone = false;
  };

  struct Candidate {
    float score;
    std::uint32_t place;
    std::size_t size;

    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : place > other.place;
    }
  };

  void finish_part(Output& output) {
    if (symbols_.empty()) return;
    symbols_.back().next = end_of_list;
    reserve_large(candidates_, symbols_.size());
    for (std::uint32_t place = 0; place < symbols_.size(); ++place) offer(place);
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end());
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      Symbol& left = symbols_[best.place];
      // One of the two may have become longer since, or part of another one.
      if (left.next == end_of_list || symbols_[left.next].end - left.begin != best.size || left.is_gone)
        continue;
      Symbol& right = symbols_[left.next];
      left.end = right.end;
      left.next = right.next;
      right.is_gone = true;
      if (left.next != end_of_list) symbols_[left.next].previous = best.place;
      if (left.previous != end_of_list) offer(left.previous);
      offer(best.place);
    }
    for (const Symbol& symbol : symbols_)
      if (!symbol.is_gone) put(symbol.begin, symbol.end, output);
    symbols_.clear();
  }

  void offer(std::uint32_t place) {
    const Symbol& left = symbols_[place];
    if (left.next == end_of_list || left.is_fixed || symbols_[left.next].is_fixed) return;
    const std::string_view both = text_.substr(left.begin, symbols_[left.next].end - left.begin);
    const Trie::Match match = model_.words_.longest(Trie::root, both);
    if (match.length != both.size()) return;
    candidates_.push_back({model_.scores_[match.value], place, both.size()});
    std::push_heap(candidates_.begin(), candidates_.end());
    if (model_.types_[match.value] == Type::unused) splits_[std::string(both)] = left.end - left.begin;
  }

  /// Divides what became an unused token into those that it was made of.
  void put(std::size_t begin, std::size_t end, Output& output) const {
    if (splits_.empty()) return output(model_.token_of(text_.substr(begin, end - begin)), begin, end);
    std::vector<std::pair<std::size_t, std::size_t>> waiting{{begin, end}};
    while (!waiting.empty()) {
      const auto [from, to] = waiting.back();
      waiting.pop_back();
      const std::string_view text = text_.substr(from, to - from);
      const auto split = splits_.find(std::string(text));
      if (split == splits_.end()) {
        output(model_.token_of(text), from, to);
      } else {
        waiting.emplace_back(from + split->second, to);
        waiting.emplace_back(from, from + split->second);
      }
    }
  }

  const SentencePiece& model_;
  std::string_view text_;
  std::vector<Symbol, PoolAllocator<Symbol>> symbols_;           // of the part that is being read
  std::vector<Candidate, PoolAllocator<Candidate>> candidates_;  // a heap
  std::unordered_map<std::string, std::size_t> splits_;
};

SentencePiece::SentencePiece(const TokenTable& tokens, std::vector<Type> types, std::vector<float> scores,
                             Options options)
    : types_(std::move(types)),
      scores_(std::move(scores)),
      options_(std::move(options)),
      unknown_(static_cast<std::uint32_t>(std::ranges::find(types_, Type::unknown) - types_.begin())),
      words_(words_where(tokens,
                         [&](std::uint32_t token) {
                           return types_[token] == Type::normal || types_[token] == Type::user_defined ||
                                  types_[token] == Type::unused;
                         })),
      user_defined_(
          words_where(tokens, [&](std::uint32_t token) { return types_[token] == Type::user_defined; })),
      bytes_(byte_tokens_of(tokens)) {
  if (options_.kind == Kind::bpe) find_joins(tokens);
  if (options_.kind != Kind::unigram) return;
  // sentencepiece begins with FLT_MIN, so that negative scores do not count for the highest.
  float lowest = std::numeric_limits<float>::max(), highest = std::numeric_limits<float>::min();
  for (std::size_t i = 0; i < types_.size(); ++i) {
    if (types_[i] != Type::normal) continue;
    lowest = std::min(lowest, scores_[i]);
    highest = std::max(highest, scores_[i]);
  }
  std::vector<double> doubles(scores_.begin(), scores_.end());
  for (std::size_t i = 0; i < types_.size(); ++i) {
    // So that it is always taken.
    if (types_[i] == Type::user_defined)
      doubles[i] = static_cast<double>(static_cast<float>(tokens[i].text.size()) * highest) - 0.1;
  }
  constexpr float penalty = 10;  // of an unknown character, below the rarest token
  best_path_.emplace(
      words_where(tokens,
                  [&](std::uint32_t token) {
                    return types_[token] == Type::normal || types_[token] == Type::user_defined;
                  }),
      std::move(doubles),
      BestPath::Options{.unknown = unknown_, .unknown_score = lowest - penalty, .rounds_to_float = true});
}

std::size_t SentencePiece::first_unit(std::string_view text) const {
  const std::size_t length = user_defined_.longest(Trie::root, text).length;
  return length != 0 ? length : unicode::first_length(text);
}

std::uint32_t SentencePiece::token_of(std::string_view text) const {
  const Trie::Match match = words_.longest(Trie::root, text);
  const bool is_known = match.length == text.size() && types_[match.value] != Type::unused;
  return is_known ? match.value : unknown_;
}

void SentencePiece::find_joins(const TokenTable& tokens) {
  for (std::size_t token = 0; token < types_.size(); ++token) {
    std::string_view rest = tokens[token].text;
    if (rest.empty()) continue;
    for (char32_t last = unicode::first_of(rest);;) {
      rest.remove_prefix(unicode::first_length(rest));
      if (rest.empty()) break;
      const char32_t next = unicode::first_of(rest);
      joins_.insert(last, next);
      last = next;
    }
  }
}

bool SentencePiece::may_join(std::string_view text, std::size_t place) const {
  return joins_.contains(unicode::last_of(text.substr(0, place)), unicode::first_of(text.substr(place)));
}

TextBuffer SentencePiece::normalized(const Passage& passage) const {
  const std::string_view text = passage.text, blank = options_.shows_blanks ? sentence_piece_blank : " ";
  TextBuffer result;
  result.limit_growth(text.size());
  const auto blanks = static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
  const std::size_t size = text.size() + (blanks + 1) * blank.size();
  reserve_whole(result.text, size);
  reserve_whole(result.sources, size + 1);
  std::size_t done = 0;  // bytes of the text
  const auto put = [&](std::string_view part) {
    result.text += part;
    result.sources.resize(result.text.size(),
                          done < text.size() ? passage.source(done) : passage.source(text.size() - 1) + 1);
  };
  const auto next = [&] {
    const std::string_view rest = text.substr(done);
    const Trie::Match symbol = user_defined_.longest(Trie::root, rest);
    const auto entry =
        symbol.length == 0 && options_.charsmap ? options_.charsmap->longest(rest) : std::nullopt;
    const std::size_t length = symbol.length != 0 ? symbol.length : unicode::first_length(rest);
    return entry ? *entry : Charsmap::Entry{rest.substr(0, length), length};
  };
  while (options_.remove_extra_blanks && done < text.size()) {
    const Charsmap::Entry entry = next();
    if (entry.text != " ") break;
    done += entry.length;
  }
  if (done == text.size()) return result;
  if (options_.add_dummy_prefix && !options_.blank_as_suffix) put(blank);
  bool after_blank = options_.remove_extra_blanks;
  while (done < text.size()) {
    auto [part, length] = next();
    while (after_blank && part.starts_with(' ')) part.remove_prefix(1);
    result.check(result.text.size() + part.size());
    for (const char& byte : part) put(byte == ' ' ? blank : std::string_view(&byte, 1));
    if (!part.empty()) after_blank = options_.remove_extra_blanks && part.ends_with(' ');
    done += length;
  }
  std::uint32_t end = passage.source(text.size() - 1) + 1;
  while (options_.remove_extra_blanks && result.text.ends_with(blank)) {
    result.text.resize(result.text.size() - blank.size());
    end = result.sources[result.text.size()];
    result.sources.resize(result.text.size());
  }
  if (options_.add_dummy_prefix && options_.blank_as_suffix) {
    result.text += blank;
    result.sources.resize(result.text.size(), end);
  }
  result.sources.push_back(end);
  return result;
}

void SentencePiece::split_words(std::string_view text, Output& output) const {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(sentence_piece_blank, begin + 1), text.size());
    output(token_of(text.substr(begin, end - begin)), begin, end);
    begin = end;
  }
}

bool SentencePiece::operator()(const Passage& passage, Pieces& pieces) const {
  if (passage.text.empty()) return true;
  const TextBuffer normal = normalized(passage);
  const std::string_view text = normal.text;
  if (text.empty()) return true;
  Output output(*this, normal, pieces);
  switch (options_.kind) {
    case Kind::unigram: {
      BestPath::Work work;
      (*best_path_)(text, work, output);
      break;
    }
    case Kind::bpe:
      Merging(*this, text).run(output);
      break;
    case Kind::word:
      split_words(text, output);
      break;
    case Kind::characters:
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = begin + first_unit(text.substr(begin));
        output(token_of(text.substr(begin, end - begin)), begin, end);
        begin = end;
      }
      break;
  }
  output.end_unknown();
  return pieces.end_word();
}

}  // namespace xgrad::tokenizers::detail
