#include "../../tokenizers/detail/unicode/unicode.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../tokenizers/detail/files/pipeline.hpp"
#include "../../tokenizers/detail/models/byte_pairs.hpp"
#include "../../tokenizers/detail/normalizers/normalizer.hpp"
#include "../../tokenizers/detail/unicode/grapheme.hpp"
#include "../files.hpp"
#include "unicode_sweep.hpp"

namespace unicode_test {

namespace unicode = xgrad::tokenizers::detail::unicode;
using nlohmann::json;
using xgrad::tokenizers::detail::BertNormalizer, xgrad::tokenizers::detail::first_word;
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

/// https://www.unicode.org/reports/tr29/
TEST(UnicodeTest, GraphemesEndWhereUnicodeSays) {
  EXPECT_EQ(unicode::first_grapheme("\r\na"), 2U);
  EXPECT_EQ(unicode::first_grapheme("\n\u0301"), 1U);
  EXPECT_EQ(unicode::first_grapheme("e\u0301\u0302a"), 5U);
  EXPECT_EQ(unicode::first_grapheme("ab"), 1U);
  EXPECT_EQ(unicode::first_grapheme("\u0600a"), 3U) << "an Arabic number sign leads";
  EXPECT_EQ(unicode::first_grapheme("\u0600\n"), 2U);
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

xgrad::tokenizers::detail::Normalizer normalizer(const char* type) {
  namespace detail = xgrad::tokenizers::detail;
  const json rules = {{"type", type}};
  return *detail::read_normalizer(detail::Json::parse("rules", rules.dump()));
}

TEST(UnicodeTest, EveryCharacterHasItsNormalForms) {
  const json facts = read_sweep("normalization.json");
  const auto changed = members(facts, "composed_otherwise"), marks = members(facts, "combining");
  const xgrad_tests::CharacterMap compatible(facts, "compatibility");
  const auto nfc = normalizer("NFC"), nfd = normalizer("NFD"), nfkd = normalizer("NFKD"),
             strip = normalizer("StripAccents");
  std::size_t wrong = 0;
  for (const char32_t c : all_characters()) {
    const std::string text = text_of(c), decomposed = nfd(text), simpler = compatible(c);
    const bool right = (nfc(text) != text) == changed[c] && nfc(decomposed) == nfc(text) &&
                       nfkd(text) == (simpler == text ? decomposed : simpler) &&
                       strip(text).empty() == marks[c];
    if (!right && wrong++ < 10) ADD_FAILURE() << std::hex << static_cast<std::uint32_t>(c);
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(UnicodeTest, NormalFormsOrderAndComposeMarks) {
  EXPECT_EQ(normalizer("NFD")("\u1e9b\u0323"), "\u017f\u0323\u0307");
  EXPECT_EQ(normalizer("NFC")("\u1e9b\u0323"), "\u1e9b\u0323");
  EXPECT_EQ(normalizer("NFKD")("\u1e9b\u0323"), "s\u0323\u0307");
  EXPECT_EQ(normalizer("NFKC")("\u1e9b\u0323"), "\u1e69");
  EXPECT_EQ(normalizer("NFC")("\u1112\u1161\u11ab"), "\ud55c");
  EXPECT_EQ(normalizer("NFC")("\ud55c\u11a8"), "\ud55c\u11a8") << "a syllable that has its last part";
  EXPECT_EQ(normalizer("NFD")("\ud55c\uae00"), "\u1112\u1161\u11ab\u1100\u1173\u11af");
  EXPECT_EQ(normalizer("NFC")("a\u0308\u0301 a\u0327\u0301"), "\u00e4\u0301 \u00e1\u0327");
  EXPECT_EQ(normalizer("NFC")("a\u030d\u0301"), "a\u030d\u0301") << "a mark of the same class is between";
}

TEST(UnicodeTest, NmtRemovesControlCharactersAndMakesBlanksOfSpaces) {
  EXPECT_EQ(normalizer("Nmt")("a\u0001b\u007f\u0009c\u200b\u200fd\u2010\ufeff"), "ab c  d\u2010 ");
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
  xgrad::tokenizers::detail::TextBuffer buffer;
  const BertNormalizer strip({false, false, true, false});
  // U+302E (class 224) is no mark of Unicode 8.0 without width, so it stays, and so does U+1D165 (216).
  const auto passage = strip("a\u302E\U0001D165\u0301b", 5, buffer);
  EXPECT_EQ(passage.text, "a\U0001D165\u302Eb");
  EXPECT_EQ(passage.source(0), 5U);
  EXPECT_EQ(passage.source(1), 6U);
  EXPECT_EQ(passage.source(5), 7U);
  EXPECT_EQ(passage.source(8), 9U);
}

}  // namespace unicode_test
