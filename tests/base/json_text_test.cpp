#include "../../base/detail/text/json_text.hpp"

#include <gtest/gtest.h>

namespace json_text_test {

using xgrad::detail::in_quotes;

TEST(JsonText, ShowsTextsOnOneLine) {
  EXPECT_EQ(in_quotes("a \"b\" \\ é中😀"), R"("a \"b\" \\ é中😀")");
  EXPECT_EQ(in_quotes(std::string_view("\b\f\n\r\t\x01\x1f\x7f\0", 9)),
            "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000\"");
  EXPECT_EQ(in_quotes("\xff"), "\"\ufffd\"");
  EXPECT_EQ(in_quotes(std::string(200, 'a')), '"' + std::string(200, 'a') + '"');
  EXPECT_EQ(in_quotes(std::string(201, 'a')), '"' + std::string(200, 'a') + "...\"");
}

}  // namespace json_text_test
