#include "../../base/detail/text/json.hpp"
#include "../../base/error.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "../expect_error.hpp"

namespace json_test {

using xgrad::FileError;
using xgrad::detail::Json;
using xgrad_tests::message_of;

TEST(JsonTest, ReadsValuesOfTheTypeThatIsAskedFor) {
  const Json json = Json::parse("f", R"({"a": [1, -2, "x"], "b": {"c": 2.5, "d": true}, "e": null})");
  EXPECT_EQ(json.at("a").items().at(0).integer(1, 1), 1);
  EXPECT_EQ(json.at("a").items().at(1).integer(-2, 5), -2);
  EXPECT_EQ(json.at("a").items().at(2).text(), "x");
  EXPECT_EQ(json.at("b").at("c").number(0, 3), 2.5);
  EXPECT_TRUE(json.at("b").at("d").boolean());
  EXPECT_FALSE(json.find("e"));
  EXPECT_FALSE(json.find("f"));
  const auto members = json.at("b").members();
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].first, "c");
}

TEST(JsonTest, ReadsTheNumbersOfPython) {
  const Json json =
      Json::parse("f", R"({"a": NaN, "b": [-Infinity, Infinity], "c": "a \"NaN\\", "NaN": "Infinity"})");
  EXPECT_EQ(message_of<FileError>([&] { json.at("a").number(-1, 1); }),
            "f: a must be a number from -1 to 1, got nan");
  EXPECT_EQ(message_of<FileError>([&] { json.at("a").text(); }), "f: a must be a string, got nan");
  EXPECT_EQ(message_of<FileError>([&] { json.at("b").items()[0].integer(0, 1); }),
            "f: b[0] must be a whole number from 0 to 1, got -inf");
  EXPECT_TRUE(std::isinf(json.at("b").items()[1].number(0, INFINITY)));
  EXPECT_EQ(json.at("c").text(), "a \"NaN\\");
  EXPECT_EQ(json.at("NaN").text(), "Infinity");
  EXPECT_EQ(json.dump(), R"({"NaN":"Infinity","a":null,"b":[null,null],"c":"a \"NaN\\"})");
  EXPECT_NE(message_of<FileError>([&] { Json::parse("f", "[NaNa]"); }).find("f: must be JSON"),
            std::string::npos);
}

TEST(JsonTest, NamesThePlaceOfWhatItRefuses) {
  const Json json = Json::parse("f.json", R"({"a": [1, {"b": "wide"}], "big": 18446744073709551615})");
  const Json wide = json.at("a").items().at(1).at("b");
  EXPECT_EQ(message_of<FileError>([&] { wide.integer(1, 9); }),
            "f.json: a[1].b must be a whole number from 1 to 9, got \"wide\"");
  EXPECT_EQ(message_of<FileError>([&] { json.at("a").items()[0].integer(2, 9); }),
            "f.json: a[0] must be a whole number from 2 to 9, got 1");
  EXPECT_EQ(message_of<FileError>([&] { json.at("big").integer(0, INT64_MAX); }),
            "f.json: big must be a whole number from 0 to 9223372036854775807, got 18446744073709551615");
  EXPECT_EQ(message_of<FileError>([&] { json.at("big").integer(-2, 2); }),
            "f.json: big must be a whole number from -2 to 2, got 18446744073709551615");
  EXPECT_EQ(message_of<FileError>([&] { json.at("a").items()[0].number(2, 9.5); }),
            "f.json: a[0] must be a number from 2 to 9.5, got 1");
  EXPECT_EQ(message_of<FileError>([&] { json.at("a").text(); }), "f.json: a must be a string, got an array");
  EXPECT_EQ(message_of<FileError>([&] { json.at("a").items()[1].boolean(); }),
            "f.json: a[1] must be true or false, got an object");
  EXPECT_EQ(message_of<FileError>([&] { json.items(); }), "f.json: it must be an array, got an object");
  EXPECT_EQ(message_of<FileError>([&] { json.at("c"); }), "f.json: c is missing");
  EXPECT_EQ(message_of<FileError>([&] { json.at("a").items()[1].at("c"); }), "f.json: a[1]: c is missing");
  EXPECT_EQ(message_of<FileError>([&] { json.at("a").members(); }),
            "f.json: a must be an object, got an array");
}

TEST(JsonTest, RefusesWhatIsNotJson) {
  EXPECT_EQ(message_of<FileError>([] { Json::parse("f", R"({"a": 1, "a": 2})"); }),
            "f: the key \"a\" must be unique, got it twice");
  EXPECT_EQ(message_of<FileError>([] { Json::parse("f", std::string("1\0", 2)); }),
            "f: must be JSON, got a zero byte");
  std::string zeros = "[0";
  for (int i = 0; i < 8'000'000; ++i) zeros += ",0";
  EXPECT_EQ(message_of<FileError>([&] { Json::parse("f", zeros + "]"); }),
            "f: must have at most 8000000 values");
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_TRUE(Json::parse("f", nested(64)).is_array());
  EXPECT_EQ(message_of<FileError>([&] { Json::parse("f", nested(65)); }),
            "f: must be at most 64 levels deep");
  for (const char* text : {"", "{", "[1,]", "1e999", "\"\xff\"", "\"\\ud800\"", "nan", "{\"a\":1} x"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(message_of<FileError>([&] { Json::parse("f", text); }).rfind("f: must be JSON, got a ", 0), 0U);
  }
}

}  // namespace json_test
