#include "text_tokens.hpp"

#include <set>
#include <stdexcept>

#include "../corpora/utf8.hpp"

namespace apps {

TextTokens::TextTokens(std::string_view text) {
  const std::u32string all = apps::characters(text);
  for (const char32_t character : std::set<char32_t>(all.begin(), all.end())) {
    ids_.emplace(character, static_cast<std::int64_t>(characters_.size()));
    characters_ += character;
  }
}

TextTokens TextTokens::of(const SavedModel& saved) {
  const std::string& text = saved.text("characters");
  if (text.empty() || !decode_utf8(text)) saved.fail("characters", "text in UTF-8");
  return TextTokens(text);
}

void TextTokens::save_to(xgrad::Metadata& metadata) const {
  std::string& text = metadata["characters"];
  for (const char32_t character : characters_) text += encode_utf8(character);
}

std::vector<std::int64_t> TextTokens::ids(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for (const char32_t character : apps::characters(text)) {
    const auto found = ids_.find(character);
    if (found == ids_.end())
      throw std::invalid_argument("the text that the model learns has no character " +
                                  printable(encode_utf8(character)));
    ids.push_back(found->second);
  }
  return ids;
}

std::string TextTokens::text(const std::vector<std::int64_t>& ids) const {
  std::string text;
  for (const std::int64_t id : ids) text += encode_utf8(characters_.at(static_cast<std::size_t>(id)));
  return text;
}

std::vector<std::string> TextTokens::labels() const {
  std::vector<std::string> labels;
  labels.reserve(size());
  for (const char32_t character : characters_) {
    labels.push_back(character == U' ' ? "␣" : character == U'\n' ? "↵" : encode_utf8(character));
  }
  return labels;
}

}  // namespace apps
