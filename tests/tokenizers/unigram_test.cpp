#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>

#include "../expect_error.hpp"
#include "../temporary_folder.hpp"

// Expected values: tokenizers 0.23.3.
namespace unigram_test {

using nlohmann::json;
using xgrad::FileError;
using xgrad::tokenizers::Encoding, xgrad::tokenizers::Tokenizer;

json metaspace(const char* scheme = "always", bool split = true) {
  return {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", split}};
}

json small_unigram(const json& spaces) {
  return {{"added_tokens", {{{"id", 0}, {"content", "<unk>"}, {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", spaces},
          {"post_processor", nullptr},
          {"decoder", spaces},
          {"model",
           {{"type", "Unigram"},
            {"unk_id", 0},
            {"byte_fallback", true},
            {"vocab", json::parse(R"([["<unk>", 0], ["\u2581", -1], ["a", -1.5], ["b", -2], ["ab", -3.25],
                                     ["\u2581a", -2], ["a\u2581b", -1], ["<0xC3>", -5], ["<0xA9>", -5]])")}}}};
}

Tokenizer read(const json& tokenizer) {
  const xgrad_tests::TemporaryFolder folder;
  folder.write("tokenizer.json", tokenizer.dump());
  return Tokenizer::from_folder(folder.path(""));
}

/// What reading it is refused with, after the name of the file.
std::string refusal_of(const json& tokenizer) {
  const std::string message = xgrad_tests::message_of<FileError>([&] { read(tokenizer); });
  const std::string file = "tokenizer.json: ";
  return message.substr(message.find(file) + file.size());
}

using Ids = std::vector<std::int64_t>;

TEST(UnigramTest, TakesTheBestPath) {
  const Tokenizer tokenizer = read(small_unigram(metaspace()));
  EXPECT_EQ(tokenizer.encode("ab").ids, (Ids{5, 3}));
  const Encoding spaced = tokenizer.encode(" a  b ");
  EXPECT_EQ(spaced.ids, (Ids{5, 1, 1, 3, 1}));
  EXPECT_EQ(json(spaced.offsets), json({{0, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}}));
  EXPECT_EQ(tokenizer.decode(spaced.ids), "a  b ");
  EXPECT_EQ(read(small_unigram(metaspace("always", false))).encode("a b").ids, (Ids{1, 6}));
  EXPECT_EQ(tokenizer.encode("").ids, Ids{});
}

TEST(UnigramTest, FallsBackToBytesThatAreAllThere) {
  const Tokenizer tokenizer = read(small_unigram(metaspace()));
  const Encoding bytes = tokenizer.encode("\u00e9a");
  EXPECT_EQ(bytes.ids, (Ids{1, 7, 8, 2}));
  EXPECT_EQ(json(bytes.offsets), json({{0, 1}, {0, 1}, {0, 1}, {1, 2}}));
  const Encoding unknown = tokenizer.encode("\u00fc\u00e9");  // a run of unknown characters is one token
  EXPECT_EQ(unknown.ids, (Ids{1, 0}));
  EXPECT_EQ(json(unknown.offsets), json({{0, 1}, {0, 2}}));
  json without = small_unigram(metaspace());
  without["model"]["byte_fallback"] = false;
  EXPECT_EQ(read(without).encode("\u00e9a").ids, (Ids{1, 0, 2}));
}

TEST(UnigramTest, RepeatedTokensCountForTheScoreOfWhatIsUnknown) {
  json tokenizer = small_unigram(metaspace());
  tokenizer["model"]["vocab"] =
      json::parse(R"([["<unk>", 0], ["\u2581", -2], ["\u00e9a", -20], ["b", -100], ["b", -20], ["ab", -1]])");
  EXPECT_EQ(read(tokenizer).encode("\u00e9ab").ids, (Ids{1, 2, 4}));
  tokenizer["model"]["vocab"] = json::parse(R"([["<unk>", 0], ["\u2581", -1], ["ab", -25], ["b", -1]])");
  EXPECT_EQ(read(tokenizer).encode("ab").ids, (Ids{1, 2})) << "what is unknown is below the rarest token";
}

TEST(UnigramTest, ARunOfUnknownCharactersMayBeATokenAsAWhole) {
  json tokenizer = small_unigram(metaspace());
  tokenizer["model"]["vocab"] = json::parse(R"([["<unk>", 100], ["\u2581", 100], ["xy", 100]])");
  EXPECT_EQ(read(tokenizer).encode("xy").ids, (Ids{1, 2}));
  EXPECT_EQ(read(tokenizer).encode("xyz").ids, (Ids{1, 0}));
}

TEST(UnigramTest, PrependsABlankAsItIsTold) {
  const auto ids = [](const char* scheme) {
    return read(small_unigram(metaspace(scheme))).encode("<unk>ab").ids;
  };
  EXPECT_EQ(ids("always"), (Ids{0, 5, 3}));
  EXPECT_EQ(ids("first"), (Ids{0, 4}));
  EXPECT_EQ(ids("never"), (Ids{0, 4}));
  EXPECT_EQ(read(small_unigram(metaspace("first"))).encode("ab").ids, (Ids{5, 3}));
  EXPECT_EQ(read(small_unigram(metaspace("never"))).encode("ab").ids, (Ids{4}));
  const json old = {
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"str_rep", "\u2581"}, {"add_prefix_space", false}};
  EXPECT_EQ(read(small_unigram(old)).encode("ab").ids, (Ids{4}));
  EXPECT_EQ(read(small_unigram({{"type", "Metaspace"}, {"replacement", "\u2581"}})).encode("ab").ids,
            (Ids{5, 3}));
}

TEST(UnigramTest, RefusesWhatIsNotWhole) {
  const auto refusal = [](const std::function<void(json&)>& change) {
    json tokenizer = small_unigram(metaspace());
    change(tokenizer);
    return refusal_of(tokenizer);
  };
  EXPECT_EQ(refusal([](json& t) { t["model"]["unk_id"] = nullptr; }),
            "model: unk_id must be the id of a token, got null");
  EXPECT_EQ(refusal([](json& t) { t["model"]["unk_id"] = 9; }),
            "model.unk_id must be the id of a token, got 9");
  EXPECT_EQ(refusal([](json& t) { t["model"].erase("unk_id"); }), "model: unk_id is missing");
  EXPECT_EQ(refusal([](json& t) {
              t["added_tokens"].push_back({{"id", 9}, {"content", "<new>"}});
              t["model"]["unk_id"] = 9;
            }),
            "model.unk_id must be the id of a token of model.vocab, got 9");
  EXPECT_EQ(refusal([](json& t) { t["model"]["vocab"][3] = json::array({"b"}); }),
            "model.vocab[3] must be a token and its score, got an array");
  EXPECT_EQ(refusal([](json& t) { t["model"]["vocab"][3][1] = "-2"; }),
            "model.vocab[3][1] must be a number from -1e+300 to 1e+300, got \"-2\"");
  EXPECT_EQ(refusal([](json& t) { t["pre_tokenizer"]["prepend_scheme"] = "last"; }),
            "pre_tokenizer.prepend_scheme must be always, first or never, got \"last\"");
  EXPECT_EQ(refusal([](json& t) { t["pre_tokenizer"]["str_rep"] = "_"; }),
            "pre_tokenizer.str_rep must be the replacement, got \"_\"");
  EXPECT_EQ(refusal([](json& t) { t["pre_tokenizer"]["replacement"] = "__"; }),
            "pre_tokenizer.replacement must be one character, got \"__\"");
  EXPECT_EQ(refusal([](json& t) {
              t["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
            }),
            "pre_tokenizer: must have no ByteLevel for a Unigram model");
}

TEST(UnigramTest, RefusesCharacterMapsThatAreNotWhole) {
  const auto refusal = [](const char* map) {
    json tokenizer = small_unigram(metaspace());
    tokenizer["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", map}};
    return refusal_of(tokenizer);
  };
  const std::string place = "normalizer.precompiled_charsmap: ";
  EXPECT_EQ(refusal("AAA"), place + "must be base64, a multiple of four digits");
  EXPECT_EQ(refusal("A\u00e9A"), place + "must be base64");
  EXPECT_EQ(refusal(""), place + "must begin with the size of its double array, got 0 in 0 bytes");
  EXPECT_EQ(refusal("/////w=="),
            place + "must begin with the size of its double array, got 4294967295 in 4 bytes");
  EXPECT_EQ(refusal("AgAAAAAA"), place + "must begin with the size of its double array, got 2 in 6 bytes");
  EXPECT_EQ(refusal("BAAAAAAAAAD/"), place + "the texts behind its double array must be UTF-8");
  // A double array whose only unit leads out of it.
  json tokenizer = small_unigram(metaspace());
  tokenizer["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "BAAAAP////8="}};
  EXPECT_EQ(read(tokenizer).encode("ab").ids, (Ids{5, 3}));
}

TEST(NormalizerTest, DoesNotGrowTextsWithoutEnd) {
  json tokenizer = small_unigram(metaspace());
  json steps = json::array();
  for (int i = 0; i < 60; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  const Tokenizer grows = read(tokenizer);
  const std::string message = "Tokenizer: the normalizer makes a text more than 100 times as long as it is";
  EXPECT_EQ(xgrad_tests::message_of<xgrad::ValueError>([&] { grows.encode("a"); }), message);
  EXPECT_EQ(grows.encode("b").ids, (Ids{1, 3}));
  tokenizer["added_tokens"].push_back({{"id", 9}, {"content", "aq"}, {"normalized", true}});
  EXPECT_EQ(refusal_of(tokenizer), "added_tokens[1]: " + message);
}

TEST(NormalizerTest, RefusesPatternsThatItDoesNotKnow) {
  json tokenizer = small_unigram(metaspace());
  const auto refusal = [&](const json& pattern) {
    tokenizer["normalizer"] = {{"type", "Replace"}, {"pattern", pattern}, {"content", "x"}};
    return refusal_of(tokenizer);
  };
  EXPECT_EQ(refusal({{"Regex", "a+("}}),
            "normalizer.pattern.Regex: pattern \"a+(\" must close its group, at byte 3");
  EXPECT_EQ(refusal({{"String", ""}}),
            "normalizer.pattern.String must be a text that is not empty, got \"\"");
  EXPECT_EQ(refusal(json::object()), "normalizer.pattern: Regex is missing");
}

}  // namespace unigram_test
