#include "../../pretrained/detail/unicode.hpp"

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../pretrained/detail/byte_pairs.hpp"
#include "../../pretrained/detail/normalizer.hpp"
#include "../files.hpp"

namespace {

namespace unicode = xgrad::pretrained::detail::unicode;
using nlohmann::json;
using xgrad::pretrained::detail::BertNormalizer, xgrad::pretrained::detail::first_word;

constexpr char32_t characters = 0x110000;

json read_sweep(const char* name) {
  return json::parse(xgrad_tests::read_bytes(std::string(XGRAD_PRETRAINED_DIR) + "/unicode/" + name));
}

char32_t hexadecimal(const std::string& text) { return static_cast<char32_t>(std::stoul(text, nullptr, 16)); }

/// "9-A D": which of all characters are there.
std::vector<bool> members(const json& ranges) {
  std::vector<bool> result(characters);
  std::istringstream parts(ranges.get<std::string>());
  for (std::string part; parts >> part;) {
    const std::size_t dash = part.find('-');
    const char32_t first = hexadecimal(part.substr(0, dash));
    const char32_t last = dash == part.npos ? first : hexadecimal(part.substr(dash + 1));
    for (char32_t c = first; c <= last; ++c) result[c] = true;
  }
  return result;
}

/// "C0=41 130=69+307"
std::map<char32_t, std::string> mapping(const json& pairs) {
  std::map<char32_t, std::string> result;
  std::istringstream parts(pairs.get<std::string>());
  for (std::string part; parts >> part;) {
    std::string& to = result[hexadecimal(part)];
    for (std::size_t i = part.find('='); i != part.npos; i = part.find('+', i + 1))
      unicode::append(to, hexadecimal(part.substr(i + 1)));
  }
  return result;
}

std::string text_of(char32_t character) {
  std::string text;
  unicode::append(text, character);
  return text;
}

bool is_surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

/// The decomposition of a Hangul syllable, as section 3.12 of the standard has it.
std::string jamo(char32_t syllable) {
  const char32_t index = syllable - 0xAC00;
  std::string text = text_of(0x1100 + index / 588) + text_of(0x1161 + index % 588 / 28);
  return index % 28 == 0 ? text : text + text_of(0x11A7 + index % 28);
}

TEST(UnicodeTest, EveryCharacterIsNormalisedAsInTheLibrary) {
  const json sweep = read_sweep("sweep.json");
  const auto removed = members(sweep["removed"]), space = members(sweep["space"]);
  const auto chinese = members(sweep["chinese"]), marks = members(sweep["strip_accents_removes"]);
  const auto stripped = mapping(sweep["strip_accents_maps"]), lowered = mapping(sweep["lowercase_maps"]);
  const BertNormalizer clean({true, false, false, false}), alone({false, true, false, false});
  const BertNormalizer strip({true, false, true, false}), lower({false, false, false, true});
  const auto mapped = [](const auto& map, char32_t c) {
    const auto found = map.find(c);
    return found == map.end() ? text_of(c) : found->second;
  };
  std::size_t count = 0, wrong = 0;
  for (char32_t c = 0; c < characters; ++c) {
    if (is_surrogate(c)) continue;
    ++count;
    const std::string text = text_of(c);
    const std::string without_accents = removed[c] || marks[c]              ? ""
                                        : space[c]                          ? " "
                                        : c >= 0xAC00 && c < 0xAC00 + 11172 ? jamo(c)
                                                                            : mapped(stripped, c);
    const bool right = clean("a" + text + "b") == (removed[c] ? "ab" : "a" + (space[c] ? " " : text) + "b") &&
                       alone(text) == (chinese[c] ? " " + text + " " : text) &&
                       strip(text) == without_accents && lower(text) == mapped(lowered, c);
    if (!right && wrong++ < 10) ADD_FAILURE() << std::hex << static_cast<std::uint32_t>(c);
  }
  EXPECT_EQ(count, 1'112'064U);
  EXPECT_EQ(wrong, 0U);
}

TEST(UnicodeTest, EveryCharacterIsSplitAsInTheLibrary) {
  const json sweep = read_sweep("sweep.json"), patterns = read_sweep("patterns.json");
  const auto space = members(sweep["split_at_spaces_by_pre_tokenizer"]);
  const auto punctuation = members(sweep["punctuation"]), words = members(patterns["words"]);
  const auto letters = members(patterns["letters"]), numbers = members(patterns["numbers"]);
  std::size_t wrong = 0;
  for (char32_t c = 0; c < characters; ++c) {
    if (is_surrogate(c)) continue;
    const std::string text = text_of(c);
    const bool other = !letters[c] && !numbers[c] && !space[c];
    const bool right = unicode::is(c, unicode::space) == space[c] &&
                       unicode::is(c, unicode::punctuation) == punctuation[c] &&
                       unicode::is(c, unicode::word) == words[c] &&
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

TEST(UnicodeTest, FindsWhatIsNotUtf8) {
  const std::string many(40, 'a');
  EXPECT_EQ(unicode::find_invalid_utf8(many + "\u00e9\u20ac\U0001F600" + many), std::string::npos);
  for (const char* broken : {"\x80", "\xC1\x80", "\xE0\x9F\x80", "\xED\xA0\x80", "\xF0\x8F\x80\x80",
                             "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xE2\x82z", "\xFF"}) {
    SCOPED_TRACE(json(std::string(broken).size()).dump());
    EXPECT_EQ(unicode::find_invalid_utf8(many + "\u00e9" + broken), many.size() + 2);
  }
}

TEST(UnicodeTest, ReplacesTheLongestBrokenParts) {
  EXPECT_EQ(unicode::to_valid("a\xF0\x9F\x98z"), "a\ufffdz");
  EXPECT_EQ(unicode::to_valid("\xED\xA0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(unicode::to_valid("\xE2\x82\xE2\x82\xAC"), "\ufffd\u20ac");
  EXPECT_EQ(unicode::to_valid("\xC0\xAF"), "\ufffd\ufffd");
}

}  // namespace
