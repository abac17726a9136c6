#include "text_tokens.hpp"

#include <map>
#include <set>
#include <stdexcept>

#include "../corpora/utf8.hpp"

namespace apps {

class TextTokens::Characters : public Kind {
 public:
  explicit Characters(std::string_view text) {
    const std::u32string all = apps::characters(text);
    for (const char32_t character : std::set<char32_t>(all.begin(), all.end())) {
      ids_.emplace(character, static_cast<std::int64_t>(characters_.size()));
      characters_ += character;
    }
  }

  void save_to(xgrad::Metadata& metadata) const override {
    std::string& text = metadata["characters"];
    for (const char32_t character : characters_) text += encode_utf8(character);
  }

  const char* name() const override { return "characters"; }

  std::size_t size() const override { return characters_.size(); }

  std::vector<std::int64_t> ids(std::string_view text) const override {
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

  Stream stream() const override {
    return [*this](std::int64_t id) { return bytes(id); };
  }

  std::string bytes(std::int64_t id) const override {
    return encode_utf8(characters_.at(static_cast<std::size_t>(id)));
  }

  std::vector<std::string> labels() const override {
    std::vector<std::string> labels;
    labels.reserve(size());
    for (const char32_t character : characters_) {
      labels.push_back(character == U' ' ? "␣" : character == U'\n' ? "↵" : encode_utf8(character));
    }
    return labels;
  }

 private:
  std::u32string characters_;
  std::map<char32_t, std::int64_t> ids_;
};

TextTokens TextTokens::of_characters(std::string_view text) {
  return TextTokens(std::make_shared<Characters>(text));
}

TextTokens TextTokens::of(const SavedModel& saved) {
  if (saved.has("merges")) return saved_byte_pairs(saved);
  const std::string& text = saved.text("characters");
  if (text.empty() || !decode_utf8(text)) saved.fail("characters", "text in UTF-8");
  return of_characters(text);
}

std::string TextTokens::text(const std::vector<std::int64_t>& ids) const {
  const Stream next = stream();
  std::string text;
  for (const std::int64_t id : ids) text += next(id);
  return text;
}

}  // namespace apps
