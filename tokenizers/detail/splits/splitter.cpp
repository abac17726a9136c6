#include "splitter.hpp"

#include <algorithm>

#include "../large_pages.hpp"

namespace xgrad::tokenizers::detail {

void Splitter::add_blank(const Passage& passage, TextBuffer& to) {
  to.clear();
  reserve_whole(to.text, passage.text.size() + 1);
  reserve_whole(to.sources, passage.text.size() + 1);
  to.text = ' ';
  to.text += passage.text;
  to.sources.push_back(passage.source(0));
  for (std::size_t i = 0; i < passage.text.size(); ++i) to.sources.push_back(passage.source(i));
}

void Splitter::show_blanks(const MetaspaceSplit& rule, const Passage& passage, TextBuffer& shown) {
  const std::string_view text = passage.text;
  shown.clear();
  const auto blanks = static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
  const std::size_t size = text.size() + (blanks + 1) * rule.blank.size();
  reserve_whole(shown.text, size);
  reserve_whole(shown.sources, size);
  const auto put_blank = [&](std::uint32_t source) {
    shown.text += rule.blank;
    shown.sources.resize(shown.text.size(), source);
  };
  const bool prepends = rule.prepend == MetaspaceSplit::Prepend::always ||
                        (rule.prepend == MetaspaceSplit::Prepend::first && passage.source(0) == 0);
  if (prepends && text.front() != ' ' && !text.starts_with(rule.blank)) put_blank(passage.source(0));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') {
      put_blank(passage.source(i));
    } else {
      shown.text.push_back(text[i]);
      shown.sources.push_back(passage.source(i));
    }
  }
}

std::string Splitter::shown_bytes(std::string_view text, std::vector<std::uint32_t>& bytes) {
  static const ByteAlphabet alphabet;
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unicode::append(shown, alphabet.character(static_cast<unsigned char>(text[i])));
    bytes.resize(shown.size(), static_cast<std::uint32_t>(i));
  }
  bytes.push_back(static_cast<std::uint32_t>(text.size()));
  return shown;
}

}  // namespace xgrad::tokenizers::detail
