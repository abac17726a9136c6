#include "normalizer.hpp"

#include <algorithm>
#include <numeric>

#include "../../../base/error.hpp"
#include "../large_pages.hpp"
#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {

void TextBuffer::clear() {
  text.clear();
  sources.clear();
}

void TextBuffer::limit_growth(std::size_t size) {
  constexpr std::size_t growth = 100, room = 1000;
  most = growth * size + room;
}

void TextBuffer::check(std::size_t size) const {
  if (size > most)
    throw ValueError("Tokenizer: the normalizer makes a text more than 100 times as long as it is");
}

void TextBuffer::append(char32_t character, std::uint32_t source) {
  unicode::append(text, character);
  sources.resize(text.size(), source);
}

void append_lower(TextBuffer& buffer, char32_t character, std::uint32_t source) {
  buffer.append(character + static_cast<char32_t>(unicode::properties_of(character).to_lower), source);
  if (character == unicode::dotted_capital_i) buffer.append(unicode::dot_above, source);
}

Passage Passage::part(std::size_t begin, std::size_t end) const {
  return {text.substr(begin, end - begin), sources == nullptr ? nullptr : sources + begin,
          first + static_cast<std::uint32_t>(begin)};
}

Passage unchanged(std::string_view text, std::uint32_t first, TextBuffer& buffer) {
  if (std::ranges::all_of(text, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; }))
    return {text, nullptr, first};
  buffer.clear();
  reserve_whole(buffer.sources, text.size());
  for (std::size_t i = 0; i < text.size(); ++first) {
    i += unicode::first_length(text.substr(i));
    buffer.sources.resize(i, first);
  }
  return {text, buffer.sources.data()};
}

BertNormalizer::BertNormalizer(const Options& options) : options_(options) {
  for (std::size_t i = 0; i < ascii_.size(); ++i) {
    auto character = static_cast<char32_t>(i);
    const unicode::Properties& properties = unicode::properties_of(character);
    if (options.clean_text && (properties.flags & unicode::removed)) continue;
    if (options.clean_text && (properties.flags & unicode::space)) character = U' ';
    if (options.lowercase) character += static_cast<char32_t>(properties.to_lower);
    ascii_[i] = static_cast<char>(character);
  }
}

/// Takes characters in the order of the text and writes what becomes of them.
class BertNormalizer::Writer {
 public:
  Writer(const Options& options, TextBuffer& buffer) : options_(options), buffer_(buffer) {}

  void put(char32_t character, std::uint32_t source) {
    const std::uint16_t flags = unicode::properties_of(character).flags;
    if (options_.clean_text) {
      if (flags & unicode::removed) return;
      if (flags & unicode::space) character = U' ';
    }
    const bool alone = options_.handle_chinese_chars && (flags & unicode::chinese);
    if (alone) put_composed(U' ', source);
    put_composed(character, source);
    if (alone) put_composed(U' ', source);
  }

  /// Writes the marks that wait, which are those with a combining class that came since the last character
  /// without. They are sorted by their classes. As in the library, the n-th of them that is no later part of
  /// a decomposition counts as the n-th that was there, wherever it moved from.
  void flush() {
    if (marks_.empty()) return;
    std::ranges::stable_sort(marks_, {}, &Mark::combining_class);
    std::size_t next = 0;
    for (const Mark& mark : marks_) {
      if (mark.leads) last_ = sources_[next++];
      if (!unicode::is(mark.character, unicode::mark)) put_lowered(mark.character, last_);
    }
    marks_.clear();
    sources_.clear();
  }

 private:
  struct Mark {
    char32_t character;
    std::uint8_t combining_class;
    bool leads;  // its decomposition
  };

  void put_composed(char32_t character, std::uint32_t source) {
    if (!options_.strip_accents) return put_lowered(character, source);
    unicode::decompose(character, [&](char32_t part, bool leads) { put_decomposed(part, source, leads); });
  }

  void put_decomposed(char32_t character, std::uint32_t source, bool leads) {
    const unicode::Properties& properties = unicode::properties_of(character);
    if (properties.combining_class != 0) {
      marks_.push_back({character, properties.combining_class, leads});
      if (leads) sources_.push_back(source);
      return;
    }
    flush();
    last_ = source;
    if (!(properties.flags & unicode::mark)) put_lowered(character, source);
  }

  void put_lowered(char32_t character, std::uint32_t source) {
    if (options_.lowercase) {
      append_lower(buffer_, character, source);
    } else {
      buffer_.append(character, source);
    }
  }

  const Options& options_;
  TextBuffer& buffer_;
  std::vector<Mark> marks_;
  std::vector<std::uint32_t> sources_;  // of the leading marks
  std::uint32_t last_ = 0;              // source of what came last
};

Passage BertNormalizer::operator()(std::string_view text, std::uint32_t first, TextBuffer& buffer) const {
  buffer.clear();
  buffer.text.resize(text.size());
  std::size_t ascii = 0;  // characters at the front that each become one of ASCII
  for (; ascii < text.size(); ++ascii) {
    const auto byte = static_cast<unsigned char>(text[ascii]);
    if (byte >= ascii_.size() || ascii_[byte] == 0) break;
    buffer.text[ascii] = ascii_[byte];
  }
  if (ascii == text.size()) return {buffer.text, nullptr, first};

  buffer.text.resize(ascii);
  buffer.sources.resize(ascii);
  std::iota(buffer.sources.begin(), buffer.sources.end(), first);
  Writer writer(options_, buffer);
  auto source = first + static_cast<std::uint32_t>(ascii);
  for (std::size_t i = ascii; i < text.size(); ++source) {
    const std::string_view rest = text.substr(i);
    writer.put(unicode::first_of(rest), source);
    i += unicode::first_length(rest);
  }
  writer.flush();
  return {buffer.text, buffer.sources.data()};
}

std::string BertNormalizer::operator()(std::string_view text) const {
  TextBuffer buffer;
  return std::string((*this)(text, 0, buffer).text);
}

}  // namespace xgrad::tokenizers::detail
