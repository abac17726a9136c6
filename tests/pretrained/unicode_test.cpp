#include "../../pretrained/detail/unicode.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../pretrained/detail/byte_pairs.hpp"
#include "../../pretrained/detail/normalizer.hpp"
#include "../files.hpp"
#include "unicode_sweep.hpp"

namespace {

namespace unicode = xgrad::pretrained::detail::unicode;
using nlohmann::json;
using xgrad::pretrained::detail::BertNormalizer, xgrad::pretrained::detail::first_word;
using xgrad_tests::all_characters, xgrad_tests::members, xgrad_tests::text_of;

json read_sweep(const char* name) {
  return json::parse(xgrad_tests::read_bytes(std::string(XGRAD_PRETRAINED_DIR) + "/unicode/" + name));
}

TEST(UnicodeTest, EveryCharacterIsAsInTheLibrary) {
  EXPECT_EQ(all_characters().size(), 1'112'064U);
  const auto wrong = xgrad_tests::compare_every_character(read_sweep("sweep.json"));
  EXPECT_EQ(wrong.size(), 6U);
  for (const auto& [name, count] : wrong) EXPECT_EQ(count, 0U) << name;
}

TEST(UnicodeTest, EveryCharacterHasItsClass) {
  const json patterns = read_sweep("patterns.json");
  const auto space = members(read_sweep("sweep.json"), "split_at_spaces_by_pre_tokenizer");
  const auto words = members(patterns, "words"), letters = members(patterns, "letters"),
             numbers = members(patterns, "numbers");
  std::size_t wrong = 0;
  for (const char32_t c : all_characters()) {
    const std::string text = text_of(c);
    const bool other = !letters[c] && !numbers[c] && !space[c];
    const bool right = unicode::is(c, unicode::word) == words[c] &&
                       (first_word("a" + text) > 1) == letters[c] &&
                       (first_word("1" + text) > 1) == numbers[c] && (first_word("!" + text) > 1) == other;
    if (!right && wrong++ < 10) ADD_FAILURE() << std::hex << static_cast<std::uint32_t>(c);
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(UnicodeTest, SplitsAsGpt2) {
  const auto words = [](std::string_view text) {
    std::vector<std::string> result;
    while (!text.empty()) {
      result.emplace_back(text.substr(0, first_word(text)));
      text.remove_prefix(result.back().size());
    }
    return result;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("I'm  he'll can't 'S 's"),
            (Words{"I", "'m", " ", " he", "'ll", " can", "'t", " '", "S", " '", "s"}));
  EXPECT_EQ(words("a1 2b..  \n c \t"), (Words{"a", "1", " 2", "b", "..", "  \n", " c", " \t"}));
  EXPECT_EQ(words("a\u3000b\u3000\u3000c"), (Words{"a", "\u3000", "b", "\u3000", "\u3000", "c"}));
  EXPECT_EQ(words("'re've'd'"), (Words{"'re", "'ve", "'d", "'"}));
}

TEST(UnicodeTest, MarksAreSortedByTheirClasses) {
  xgrad::pretrained::detail::TextBuffer buffer;
  const BertNormalizer strip({false, false, true, false});
  // U+302E (class 224) is no mark of Unicode 8.0 without width, so it stays, and so does U+1D165 (216).
  const auto passage = strip("a\u302E\U0001D165\u0301b", 5, buffer);
  EXPECT_EQ(passage.text, "a\U0001D165\u302Eb");
  EXPECT_EQ(passage.source(0), 5U);
  EXPECT_EQ(passage.source(1), 6U);
  EXPECT_EQ(passage.source(5), 7U);
  EXPECT_EQ(passage.source(8), 9U);
}

}  // namespace
