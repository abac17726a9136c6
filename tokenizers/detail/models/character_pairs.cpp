#include "character_pairs.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"
#include "../large_pages.hpp"
#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

constexpr std::size_t ascii_characters = 128;

}  // namespace

/// Takes the characters of a word in order and adds its tokens to the pieces. Between characters that no
/// merge joins, a word falls into parts of its own.
class CharacterPairs::Word {
 public:
  Word(const CharacterPairs& model, Pieces& pieces) : model_(model), pieces_(pieces) {}

  void read(const Passage& passage) {
    passage_ = &passage;
    done_ = 0;
    const std::string_view text = passage.text;
    if (model_.options_.ignore_merges) {
      if (const auto whole = model_.words_.find(text); whole != model_.words_.end())
        return put(whole->second, static_cast<std::uint32_t>(text.size()));
    }
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = part_end(text, begin);
      read_part(text.substr(begin, end - begin));
      begin = end;
    }
    put_unknown();
  }

 private:
  /// Where the part that begins there ends: after one unknown character, or where no merge joins two.
  std::size_t part_end(std::string_view text, std::size_t begin) const {
    char32_t last = unicode::first_of(text.substr(begin));
    std::size_t end = begin + unicode::first_length(text.substr(begin));
    if (model_.token_of(last) == no_token) return end;
    while (end < text.size()) {
      const std::string_view rest = text.substr(end);
      const char32_t next = unicode::first_of(rest);
      if (model_.token_of(next) == no_token || !model_.joins_.contains(last, next)) break;
      last = next;
      end += unicode::first_length(rest);
    }
    return end;
  }

  void read_part(std::string_view part) {
    if (model_.token_of(unicode::first_of(part)) == no_token) return read_unknown(part);
    put_unknown();
    const std::span<const WordPart> known = cache_.find(model_.owner_, part);
    for (const auto& [token, length] : known) put(token, length);
    if (!known.empty()) return;
    work_.symbols.clear();
    reserve_large(work_.symbols, part.size());
    for (std::string_view rest = part; !rest.empty();) {
      const std::size_t length = unicode::first_length(rest);
      work_.add(model_.token_of(unicode::first_of(rest)), static_cast<std::uint32_t>(length));
      rest.remove_prefix(length);
    }
    model_.merges_.join(work_);
    parts_.clear();
    for (const Merges::Symbol& symbol : work_.symbols) {
      if (symbol.length == 0) continue;
      put(symbol.token, symbol.length);
      if (WordCache::takes(part)) parts_.push_back({symbol.token, symbol.length});
    }
    cache_.keep(model_.owner_, part, parts_);
  }

  /// As in the library, the bytes of a character come before unknown ones that wait.
  void read_unknown(std::string_view character) {
    const auto token_of = [&](char byte) { return model_.bytes_[static_cast<unsigned char>(byte)]; };
    if (model_.options_.byte_fallback && std::none_of(character.begin(), character.end(), [&](char byte) {
          return token_of(byte) == no_token;
        })) {
      for (const char byte : character) put(token_of(byte), 1);
      return;
    }
    if (!model_.options_.unknown) return;
    if (!model_.options_.fuse_unknown) put_unknown();
    unknown_length_ += static_cast<std::uint32_t>(character.size());
  }

  void put_unknown() {
    if (unknown_length_ != 0) put(*model_.options_.unknown, std::exchange(unknown_length_, 0));
  }

  void put(std::uint32_t token, std::uint32_t length) {
    pieces_.add(*passage_, token, done_, done_ + length);
    done_ += length;
  }

  const CharacterPairs& model_;
  Pieces& pieces_;
  WordCache& cache_ = word_cache();
  const Passage* passage_ = nullptr;
  std::size_t done_ = 0;  // bytes of the passage; those of characters that go do not count, as in the library
  std::uint32_t unknown_length_ = 0;  // of unknown characters that wait for more of them
  Merges::Work work_;
  std::vector<WordPart> parts_;  // of a short part, to be kept
};

CharacterPairs::CharacterPairs(const TokenTable& tokens, const MergeTexts& merges, Options options,
                               const std::string& where)
    : options_(std::move(options)),
      first_characters_(ascii_characters, no_token),
      merges_(tokens, merges, where),
      bytes_(byte_tokens_of(tokens)) {
  for (const auto& [text, token] : model_words(tokens)) {
    if (options_.ignore_merges) words_.emplace(text, token);
    if (text.empty() || unicode::first_length(text) != text.size()) continue;
    const char32_t character = unicode::first_of(text);
    if (character < ascii_characters) first_characters_[character] = token;
    characters_.emplace(character, token);
  }
  const auto is_of_characters = [&](const std::string& text) {
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(unicode::first_length(rest)))
      if (token_of(unicode::first_of(rest)) == no_token) return false;
    return !text.empty();
  };
  const auto stands_for_others = [&](const std::string& text) {
    const auto token = tokens.model_index(text);
    return token == options_.unknown ||
           (options_.byte_fallback && std::find(bytes_.begin(), bytes_.end(), *token) != bytes_.end());
  };
  for (const auto& [left, right] : merges) {
    if (stands_for_others(left) || stands_for_others(right))
      xgrad::detail::fail<FileError>(
          where,
          ": merges of unknown characters or of bytes that stand for them are not supported, got one of ",
          xgrad::detail::in_quotes(left), " and ", xgrad::detail::in_quotes(right));
    // Others never come about.
    if (is_of_characters(left) && is_of_characters(right))
      joins_.insert(unicode::last_of(left), unicode::first_of(right));
  }
}

std::uint32_t CharacterPairs::token_of(char32_t character) const {
  if (character < ascii_characters) return first_characters_[character];
  const auto found = characters_.find(character);
  return found == characters_.end() ? no_token : found->second;
}

bool CharacterPairs::operator()(const Passage& passage, Pieces& pieces) const {
  Word reader(*this, pieces);
  return options_.splitter(passage, [&](const Passage& word) {
    reader.read(word);
    return pieces.end_word();
  });
}

}  // namespace xgrad::tokenizers::detail
