#include "text_steps.hpp"

#include <algorithm>

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

void Replace::operator()(const TextBuffer& from, TextBuffer& to) const {
  const std::string_view text = from.text, wanted = from_.empty() ? "  " : std::string_view(from_);
  std::size_t done = 0;
  for (std::size_t found; (found = text.find(wanted, done)) != text.npos;) {
    const std::size_t end =
        from_.empty() ? std::min(text.find_first_not_of(' ', found), text.size()) : found + wanted.size();
    copy(from, done, found, to);
    to.text += to_;
    to.check(to.text.size());
    to.sources.resize(to.text.size(), from.sources[end - 1]);
    done = end;
  }
  copy(from, done, text.size(), to);
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

Passage TextSteps::operator()(std::string_view text, std::uint32_t first, TextBuffer& buffer) const {
  buffer.clear();
  buffer.text.reserve(text.size());
  buffer.sources.reserve(text.size());
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(unicode::first_length(rest)))
    buffer.append(unicode::first_of(rest), first++);
  TextBuffer next;
  buffer.limit_growth(text.size());
  next.limit_growth(text.size());
  for (const Step& step : steps_) {
    if (buffer.text.empty()) break;
    next.clear();
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
