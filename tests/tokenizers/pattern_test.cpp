#include "../../tokenizers/detail/splits/pattern.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>

#include "../../tokenizers/detail/unicode/classes.hpp"
#include "../expect_error.hpp"
#include "../files.hpp"
#include "split_cases.hpp"
#include "unicode_sweep.hpp"

namespace pattern_test {

using xgrad::ValueError;
using xgrad::tokenizers::detail::Pattern;
using xgrad_tests::message_of;
namespace unicode = xgrad::tokenizers::detail::unicode;

using Texts = std::vector<std::string>;

Texts matches(const std::string& pattern, std::string_view text) {
  Texts result;
  Pattern::Work work(text.size());
  Pattern(pattern).for_each_match(text, work, [&](std::size_t begin, std::size_t end) {
    result.emplace_back(text.substr(begin, end - begin));
    return true;
  });
  return result;
}

TEST(PatternTest, SplitsAsTheLibrary) {
  std::size_t count = 0;
  xgrad_tests::SplitCases(XGRAD_PRETRAINED_DIR "/tokenizers/regex.json", [&](const std::string& name,
                                                                             bool right) {
    ++count;
    EXPECT_TRUE(right) << name;
  }).compare();
  EXPECT_GT(count, 1000U);
}

/// The matching of a step is not over when later ones match its parts.
TEST(PatternTest, PatternsOfASplitterMatchInTurn) {
  using namespace xgrad::tokenizers::detail;
  const auto isolated = [](const char* pattern) {
    return PatternSplit{Pattern(pattern), SplitBehavior::isolated};
  };
  const Splitter splitter(
      {isolated(" +|[0-9]+|([a-z]?)*!?"), isolated("[0-9][0-9]"), isolated("[a-z]+!|[a-z]b|[0-9]+x")});
  Texts words;
  TextBuffer buffer;
  splitter(unchanged("abc!  12345 ab", 0, buffer), [&](const Passage& word) {
    words.emplace_back(word.text);
    return true;
  });
  EXPECT_EQ(words, (Texts{"abc!", "  ", "12", "34", "5", " ", "ab"}));
}

TEST(PatternTest, ClassesAreTheLibrarys) {
  const nlohmann::json facts =
      nlohmann::json::parse(xgrad_tests::read_bytes(XGRAD_PRETRAINED_DIR "/unicode/classes.json"));
  const auto has = [&](const unicode::Ranges& ranges, const nlohmann::json& object, const std::string& name) {
    std::vector<bool> wanted = xgrad_tests::members(object, name);
    for (const auto& [first, last] : ranges)
      for (char32_t c = first; c <= last; ++c) wanted[c] = !wanted[c];
    return std::none_of(wanted.begin(), wanted.end(), std::identity());
  };
  for (const char* kind : {"categories", "scripts"})
    for (const auto& [name, ranges] : facts.at(kind).items())
      EXPECT_TRUE(has(*unicode::property(name), facts.at(kind), name)) << name;
  EXPECT_FALSE(unicode::property("Foo"));
  EXPECT_FALSE(unicode::property(""));
  EXPECT_EQ(unicode::property("Letter")->size(), unicode::property(" l_ -")->size());
  // Every character is in one category, but for surrogates.
  std::size_t characters = 0;
  for (const char* name : {"L", "M", "N", "P", "S", "Z", "C"}) {
    const unicode::Ranges ranges = *unicode::property(name);
    for (const auto& [first, last] : ranges) characters += last - first + 1;
  }
  EXPECT_EQ(characters, 0x110000U - 0x800U);
}

TEST(PatternTest, RepeatsLazilyAndPossessively) {
  EXPECT_EQ(matches("a.*?b", "aXbb ab"), (Texts{"aXb", "ab"}));
  EXPECT_EQ(matches("a{2,3}?", "aaaaa"), (Texts{"aa", "aa"}));
  EXPECT_EQ(matches("a++a", "aaa"), Texts{});
  EXPECT_EQ(matches("(?:ab)*?c", "ababc"), Texts{"ababc"});
  EXPECT_EQ(matches("(?:ab){1,2}?", "ababab"), (Texts{"ab", "ab", "ab"}));
  EXPECT_EQ(matches("(?:ab|a)*+b", "abab"), (Texts{"b", "b"}));
  EXPECT_EQ(matches("(?:a*)*b", "aab"), Texts{"aab"}) << "an iteration of nothing ends a loop";
  EXPECT_EQ(matches("(?:a?){3}", "aaaa"), (Texts{"aaa", "a"}));
  EXPECT_EQ(matches("(?>a+?)b", "aab"), Texts{"ab"}) << "it does not go back to take more";
  EXPECT_EQ(matches("a{1,2}?b", "aaab"), Texts{"aab"});
  EXPECT_EQ(matches("a{0,2}?b", "aaab"), Texts{"aab"});
  EXPECT_EQ(matches("ba{2}?c", "bc bac baac"), (Texts{"bc", "baac"})) << "two or none";
}

TEST(PatternTest, KnowsTheEndsOfLinesAndOfTheText) {
  EXPECT_EQ(matches("\n^", "a\n\nb\n"), (Texts{"\n", "\n"})) << "no line begins behind the last end";
  EXPECT_EQ(matches("a\\Z", "a\na\n"), Texts{"a"});
}

TEST(PatternTest, CommentsEndWithTheirLines) { EXPECT_EQ(matches("(?x) a # one\n b", "ab a"), Texts{"ab"}); }

TEST(PatternTest, ClassesMayBeginAlike) { EXPECT_EQ(matches("[a-c][a-z]", "az zz ca"), (Texts{"az", "ca"})); }

TEST(PatternTest, RangesOfAClassMayOverlap) { EXPECT_EQ(matches("[a-zb-c]", "x"), Texts{"x"}); }

TEST(PatternTest, ClassesAreNegated) {
  EXPECT_EQ(matches("[[:^alpha:]]", "a1b"), Texts{"1"});
  EXPECT_EQ(matches("(?i:[^a])", "aAb"), Texts{"b"});
  EXPECT_EQ(matches("\\P{^L}", "a1"), Texts{"a"}) << "twice";
}

TEST(PatternTest, ADashBeforeAnIntersectionIsACharacter) {
  EXPECT_EQ(matches("[a-&&[a-c]]", "a-b"), Texts{"a"});
  EXPECT_EQ(matches("[a-&&[-]]", "a-b"), Texts{"-"});
}

TEST(PatternTest, NumbersOfCharactersEndAfterTheirDigits) {
  EXPECT_EQ(matches("\\x41B", "AB"), Texts{"AB"});
  EXPECT_EQ(matches("\\012", "\n"), Texts{"\n"});
  EXPECT_EQ(matches("\\08", std::string("\0"
                                        "8",
                                        2)),
            Texts{std::string("\0"
                              "8",
                              2)});
}

TEST(PatternTest, LooksAround) {
  EXPECT_EQ(matches("(?<=a+)b", "aab b"), Texts{"b"});
  EXPECT_EQ(matches("(?<=ba*)c", "bc baac c"), (Texts{"c", "c"}));
  EXPECT_EQ(matches("(?<!é)b", "éb ab"), Texts{"b"});
  EXPECT_EQ(matches("(?<=ab|c)d", "abd cd bd"), (Texts{"d", "d"}));
  EXPECT_EQ(matches("\\w+(?=!)(?!!!)", "a! b!! c!"), (Texts{"a", "c"}));
  EXPECT_EQ(matches("(?=(?:ab)+$)a", "abab"), (Texts{"a", "a"}));
}

TEST(PatternTest, WithoutCaseSeveralCharactersMayBeOne) {
  EXPECT_EQ(matches("(?i:ffi)", "ffi \ufb03 f\ufb01 \ufb00i FFI"),
            (Texts{"ffi", "\ufb03", "f\ufb01", "\ufb00i", "FFI"}));
  EXPECT_EQ(matches("(?i:\u00df)", "ss \u1e9e S\u017f s"), (Texts{"ss", "\u1e9e", "S\u017f"}));
  EXPECT_EQ(matches("ss", "ss \u00df SS"), Texts{"ss"});
  EXPECT_EQ(matches("(?i)a(?-i)b|C", "Ab aB c aC"), (Texts{"Ab", "aC"})) << "for the rest of a group";
}

TEST(PatternTest, RefusesWhatItDoesNotKnow) {
  const auto error = [](const std::string& pattern) {
    return message_of<ValueError>([&] { Pattern{pattern}; });
  };
  EXPECT_EQ(error("a("), "pattern \"a(\" must close its group, at byte 2");
  EXPECT_EQ(error("a)"), "pattern \"a)\" must not close a group that is not open, at byte 1");
  EXPECT_EQ(error("[b-a]"), "pattern \"[b-a]\" must have ranges of characters in their order, at byte 4");
  EXPECT_EQ(error("\\p{Foo}"), "pattern \"\\\\p{Foo}\" must have known properties only, at byte 3");
  EXPECT_EQ(error("(a)\\1"), "pattern \"(a)\\\\1\" must have known escapes only, at byte 5");
  EXPECT_EQ(error("\\uD800"), "pattern \"\\\\uD800\" must have characters of Unicode, at byte 6");
  EXPECT_EQ(error("(?<>a)"), "pattern \"(?<>a)\" must name its group, at byte 3");
  EXPECT_EQ(error("[]"), "pattern \"[]\" must have no empty class, at byte 1");
  EXPECT_EQ(error("+"), "pattern \"+\" must have what is repeated, at byte 0");
  EXPECT_EQ(error("(?:{2})"), "pattern \"(?:{2})\" must have what is repeated, at byte 6");
  EXPECT_EQ(error("a{3,2}"),
            "pattern \"a{3,2}\" must not repeat at least more often than at most, at byte 6");
  EXPECT_EQ(error("a{100001}"), "pattern \"a{100001}\" must not repeat more often than 100000, at byte 7");
  EXPECT_EQ(error(std::string(600, '(') + std::string(600, ')')).substr(210),
            " must not have groups in more than 500 others, at byte 501");
  const std::string large = "pattern must not be so large: its repetitions make too many parts";
  EXPECT_EQ(error("(?:(?:ab){1000}){1000}"), large);
  EXPECT_EQ(error("(?:(?:(?:){100000}){100000}){100000}"), large);
  EXPECT_EQ(error("(?i:" + std::string(60, 's') + ")").substr(76),
            "must have at most 10000 parts, at byte 64");
}

TEST(PatternTest, EndsWhenTheStepsAreUsedUp) {
  const std::string text(40, 'a');
  EXPECT_EQ(message_of<ValueError>([&] { matches("(?:a|a)*b", text); }),
            "Tokenizer: the pattern that splits texts takes too many steps for this one");
}

TEST(PatternTest, ARunThatFailedIsNotTriedAgain) {
  // Each of these would take the square of the length if it were.
  const std::string blanks(300'000, ' ');
  EXPECT_EQ(matches("\\s+$", blanks + "x"), Texts{});
  EXPECT_EQ(matches("\\s+$|x", blanks + "x"), Texts{"x"});
  EXPECT_EQ(matches("\\d*px", std::string(300'000, '1')), Texts{});
}

}  // namespace pattern_test
