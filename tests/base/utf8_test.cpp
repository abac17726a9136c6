// Texts in UTF-8: what is valid, and characters and back.

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <xgrad/base/detail/text/utf8.hpp>

namespace utf8_test {

namespace utf8 = xgrad::detail::utf8;

TEST(Utf8Test, FindsWhatIsNotUtf8) {
  const std::string many(40, 'a');
  EXPECT_EQ(utf8::find_invalid_utf8(many + "\u00e9\u20ac\U0001F600" + many), std::string::npos);
  for (const char* broken : {"\x80", "\xC1\x80", "\xE0\x9F\x80", "\xED\xA0\x80", "\xF0\x8F\x80\x80",
                             "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xE2\x82z", "\xFF"}) {
    EXPECT_EQ(utf8::find_invalid_utf8(many + "\u00e9" + broken), many.size() + 2)
        << testing::PrintToString(broken);
  }
}

TEST(Utf8Test, ReplacesTheLongestBrokenParts) {
  EXPECT_EQ(utf8::to_valid("a\xF0\x9F\x98z"), "a\ufffdz");
  EXPECT_EQ(utf8::to_valid("\xED\xA0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(utf8::to_valid("\xE2\x82\xE2\x82\xAC"), "\ufffd\u20ac");
  EXPECT_EQ(utf8::to_valid("\xC0\xAF"), "\ufffd\ufffd");
}

TEST(Utf8Test, CharactersOfEveryLength) {
  const std::u32string characters = U"a\u00e9\u20ac\U0001F600";
  std::string text;
  for (const char32_t character : characters) utf8::append(text, character);
  EXPECT_EQ(text, "a\u00e9\u20ac\U0001F600");
  EXPECT_EQ(utf8::count(text), 4U);
  EXPECT_EQ(utf8::last_of(text), U'\U0001F600');
  std::string_view rest = text;
  for (const char32_t character : characters) {
    EXPECT_EQ(utf8::first_of(rest), character);
    rest.remove_prefix(utf8::first_length(rest));
  }
  EXPECT_TRUE(rest.empty());
}

}  // namespace utf8_test
