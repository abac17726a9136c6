#include "text_steps.hpp"

#include <algorithm>

#include "../../../base/error.hpp"
#include "../large_pages.hpp"
#include "../unicode/unicode.hpp"

namespace xgrad::tokenizers::detail {
namespace {

/// Appends bytes [begin, end) with their sources.
void copy(const TextBuffer& from, std::size_t begin, std::size_t end, TextBuffer& to) {
  to.text.append(from.text, begin, end - begin);
  to.sources.insert(to.sources.end(), from.sources.begin() + static_cast<std::ptrdiff_t>(begin),
                    from.sources.begin() + static_cast<std::ptrdiff_t>(end));
}

}  // namespace

template <class OnMatch>
void Replace::for_each_match(std::string_view text, OnMatch&& on_match) const {
  if (const Pattern* const pattern = std::get_if<Pattern>(&from_)) {
    Pattern::Work work(text.size());
    pattern->for_each_match(text, work, [&](std::size_t begin, std::size_t end) {
      on_match(begin, end);
      return true;
    });
    return;
  }
  const std::string& wanted = std::get<std::string>(from_);
  for (std::size_t found = 0; (found = text.find(wanted, found)) != text.npos; found += wanted.size())
    on_match(found, found + wanted.size());
}

void Replace::operator()(const TextBuffer& from, TextBuffer& to) const {
  std::size_t done = 0;
  for_each_match(from.text, [&](std::size_t begin, std::size_t end) {
    copy(from, done, begin, to);
    to.text += to_;
    to.check(to.text.size());
    to.sources.resize(to.text.size(), from.sources[std::max<std::size_t>(end, 1) - 1]);
    done = end;
  });
  copy(from, done, from.text.size(), to);
}

std::string Replace::operator()(std::string_view text, std::size_t most) const {
  std::string result;
  std::size_t done = 0;
  const auto put = [&](std::string_view part) {
    if (part.size() > most - result.size())
      throw ValueError("Tokenizer: the decoder makes a text more than 100 times as long as it is");
    result += part;
  };
  for_each_match(text, [&](std::size_t begin, std::size_t end) {
    put(text.substr(done, begin - done));
    put(to_);
    done = end;
  });
  put(text.substr(done));
  return result;
}

void Prepend::operator()(const TextBuffer& from, TextBuffer& to) const {
  to.text = text;
  to.check(to.text.size() + from.text.size());
  to.sources.assign(text.size(), from.sources.front());
  copy(from, 0, from.text.size(), to);
}

void Strip::operator()(const TextBuffer& from, TextBuffer& to) const {
  std::string_view rest = from.text;
  if (right) rest = unicode::without_spaces_at_the_end(rest);
  std::size_t begin = 0;
  while (left && begin < rest.size() && unicode::is(unicode::first_of(rest.substr(begin)), unicode::space))
    begin += unicode::first_length(rest.substr(begin));
  copy(from, begin, rest.size(), to);
}

void StripAccents::operator()(const TextBuffer& from, TextBuffer& to) const {
  for (std::size_t i = 0, end = 0; i < from.text.size(); i = end) {
    const std::string_view rest = std::string_view(from.text).substr(i);
    end = i + unicode::first_length(rest);
    if (!unicode::is(unicode::first_of(rest), unicode::combining)) copy(from, i, end, to);
  }
}

void Lowercase::operator()(const TextBuffer& from, TextBuffer& to) const {
  for (std::size_t i = 0; i < from.text.size();) {
    const std::string_view rest = std::string_view(from.text).substr(i);
    append_lower(to, unicode::first_of(rest), from.sources[i]);
    i += unicode::first_length(rest);
  }
}

void Nmt::operator()(const TextBuffer& from, TextBuffer& to) const {
  const auto goes = [](char32_t c) {
    return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
  };
  const auto is_space = [](char32_t c) {
    return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  };
  for (std::size_t i = 0; i < from.text.size();) {
    const std::string_view rest = std::string_view(from.text).substr(i);
    const char32_t character = unicode::first_of(rest);
    if (!goes(character)) to.append(is_space(character) ? U' ' : character, from.sources[i]);
    i += unicode::first_length(rest);
  }
}

Passage TextSteps::operator()(std::string_view text, std::uint32_t first, TextBuffer& buffer) const {
  buffer.clear();
  reserve_whole(buffer.text, text.size());
  reserve_whole(buffer.sources, text.size());
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(unicode::first_length(rest)))
    buffer.append(unicode::first_of(rest), first++);
  constexpr std::size_t room = 16;  // a step may add a character or make some longer
  TextBuffer next;
  buffer.limit_growth(text.size());
  next.limit_growth(text.size());
  for (const Step& step : steps_) {
    if (buffer.text.empty()) break;
    next.clear();
    const std::size_t size = buffer.text.size() + buffer.text.size() / 2 + room;
    reserve_large(next.text, size);
    reserve_large(next.sources, size);
    std::visit([&](const auto& rule) { rule(buffer, next); }, step);
    std::swap(buffer, next);
  }
  return {buffer.text, buffer.sources.data()};
}

TextSteps TextSteps::lowercased() const {
  if (std::ranges::any_of(steps_, [](const Step& step) { return std::holds_alternative<Lowercase>(step); }))
    return *this;
  std::vector<Step> steps{Lowercase{}};
  steps.insert(steps.end(), steps_.begin(), steps_.end());
  return TextSteps(std::move(steps));
}

std::string Normalizer::operator()(std::string_view text) const {
  TextBuffer buffer;
  return std::string((*this)(text, 0, buffer).text);
}

}  // namespace xgrad::tokenizers::detail
