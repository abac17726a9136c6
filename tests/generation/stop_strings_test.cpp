// Strings that end texts, by tokenizers of all kinds, as transformers ends them.

#include <gtest/gtest.h>

#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

#include "../data_folder.hpp"
#include "../expect_error.hpp"
#include "../programs/json_file.hpp"

namespace stop_strings_test {

using nlohmann::json;
using xgrad::generation::GenerationOptions, xgrad::generation::StopStrings;
using xgrad::tokenizers::Tokenizer;
using xgrad_tests::data_folder, xgrad_tests::message_of;
using Ids = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;

Tokenizer tokenizer_of(const std::string& name) {
  return Tokenizer::from_folder(data_folder("pretrained/tokenizers") + name);
}

TEST(StopStringsTest, EndsTextsWhereTransformersDoes) {
  const json file = xgrad_tests::read_json(data_folder("generation") + "stop_strings.json");
  EXPECT_FALSE(file.empty());
  for (const auto& [name, cases] : file.items()) {
    const Tokenizer tokenizer = tokenizer_of(name);
    EXPECT_EQ(cases.size(), 60u);
    for (const json& one : cases) {
      const auto ids = one.at("ids").get<Ids>();
      const auto ends = StopStrings(one.at("strings").get<Strings>(), tokenizer).end(ids);
      EXPECT_EQ(ends, one.at("ends").get<bool>()) << name << ": " << one;
    }
  }
}

/// Letters, by their codes; 0 adds nothing, and what is below has no token.
StopStrings letters(Strings strings) {
  return {std::move(strings), [](std::int64_t id) -> std::optional<std::string> {
            if (id < 0) return std::nullopt;
            if (id == 0) return "";
            return id == 'm' ? "mm" : std::string(1, static_cast<char>(id));
          }};
}

TEST(StopStringsTest, LastTokenMustCompleteAString) {
  const StopStrings stops = letters({"abc", "xmmy"});
  EXPECT_TRUE(stops.end(Ids{'q', 'a', 'b', 'c'}));
  EXPECT_FALSE(stops.end(Ids{'a', 'b', 'c', 'd'})) << "before the last token";
  EXPECT_FALSE(stops.end(Ids{'a', 'b', 'c', 0})) << "a token that adds nothing";
  EXPECT_TRUE(stops.end(Ids{'x', 'm', 'y'}));
  EXPECT_TRUE(letters({"am"}).end(Ids{'a', 'm'})) << "more comes behind in the same token";
  EXPECT_TRUE(letters({"mb"}).end(Ids{'m', 'b'})) << "more came before in the same token";
  EXPECT_TRUE(letters({"m"}).end(Ids{'m'}));
  EXPECT_FALSE(stops.end(Ids{}));
  EXPECT_FALSE(letters({}).end(Ids{'a'}));
  EXPECT_FALSE(stops.end(Ids{'a', -1, 'b', 'c'})) << "an id without a token";
  EXPECT_TRUE(stops.end(Ids{-1, 'a', 'b', 'c'}));
  EXPECT_FALSE(stops.end(Ids{'a', 'b', -1}));
}

TEST(StopStringsTest, NoMoreTokensThanBytesAreLookedAt) {
  EXPECT_TRUE(letters({"abcd"}).end(Ids{'a', 'b', 'c', 'd'}));
  EXPECT_FALSE(letters({"abc"}).end(Ids{'a', 0, 'b', 'c'})) << "as transformers";
}

TEST(StopStringsTest, BytesOfTokensMayBePartsOfCharacters) {
  const Tokenizer bytes = tokenizer_of("llama3"), fallback = tokenizer_of("llama2");
  for (const Tokenizer& tokenizer : {bytes, fallback, tokenizer_of("sentencepiece_unigram")}) {
    const Ids ids = tokenizer.encode("x\u732b", {.add_special_tokens = false}).ids;
    ASSERT_GE(ids.size(), 4u);
    std::string all;
    for (const std::int64_t id : ids) all += tokenizer.token_bytes(id);
    EXPECT_TRUE(all.ends_with("x\u732b")) << all;
    const StopStrings stops({"\u732b"}, tokenizer);
    EXPECT_TRUE(stops.end(ids));
    EXPECT_FALSE(stops.end(std::span(ids).first(ids.size() - 1)));
  }
  EXPECT_EQ(fallback.token_bytes(*fallback.token_to_id("<0xE7>")), "\xe7");
  EXPECT_EQ(fallback.token_bytes(*fallback.token_to_id("</s>")), "</s>");
  EXPECT_EQ(message_of<xgrad::IndexError>([&] { bytes.token_bytes(-1); }),
            "Tokenizer: the id must be that of a token, got -1");
}

TEST(StopStringsTest, BlanksOfTokensAreThoseBehindOtherTexts) {
  const Tokenizer tokenizer = tokenizer_of("llama2");
  const Ids ids = tokenizer.encode("the the", {.add_special_tokens = false}).ids;
  EXPECT_TRUE(tokenizer.decode(ids).starts_with("the"));
  std::string all;
  for (const std::int64_t id : ids) all += tokenizer.token_bytes(id);
  EXPECT_EQ(all, " the the");
}

}  // namespace stop_strings_test
