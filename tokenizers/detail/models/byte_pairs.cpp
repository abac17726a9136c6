#include "byte_pairs.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <span>

#include "../../../base/detail/json_text.hpp"
#include "../../../base/error.hpp"
#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

using xgrad::detail::in_quotes;

constexpr std::uint32_t none = ~std::uint32_t{0};

enum class LetterKind : std::uint8_t { other, space, letter, number };

constexpr LetterKind letter_kind_of(char32_t character) {
  const std::uint16_t flags = unicode::properties_of(character).flags;
  return flags & unicode::letter   ? LetterKind::letter
         : flags & unicode::number ? LetterKind::number
         : flags & unicode::space  ? LetterKind::space
                                   : LetterKind::other;
}

constexpr std::array<LetterKind, 128> ascii_letter_kinds() {
  std::array<LetterKind, 128> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = letter_kind_of(static_cast<char32_t>(i));
  return kinds;
}

constexpr std::array<LetterKind, 128> ascii = ascii_letter_kinds();

LetterKind first_kind(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  return byte < ascii.size() ? ascii[byte] : letter_kind_of(unicode::first_of(text));
}

/// The bytes of the characters of that kind which the text begins with.
std::size_t run_length(std::string_view text, LetterKind kind) {
  std::size_t i = 0;
  while (i < text.size() && first_kind(text.substr(i)) == kind) i += unicode::first_length(text.substr(i));
  return i;
}

/// Part of a word, with its length in bytes.
struct WordPart {
  std::uint32_t token, length;
};

/// The parts of words that came before. A word has one place, which the last one that fell on it holds, so
/// that what a thread keeps is of fixed size whatever the texts are.
class WordCache {
 public:
  std::span<const WordPart> find(std::uint64_t owner, std::string_view word) {
    const Entry& entry = entries_[place(owner, word)];
    if (entry.owner != owner || std::string_view(entry.word, entry.length) != word) return {};
    return {entry.parts, entry.count};
  }

  static bool takes(std::string_view word) { return word.size() <= longest_word; }

  void keep(std::uint64_t owner, std::string_view word, std::span<const WordPart> parts) {
    if (!takes(word) || parts.size() > most_parts) return;
    Entry& entry = entries_[place(owner, word)];
    entry.owner = owner;
    entry.length = static_cast<std::uint8_t>(word.size());
    entry.count = static_cast<std::uint8_t>(parts.size());
    std::memcpy(entry.word, word.data(), word.size());
    std::ranges::copy(parts, entry.parts);
  }

 private:
  static constexpr std::size_t places = 4096, longest_word = 30, most_parts = 11;

  struct Entry {
    std::uint64_t owner = 0;
    std::uint8_t length = 0, count = 0;
    char word[longest_word];
    WordPart parts[most_parts];
  };

  static std::size_t place(std::uint64_t owner, std::string_view word) {
    return (std::hash<std::string_view>()(word) + owner) % places;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(places);
};

}  // namespace

ByteAlphabet::ByteAlphabet() {
  bytes_.fill(-1);
  char32_t free = 256;
  for (std::size_t byte = 0; byte < characters_.size(); ++byte) {
    const bool shown = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    characters_[byte] = shown ? static_cast<char32_t>(byte) : free++;
    bytes_[characters_[byte]] = static_cast<std::int16_t>(byte);
  }
}

void ByteAlphabet::decode(std::string_view token, std::string& bytes) const {
  const std::size_t before = bytes.size();
  for (std::size_t i = 0; i < token.size(); i += unicode::first_length(token.substr(i))) {
    const char32_t character = unicode::first_of(token.substr(i));
    if (character >= bytes_.size() || bytes_[character] < 0) {
      bytes.resize(before);
      bytes += token;
      return;
    }
    bytes.push_back(static_cast<char>(bytes_[character]));
  }
}

std::size_t first_word(std::string_view text) {
  if (text.front() == '\'') {
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (text.starts_with(ending)) return ending.size();
    }
  }
  const LetterKind kind = first_kind(text);
  if (kind != LetterKind::space) return run_length(text, kind);
  if (text.front() == ' ' && text.size() > 1) {
    const LetterKind next = first_kind(text.substr(1));
    if (next != LetterKind::space) return 1 + run_length(text.substr(1), next);
  }
  // The last blank belongs to what follows, unless it is the only one.
  const std::size_t blanks = run_length(text, LetterKind::space);
  if (blanks == text.size() || blanks == unicode::first_length(text)) return blanks;
  return unicode::last_start(text.substr(0, blanks));
}

/// Symbols are a list, whose links are places.
struct BytePairs::Symbol {
  std::uint32_t token, length, previous, next;
};

struct BytePairs::Work {
  struct Candidate {
    std::uint32_t rank, place, token;

    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };

  std::vector<Symbol> symbols;
  std::vector<Candidate> candidates;  // a heap, the first merge to make at its front
  std::vector<WordPart> parts;        // of a short word, to be kept
};

BytePairs::BytePairs(const TokenTable& tokens, const std::vector<std::pair<std::string, std::string>>& merges,
                     const Options& options, const std::string& where)
    : options_(options), joins_(std::size_t{1} << 16), merges_(std::bit_ceil(2 * merges.size() + 1)) {
  static std::atomic<std::uint64_t> objects{0};
  number_ = ++objects;
  const ByteAlphabet alphabet;
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    std::string text;
    unicode::append(text, alphabet.character(static_cast<unsigned char>(byte)));
    const auto token = tokens.model_index(text);
    if (!token)
      xgrad::detail::fail<FileError>(
          where, ": the vocabulary must have a token for each of the 256 bytes, got none for ",
          in_quotes(text));
    byte_tokens_[byte] = *token;
  }
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string &left = merges[rank].first, &right = merges[rank].second;
    const auto known = [&](const std::string& text) {
      const auto token = tokens.model_index(text);
      if (!token)
        xgrad::detail::fail<FileError>(where, ": merge ", rank, " of ", in_quotes(left), " and ",
                                       in_quotes(right), " must join two tokens into a token, got no token ",
                                       in_quotes(text));
      return *token;
    };
    const std::uint64_t pair = pair_of(known(left), known(right));
    merges_[slot_of(pair)] = {pair, static_cast<std::uint32_t>(rank), known(left + right)};
    std::string bytes_of_left, bytes_of_right;
    alphabet.decode(left, bytes_of_left);
    alphabet.decode(right, bytes_of_right);
    if (left.empty() || right.empty()) continue;
    joins_[place_of(bytes_of_left.back(), bytes_of_right.front())] = true;
  }
}

std::size_t BytePairs::slot_of(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t slot = (pair * 0x9E3779B97F4A7C15) >> 32 & mask;
  while (merges_[slot].pair != no_pair && merges_[slot].pair != pair) slot = (slot + 1) & mask;
  return slot;
}

const BytePairs::Merge* BytePairs::find(std::uint32_t left, std::uint32_t right) const {
  const Merge& merge = merges_[slot_of(pair_of(left, right))];
  return merge.pair == no_pair ? nullptr : &merge;
}

void BytePairs::merge(std::string_view part, Work& work) const {
  std::vector<Symbol>& symbols = work.symbols;
  symbols.clear();
  symbols.reserve(part.size());
  for (const char byte : part) {
    const auto place = static_cast<std::uint32_t>(symbols.size());
    const std::uint32_t next = place + 1 < part.size() ? place + 1 : none;
    symbols.push_back({byte_tokens_[static_cast<unsigned char>(byte)], 1, place - 1, next});
  }
  const auto push = [&](std::uint32_t place) {
    if (place == none || symbols[place].next == none) return;
    const Merge* const merge = find(symbols[place].token, symbols[symbols[place].next].token);
    if (merge == nullptr) return;
    work.candidates.push_back({merge->rank, place, merge->token});
    std::ranges::push_heap(work.candidates, std::greater<>());
  };
  work.candidates.clear();
  work.candidates.reserve(part.size());
  for (std::uint32_t place = 0; place < symbols.size(); ++place) push(place);
  while (!work.candidates.empty()) {
    std::ranges::pop_heap(work.candidates, std::greater<>());
    const Work::Candidate best = work.candidates.back();
    work.candidates.pop_back();
    Symbol& left = symbols[best.place];
    if (left.length == 0 || left.next == none) continue;
    Symbol& right = symbols[left.next];
    // One of the two may have become longer since.
    const Merge* const merge = find(left.token, right.token);
    if (merge == nullptr || merge->token != best.token) continue;
    left.token = best.token;
    left.length += right.length;
    left.next = right.next;
    right.length = 0;
    if (left.next != none) symbols[left.next].previous = best.place;
    push(left.previous);
    push(best.place);
  }
}

void BytePairs::add_word(const Passage& passage, std::size_t begin, std::size_t end, Work& work,
                         Pieces& pieces) const {
  thread_local WordCache cache;
  const std::string_view word = passage.text.substr(begin, end - begin);
  const auto add = [&](std::uint32_t token, std::size_t length) {
    pieces.add(passage, token, begin, begin + length);
    begin += length;
  };
  const std::span<const WordPart> known = cache.find(number_, word);
  for (const WordPart& part : known) add(part.token, part.length);
  if (!known.empty()) return;
  work.parts.clear();
  // Between bytes that no merge joins, a word falls into parts of its own.
  for (std::size_t first = 0, last = 1; first < word.size(); first = last++) {
    while (last < word.size() && joins_[place_of(word[last - 1], word[last])]) ++last;
    merge(word.substr(first, last - first), work);
    for (const Symbol& symbol : work.symbols) {
      if (symbol.length == 0) continue;
      add(symbol.token, symbol.length);
      if (WordCache::takes(word)) work.parts.push_back({symbol.token, symbol.length});
    }
  }
  cache.keep(number_, word, work.parts);
}

bool BytePairs::operator()(const Passage& passage, Pieces& pieces) const {
  if (options_.add_prefix_space && !passage.text.starts_with(' ')) {
    std::vector<std::uint32_t> sources;
    sources.reserve(passage.text.size() + 1);
    sources.push_back(passage.source(0));
    for (std::size_t i = 0; i < passage.text.size(); ++i) sources.push_back(passage.source(i));
    const std::string text = ' ' + std::string(passage.text);
    return (*this)({text, sources.data()}, pieces);
  }
  Work work;
  bool more = true;
  for (std::size_t i = 0; i < passage.text.size() && more;) {
    const std::string_view rest = passage.text.substr(i);
    const std::size_t length = options_.use_regex ? first_word(rest) : rest.size();
    add_word(passage, i, i + length, work, pieces);
    more = pieces.end_word();
    i += length;
  }
  return more;
}

}  // namespace xgrad::tokenizers::detail
