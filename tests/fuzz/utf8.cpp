// Words in UTF-8: code points and back, how errors show them, their syllables
// seeds: tests/fuzz/seeds/lines
#include <algorithm>

#include "../../apps/corpora/utf8.hpp"
#include "../../apps/corpora/word_labels.hpp"

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const auto points = apps::decode_utf8(text);
  if (points) {
    std::string again;
    for (const char32_t point : *points) again += apps::encode_utf8(point);
    fuzz::require(again == text, "code points are written as they were read");
  }
  const bool characters = fuzz::accepts<std::invalid_argument>([&] { apps::characters(text); });
  fuzz::require(characters == points.has_value(), "every text in UTF-8 has characters, and no other");
  const auto shown = apps::decode_utf8(apps::printable(text));
  fuzz::require(shown && std::ranges::none_of(*shown, apps::is_control),
                "what an error shows can be printed");
  fuzz::require(apps::vowel_rule(text) >= 1, "a word has a syllable");
  return 0;
}
