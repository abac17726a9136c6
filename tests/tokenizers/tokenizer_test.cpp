#include <xgrad/tokenizers/tokenizer.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>

#include "../expect_error.hpp"
#include "../files.hpp"
#include "folder_cases.hpp"
#include "tokenizer_cases.hpp"

namespace tokenizer_test {

namespace fs = std::filesystem;
using nlohmann::json;
using xgrad::FileError, xgrad::IndexError, xgrad::ValueError;
using xgrad::tokenizers::EncodeOptions, xgrad::tokenizers::Encoding;
using xgrad::tokenizers::Side, xgrad::tokenizers::Tokenizer, xgrad::tokenizers::Truncation;
using xgrad_tests::message_of, xgrad_tests::read_bytes, xgrad_tests::TemporaryFolder;

const std::string data = XGRAD_PRETRAINED_DIR;

json read_json(const std::string& path) { return json::parse(read_bytes(path)); }

const json& cases() {
  static const json all = read_json(data + "/tokenizer/cases.json");
  return all;
}

/// A folder with one tokenizer.json.
class JsonFolder : public TemporaryFolder {
 public:
  explicit JsonFolder(const json& tokenizer) { write("tokenizer.json", tokenizer.dump()); }
  std::string path() const { return TemporaryFolder::path(""); }
};

Tokenizer from_json(const json& tokenizer) { return Tokenizer::from_folder(JsonFolder(tokenizer).path()); }

json uncased_json() { return read_json(data + "/tokenizer/tokenizer_uncased.json"); }
json roberta_json() { return read_json(data + "/roberta_mlm/tokenizer.json"); }

std::vector<std::string> tokens_of(const Tokenizer& tokenizer, const Encoding& encoding) {
  std::vector<std::string> tokens;
  for (const std::int64_t id : encoding.ids) tokens.push_back(tokenizer.token(id));
  return tokens;
}

TEST(TokenizerTest, AllCasesAreTheLibrarys) {
  std::size_t count = 0;
  const auto note = [&](const std::string& name, bool right) {
    ++count;
    EXPECT_TRUE(right) << name;
  };
  xgrad_tests::TokenizerCases(data + "/tokenizer", note).compare();
  EXPECT_EQ(count, 5 * 115U + 2 * 115U + 2 * 2 * 115U + 2 * 48U);
}

class OwnTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(OwnTokenizer, AllCasesAreTheLibrarys) {
  std::size_t count = 0;
  const auto note = [&](const std::string& name, bool right) {
    ++count;
    EXPECT_TRUE(right) << name;
  };
  xgrad_tests::FolderCases(data + "/tokenizers/" + GetParam(), note).compare();
  EXPECT_GT(count, 900U);
}

INSTANTIATE_TEST_SUITE_P(TokenizerTest, OwnTokenizer,
                         testing::Values("albert_mlm", "deberta_v3_nli", "modernbert_mlm",
                                         "xlm_roberta_reranker"));

class ModelFolder : public testing::TestWithParam<const char*> {};

TEST_P(ModelFolder, TextsAreWhatTheModelWasMadeFor) {
  const std::string folder = data + "/" + GetParam();
  const json model = read_json(folder + "/case.json");
  const EncodeOptions options{.max_length = model.at("max_length").get<std::size_t>()};
  for (const Tokenizer& tokenizer :
       {Tokenizer::from_folder(folder), xgrad_tests::tokenizer_of_older_files(folder)}) {
    EXPECT_EQ(tokenizer.max_length(), 64U);
    for (std::size_t i = 0; i < model.at("texts").size(); ++i) {
      const json &first = model.at("texts")[i][0], &second = model.at("texts")[i][1];
      const Encoding encoding = xgrad_tests::encode(tokenizer, first, second, options);
      EXPECT_EQ(json(encoding.ids), model.at("text_ids")[i]);
      EXPECT_EQ(json(tokens_of(tokenizer, encoding)), model.at("text_tokens")[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TokenizerTest, ModelFolder,
                         testing::Values("bert_pretraining", "bert_sentence", "bert_classifier",
                                         "distilbert_tokens", "roberta_mlm", "electra_discriminator"));

TEST(TokenizerTest, TakesAddedTokensThatRepeatTheVocabulary) {
  for (const char* added : {"{}", R"({"[MASK]": 4, "[CLS]": 2})"}) {
    const TemporaryFolder folder;
    fs::copy(data + "/tokenizer/vocab_uncased.txt", folder.path("vocab.txt"));
    folder.write("added_tokens.json", added);
    EXPECT_EQ(Tokenizer::from_folder(folder.path("")).encode("the old [MASK]").ids,
              (std::vector<std::int64_t>{2, 471, 472, 4, 3}));
  }
}

TEST(TokenizerTest, NewAddedTokensAreFoundInNormalisedTexts) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nred\n");
  folder.write("added_tokens.json", R"({"Foo": 5})");
  EXPECT_EQ(Tokenizer::from_folder(folder.path("")).encode("red fOO").ids,
            (std::vector<std::int64_t>{2, 4, 5, 3}));
}

TEST(TokenizerTest, TakesALengthThatIsWrittenAsAFraction) {
  const TemporaryFolder folder;
  fs::copy(data + "/tokenizer/vocab_uncased.txt", folder.path("vocab.txt"));
  folder.write("tokenizer_config.json", R"({"model_max_length": 512.0})");
  EXPECT_EQ(Tokenizer::from_folder(folder.path("")).max_length(), 512U);
}

TEST(TokenizerTest, LowersTextsIfAsked) {
  json tokenizer = read_json(data + "/st_lower/tokenizer.json");
  const auto ids = [&](const char* text) {
    return Tokenizer::from_folder(JsonFolder(tokenizer).path(), {.lowercase = true}).encode(text).ids;
  };
  EXPECT_EQ(ids("A [MASK] B"), (std::vector<std::int64_t>{2, 17, 4, 18, 3}));
  for (json& token : tokenizer["added_tokens"])
    if (token["content"] == "[MASK]") token["normalized"] = true;
  EXPECT_EQ(ids("A [MASK] b"), (std::vector<std::int64_t>{2, 17, 4, 18, 3}));
  EXPECT_EQ(ids("A [mask] b"), (std::vector<std::int64_t>{2, 17, 4, 18, 3}));
  const Tokenizer bytes = Tokenizer::from_folder(data + "/roberta_mlm", {.lowercase = true});
  EXPECT_EQ(bytes.encode("Old HOUSE <mask>").ids, bytes.encode("old house <mask>").ids);
  json composed = roberta_json();
  composed["normalizer"] = {{"type", "NFC"}};
  const Tokenizer both = Tokenizer::from_folder(JsonFolder(composed).path(), {.lowercase = true});
  EXPECT_EQ(both.encode("Old HOUSE").ids, bytes.encode("old house").ids);
}

TEST(TokenizerTest, KnowsItsSpecialTokens) {
  const Tokenizer bert = from_json(uncased_json());
  EXPECT_EQ(bert.cls_id(), 2);
  EXPECT_EQ(bert.sep_id(), 3);
  EXPECT_EQ(bert.pad_id(), 0);
  EXPECT_EQ(bert.unk_id(), 1);
  EXPECT_EQ(bert.mask_id(), 4);
  EXPECT_EQ(bert.max_length(), std::nullopt);
  const Tokenizer roberta = Tokenizer::from_folder(data + "/roberta_mlm");
  EXPECT_EQ(roberta.cls_id(), 0);
  EXPECT_EQ(roberta.sep_id(), 2);
  EXPECT_EQ(roberta.pad_id(), 1);
  EXPECT_EQ(roberta.unk_id(), 3);
  EXPECT_EQ(roberta.mask_id(), 300);
  EXPECT_EQ(roberta.encode("a", "b").type_ids, std::vector<std::int64_t>(6, 0)) << "it has one type";
  const Tokenizer modern = from_json(read_json(data + "/tokenizers/modernbert_mlm/tokenizer.json"));
  EXPECT_EQ(modern.cls_id(), 341) << "byte pairs with BERT's tokens";
  EXPECT_EQ(modern.mask_id(), 344);
  const JsonFolder wrong(uncased_json());
  wrong.write("tokenizer_config.json", R"({"mask_token": "<mask>"})");
  EXPECT_EQ(
      message_of<FileError>([&] { Tokenizer::from_folder(wrong.path()); }),
      wrong.path() + "tokenizer_config.json: mask_token: must be a token of the vocabulary, got \"<mask>\"");
}

TEST(TokenizerTest, ChineseCharactersAreWordsIfAsked) {
  json tokenizer = uncased_json();
  const Tokenizer words = from_json(tokenizer);
  EXPECT_EQ(words.encode("\u4f60\u597d").ids,
            (std::vector<std::int64_t>{2, *words.token_to_id("\u4f60"), *words.token_to_id("\u597d"), 3}));
  tokenizer["normalizer"]["handle_chinese_chars"] = false;
  EXPECT_EQ(from_json(tokenizer).encode("\u4f60\u597d").ids, (std::vector<std::int64_t>{2, 1, 3}));
}

/// The files before tokenizer.json.
void write_older_roberta(const TemporaryFolder& folder) {
  for (const char* name : {"vocab.json", "merges.txt"})
    fs::copy(data + "/roberta_mlm/" + name, folder.path(name));
}

TEST(TokenizerTest, TheMaskOfOlderFilesTakesNoBlankIfItIsAnObject) {
  const TemporaryFolder folder;
  write_older_roberta(folder);
  const auto tokens = [&](const char* config) {
    folder.write("tokenizer_config.json", config);
    const Tokenizer tokenizer = Tokenizer::from_folder(folder.path(""));
    return tokens_of(tokenizer, tokenizer.encode("a <mask>"));
  };
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(tokens(R"({"mask_token": "<mask>"})"), (Tokens{"<s>", "a", "<mask>", "</s>"}));
  EXPECT_EQ(tokens(R"({"mask_token": {"content": "<mask>"}})"),
            (Tokens{"<s>", "a", "\u0120", "<mask>", "</s>"}));
}

TEST(TokenizerTest, OlderFilesKeepABlankOutOfOffsetsUnlessItIsAdded) {
  const TemporaryFolder folder;
  write_older_roberta(folder);
  const auto offsets = [&] { return json(Tokenizer::from_folder(folder.path("")).encode(" are").offsets); };
  EXPECT_EQ(offsets(), json({{0, 0}, {1, 4}, {0, 0}}));
  folder.write("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_EQ(offsets(), json({{0, 0}, {0, 4}, {0, 0}})) << "as in the library";
}

TEST(TokenizerTest, GivesTokensForIdsAndBack) {
  const Tokenizer tokenizer = from_json(uncased_json());
  EXPECT_EQ(tokenizer.token_to_id("[MASK]"), 4);
  EXPECT_EQ(tokenizer.token(4), "[MASK]");
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.size(), uncased_json()["model"]["vocab"].size());
  EXPECT_EQ(message_of<IndexError>([&] { tokenizer.token(-1); }),
            "Tokenizer: the id must be that of a token, got -1");
  const auto beyond = static_cast<std::int64_t>(tokenizer.size());
  EXPECT_EQ(message_of<IndexError>([&] { tokenizer.token(beyond); }),
            "Tokenizer: the id must be that of a token, got " + std::to_string(beyond));
}

TEST(TokenizerTest, DecodesWhatIsThere) {
  const Tokenizer bert = from_json(uncased_json());
  const std::vector<std::int64_t> ids = bert.encode("the old house , was red ! [MASK]").ids;
  EXPECT_EQ(bert.decode(ids), "the old house, was red!");
  EXPECT_EQ(bert.decode(ids, false), "[CLS] the old house, was red! [MASK] [SEP]");
  EXPECT_EQ(bert.decode(std::vector<std::int64_t>{-100, 471, 1'000'000}), "the");
  EXPECT_EQ(bert.decode({}), "");
  const std::int64_t inner = bert.token_to_id("##a").value();
  EXPECT_EQ(bert.decode(std::vector<std::int64_t>{inner, inner}), "##aa") << "nothing is before the first";

  json plain = uncased_json();
  plain["decoder"] = nullptr;
  EXPECT_EQ(from_json(plain).decode(ids), "the old house , w ##a ##s red !");
}

TEST(TokenizerTest, ReplacesBytesThatAreNoText) {
  const Tokenizer tokenizer = Tokenizer::from_folder(data + "/roberta_mlm");
  const std::string text = "caf\u00e9 \U0001F600 <s>";
  const std::vector<std::int64_t> ids = tokenizer.encode(text, {.add_special_tokens = false}).ids;
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  EXPECT_EQ(tokenizer.decode(ids), "caf\u00e9 \U0001F600 ");
  // The bytes of one character as tokens of their own: E2 82 AC is the euro sign.
  const auto byte = [&](const char* token) { return tokenizer.token_to_id(token).value(); };
  const std::int64_t e2 = byte("\u00e2"), x82 = byte("\u0124"), ac = byte("\u00ac"), ff = byte("\u00ff");
  const auto decode = [&](const std::vector<std::int64_t>& list) { return tokenizer.decode(list); };
  EXPECT_EQ(decode({e2, x82, ac}), "\u20ac");
  EXPECT_EQ(decode({e2, x82}), "\ufffd");
  EXPECT_EQ(decode({e2, x82, e2, x82, ac}), "\ufffd\u20ac");
  EXPECT_EQ(decode({x82, ff, byte("a")}), "\ufffd\ufffda");
}

TEST(TokenizerTest, BytesOfATokenAreThoseBehindOthers) {
  const Tokenizer bert = from_json(uncased_json());
  EXPECT_EQ(bert.token_bytes(bert.token_to_id("##a").value()), "a");
  EXPECT_EQ(bert.token_bytes(bert.token_to_id("red").value()), " red");
}

TEST(TokenizerTest, LengthsOfWordsAreCountedInCharacters) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n\u0436\n##\u0436\n");
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\u0436";
  EXPECT_EQ(Tokenizer::from_folder(folder.path("")).encode(text + " " + text).size(), 202U);
}

TEST(TokenizerTest, WithoutTokensInsideOfWordsLongerOnesAreUnknown) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n");
  EXPECT_EQ(Tokenizer::from_folder(folder.path("")).encode("a ab").ids,
            (std::vector<std::int64_t>{2, 4, 1, 3}));
}

TEST(TokenizerTest, EncodesManyTexts) {
  const Tokenizer tokenizer = from_json(uncased_json());
  const std::vector<Encoding> encodings = tokenizer.encode({"the old house", "red"});
  ASSERT_EQ(encodings.size(), 2U);
  EXPECT_EQ(encodings[0].ids, (std::vector<std::int64_t>{2, 471, 472, 473, 3}));
  EXPECT_EQ(encodings[1].ids, (std::vector<std::int64_t>{2, 474, 3}));

  const std::vector<Encoding> pairs =
      tokenizer.encode({"the old house", "red"}, {"red", "red red"}, {.max_length = 6});
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].ids, (std::vector<std::int64_t>{2, 471, 472, 3, 474, 3}));
  EXPECT_EQ(pairs[1].ids, (std::vector<std::int64_t>{2, 474, 3, 474, 474, 3}));
  EXPECT_TRUE(tokenizer.encode(std::vector<std::string>()).empty());
}

TEST(TokenizerTest, PadsToTheLongest) {
  const Tokenizer tokenizer = from_json(uncased_json());
  const std::vector<Encoding> padded = tokenizer.pad(tokenizer.encode({"red", "the old house"}));
  ASSERT_EQ(padded.size(), 2U);
  EXPECT_EQ(padded[0].ids, (std::vector<std::int64_t>{2, 474, 3, 0, 0}));
  EXPECT_EQ(padded[0].type_ids, (std::vector<std::int64_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(padded[0].special, (std::vector<std::uint8_t>{1, 0, 1, 1, 1}));
  EXPECT_EQ(padded[0].attention_mask, (std::vector<std::uint8_t>{1, 1, 1, 0, 0}));
  EXPECT_EQ(padded[0].offsets.back(), (std::pair<std::uint32_t, std::uint32_t>(0, 0)));
  EXPECT_FALSE(padded[0].words.back() || padded[0].sequences.back());
  EXPECT_EQ(padded[1].ids, (std::vector<std::int64_t>{2, 471, 472, 473, 3}));
  EXPECT_EQ(padded[1].attention_mask, (std::vector<std::uint8_t>{1, 1, 1, 1, 1}));
}

std::vector<std::vector<std::int64_t>> overflowing_ids(const Encoding& encoding) {
  std::vector<std::vector<std::int64_t>> ids;
  for (const Encoding& part : encoding.overflowing) ids.push_back(part.ids);
  return ids;
}

TEST(TokenizerTest, ReturnsWhatOverflows) {
  using Lists = std::vector<std::vector<std::int64_t>>;
  const Tokenizer tokenizer = from_json(uncased_json());
  const auto encode = [&](EncodeOptions options) {
    options.add_special_tokens = false;
    options.return_overflowing_tokens = true;
    return tokenizer.encode("the old house red red", options);
  };
  EXPECT_EQ(encode({.max_length = 2}).ids, (std::vector<std::int64_t>{471, 472}));
  EXPECT_EQ(overflowing_ids(encode({.max_length = 2})), (Lists{{473, 474}, {474}}));
  EXPECT_EQ(overflowing_ids(encode({.max_length = 3, .stride = 1})), (Lists{{473, 474, 474}}));
  const Encoding left = encode({.max_length = 3, .truncation_side = Side::left, .stride = 2});
  EXPECT_EQ(left.ids, (std::vector<std::int64_t>{473, 474, 474}));
  EXPECT_EQ(left.offsets[0], (std::pair<std::uint32_t, std::uint32_t>(8, 13)));
  EXPECT_EQ(left.words[0], 2U);
  EXPECT_EQ(overflowing_ids(left), (Lists{{472, 473, 474}, {471, 472, 473}}));
  EXPECT_EQ(overflowing_ids(encode({.max_length = 0})), (Lists{{471, 472, 473, 474, 474}}));
  EXPECT_TRUE(encode({.max_length = 5}).overflowing.empty());
  EXPECT_EQ(encode({.max_length = 2, .truncation = Truncation::do_not_truncate}).size(), 5U);
  EXPECT_TRUE(tokenizer.encode("the old house", {.max_length = 3}).overflowing.empty());

  const Encoding pair =
      tokenizer.encode("the old", "house red", {.max_length = 5, .return_overflowing_tokens = true});
  EXPECT_EQ(pair.ids, (std::vector<std::int64_t>{2, 471, 3, 473, 3}));
  EXPECT_EQ(overflowing_ids(pair), (Lists{{2, 472, 3, 473, 3}, {2, 472, 3, 474, 3}, {2, 471, 3, 474, 3}}));
  EXPECT_EQ(pair.overflowing[0].type_ids, (std::vector<std::int64_t>{0, 0, 0, 1, 1}));
}

TEST(TokenizerTest, TheFirstTokenOfAWindowKeepsItsBlank) {
  json roberta = roberta_json();
  roberta["post_processor"]["add_prefix_space"] = true;
  const Tokenizer tokenizer = from_json(roberta);
  const std::string text = "the old house was red";
  const Encoding plain = tokenizer.encode(text, {.add_special_tokens = false});
  const Encoding first = tokenizer.encode(
      text, {.max_length = 1, .return_overflowing_tokens = true, .add_special_tokens = false});
  ASSERT_EQ(first.overflowing.size() + 1, plain.size());
  std::size_t kept = 0;
  for (std::size_t i = 1; i < plain.size(); ++i) {
    const std::string token = tokenizer.token(plain.ids[i]);
    const bool has_blank = token.starts_with("\u0120");
    kept += has_blank;
    EXPECT_EQ(first.overflowing[i - 1].offsets[0].first + (has_blank ? 1 : 0), plain.offsets[i].first)
        << token;
  }
  EXPECT_GT(kept, 0U);
}

TEST(TokenizerTest, PadsToALengthOnEitherSide) {
  const Tokenizer tokenizer = from_json(uncased_json());
  const auto ids = [&](const xgrad::tokenizers::PadOptions& options) {
    std::vector<std::vector<std::int64_t>> rows;
    for (const Encoding& row : tokenizer.pad(tokenizer.encode({"red", "the old"}), options))
      rows.push_back(row.ids);
    return rows;
  };
  using Lists = std::vector<std::vector<std::int64_t>>;
  using xgrad::tokenizers::Padding;
  EXPECT_EQ(ids({.padding_side = Side::left}), (Lists{{0, 2, 474, 3}, {2, 471, 472, 3}}));
  EXPECT_EQ(ids({.pad_to_multiple_of = 5}), (Lists{{2, 474, 3, 0, 0}, {2, 471, 472, 3, 0}}));
  EXPECT_EQ(ids({.pad_to_multiple_of = 4}), (Lists{{2, 474, 3, 0}, {2, 471, 472, 3}}));
  EXPECT_EQ(ids({.padding = Padding::max_length, .max_length = 3}), (Lists{{2, 474, 3}, {2, 471, 472, 3}}));
  EXPECT_EQ(ids({.padding = Padding::max_length, .max_length = 5, .padding_side = Side::left}),
            (Lists{{0, 0, 2, 474, 3}, {0, 2, 471, 472, 3}}));
  EXPECT_EQ(ids({.padding = Padding::do_not_pad}), (Lists{{2, 474, 3}, {2, 471, 472, 3}}));
  EXPECT_EQ(message_of<ValueError>([&] { ids({.padding = Padding::max_length}); }),
            "Tokenizer: padding to max_length needs a max_length, as the folder has none");
  EXPECT_EQ(message_of<ValueError>([&] { ids({.pad_to_multiple_of = 0}); }),
            "Tokenizer: pad_to_multiple_of must be at least 1, got 0");

  const Encoding cut =
      tokenizer.encode("the old house", {.max_length = 4, .return_overflowing_tokens = true});
  const Encoding padded = tokenizer.pad({cut})[0];
  ASSERT_EQ(padded.overflowing.size(), 1U);
  EXPECT_EQ(padded.overflowing[0].ids, (std::vector<std::int64_t>{2, 473, 3, 0}));
  EXPECT_EQ(padded.overflowing[0].attention_mask, (std::vector<std::uint8_t>{1, 1, 1, 0}));
}

TEST(TokenizerTest, SidesAreThoseOfTheFolder) {
  const JsonFolder folder(uncased_json());
  folder.write("tokenizer_config.json",
               R"({"padding_side": "left", "truncation_side": "left", "model_max_length": 4})");
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
  EXPECT_EQ(tokenizer.encode("the old house", {.max_length = 4}).ids,
            (std::vector<std::int64_t>{2, 472, 473, 3}));
  EXPECT_EQ(tokenizer.encode("the the the the the the the the the old house", {.max_length = 4}).ids,
            (std::vector<std::int64_t>{2, 472, 473, 3}));
  const auto padded =
      tokenizer.pad(tokenizer.encode({"red"}), {.padding = xgrad::tokenizers::Padding::max_length});
  EXPECT_EQ(padded[0].ids, (std::vector<std::int64_t>{0, 2, 474, 3}));
}

TEST(TokenizerTest, SaysWhereTheConfigurationContradicts) {
  const auto notes = [](const json& tokenizer, const json& config) {
    const JsonFolder folder(tokenizer);
    folder.write("tokenizer_config.json", config.dump());
    std::string all;
    Tokenizer::from_folder(folder.path(), {.note = [&](const std::string& note) { all += note + "\n"; }});
    const std::string path = folder.path();
    for (std::size_t i; (i = all.find(path)) != all.npos;) all.erase(i, path.size());
    return all;
  };
  EXPECT_EQ(notes(uncased_json(), {{"do_lower_case", true}, {"strip_accents", nullptr}}), "");
  EXPECT_EQ(notes(uncased_json(), {{"do_lower_case", false}}),
            "tokenizer_config.json: do_lower_case is false, but tokenizer.json, which counts, says true\n");
  EXPECT_EQ(
      notes(uncased_json(), {{"tokenize_chinese_chars", false}, {"strip_accents", false}}),
      "tokenizer_config.json: tokenize_chinese_chars is false, but tokenizer.json, which counts, says true\n"
      "tokenizer_config.json: strip_accents is false, but tokenizer.json, which counts, says true\n");
  EXPECT_EQ(
      notes(roberta_json(), {{"add_prefix_space", true}}),
      "tokenizer_config.json: add_prefix_space is true, but tokenizer.json, which counts, says false\n");
  EXPECT_EQ(notes(uncased_json(), {{"added_tokens_decoder", {{"4", {{"content", "[MASK]"}}}}}}), "");
  EXPECT_EQ(
      notes(uncased_json(), {{"added_tokens_decoder", {{"4", {{"content", "<mask>"}}}}}}),
      "tokenizer_config.json: added_tokens_decoder.4 is \"<mask>\", but tokenizer.json, which counts, has "
      "\"[MASK]\" with this id\n");
  EXPECT_EQ(
      notes(uncased_json(), {{"added_tokens_decoder", {{"99999", {{"content", "<mask>"}}}}}}),
      "tokenizer_config.json: added_tokens_decoder.99999 is \"<mask>\", but tokenizer.json, which counts, "
      "has no token with this id\n");
}

TEST(TokenizerTest, SpecialTokensMayLieInAFileOfTheirOwn) {
  const std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[M]\na\n<x>\n<y>\n<z>\n";
  const TemporaryFolder folder;
  folder.write("vocab.txt", vocab);
  folder.write("tokenizer_config.json",
               R"({"extra_special_tokens": {"image_token": "<x>"}, "mask_token": "a"})");
  folder.write("special_tokens_map.json", R"({"mask_token": {"content": "[M]", "lstrip": true},
                                              "additional_special_tokens": ["<y>"]})");
  folder.write("added_tokens.json", "{}");
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path(""));
  EXPECT_EQ(tokenizer.mask_id(), 4);
  EXPECT_EQ(tokenizer.encode("a [M]<x><y><z>").ids, (std::vector<std::int64_t>{2, 5, 4, 6, 7, 1, 1, 1, 3}));
  EXPECT_EQ(tokenizer.encode("a [M]").offsets[2], (std::pair<std::uint32_t, std::uint32_t>(1, 5)));

  folder.write("tokenizer_config.json", R"({"extra_special_tokens": ["<z>"], "added_tokens_decoder": {}})");
  EXPECT_EQ(message_of<ValueError>([&] { Tokenizer::from_folder(folder.path("")).mask_id(); }),
            "Tokenizer: the vocabulary must have a mask token, got none");
  EXPECT_EQ(Tokenizer::from_folder(folder.path("")).encode("<z>").ids, (std::vector<std::int64_t>{2, 8, 3}));
}

TEST(TokenizerTest, OfEqualNormalisedTokensTheLastIsFound) {
  json tokenizer = uncased_json();
  for (const char* text : {"Zoo", "zoo"})
    tokenizer["added_tokens"].push_back({{"id", 549 + tokenizer["added_tokens"].size() - 5},
                                         {"content", text},
                                         {"single_word", false},
                                         {"lstrip", false},
                                         {"rstrip", false},
                                         {"normalized", true},
                                         {"special", false}});
  EXPECT_EQ(from_json(tokenizer).encode("Zoo zoo ZOO").ids, (std::vector<std::int64_t>{2, 550, 550, 550, 3}));
}

TEST(TokenizerTest, LeavesSpecialTokensOut) {
  const Tokenizer tokenizer = from_json(uncased_json());
  const Encoding encoding = tokenizer.encode("the old", "house", {.add_special_tokens = false});
  EXPECT_EQ(encoding.ids, (std::vector<std::int64_t>{471, 472, 473}));
  EXPECT_EQ(encoding.type_ids, (std::vector<std::int64_t>{0, 0, 1}));
  EXPECT_EQ(tokenizer.encode("the old house", {.max_length = 2, .add_special_tokens = false}).ids,
            (std::vector<std::int64_t>{471, 472}));
}

TEST(TokenizerTest, RefusesArgumentsThatCannotBe) {
  const Tokenizer tokenizer = from_json(uncased_json());
  const auto refused = [&](const EncodeOptions& options, bool pair) {
    return message_of<ValueError>([&] {
      pair ? tokenizer.encode("the old house", "red red", options)
           : tokenizer.encode("the old house", options);
    });
  };
  EXPECT_EQ(refused({.max_length = 2}, true),
            "Tokenizer: max_length must be at least 3 for a pair with special tokens, got 2");
  EXPECT_EQ(refused({.max_length = 1}, false),
            "Tokenizer: max_length must be at least 2 for a text with special tokens, got 1");
  EXPECT_EQ(refused({.max_length = 4, .stride = 3}, false),
            "Tokenizer: stride must be at most max_length without special tokens, 2, got 3");
  EXPECT_EQ(refused({.max_length = 4, .stride = 2}, false),
            "Tokenizer: stride must be below the number of tokens of a text that stay, 2, got 2");
  EXPECT_EQ(
      refused({.max_length = 4, .truncation = Truncation::only_second}, false),
      "Tokenizer: truncation only_second needs a second text, got one text of 3 tokens for a max_length "
      "of 4");
  EXPECT_EQ(
      refused({.max_length = 5, .truncation = Truncation::only_first}, true),
      "Tokenizer: truncation only_first must leave a token of its text within max_length 5, got 2 tokens of "
      "the other text beside the special ones");
  EXPECT_EQ(message_of<ValueError>([&] { tokenizer.encode("ab\xC0\x80"); }),
            "Tokenizer: the text must be UTF-8, got an invalid byte at 2");
  EXPECT_EQ(message_of<ValueError>([&] { tokenizer.encode("a", "\xED\xA0\x80"); }),
            "Tokenizer: the second text must be UTF-8, got an invalid byte at 0");
  const std::vector<std::string> texts{"a", "a much longer \xFF"};
  EXPECT_EQ(message_of<ValueError>([&] { tokenizer.encode(texts); }),
            "Tokenizer: texts[1] must be UTF-8, got an invalid byte at 14");
  EXPECT_EQ(message_of<ValueError>([&] { tokenizer.encode(texts, std::vector<std::string>{"a"}); }),
            "Tokenizer: there must be as many second texts as texts, got 1 for 2");
  EXPECT_EQ(message_of<ValueError>([&] { tokenizer.encode(std::vector<std::string>{"a"}, texts); }),
            "Tokenizer: there must be as many second texts as texts, got 2 for 1");
  const char byte = 'a';
  EXPECT_EQ(message_of<ValueError>([&] { tokenizer.encode(std::string_view(&byte, std::size_t{1} << 32)); }),
            "Tokenizer: the text must have at most 4294967295 bytes, got 4294967296");

  json without = uncased_json();
  without["model"]["vocab"] = {{"[UNK]", 0}, {"a", 1}};
  without["added_tokens"] = json::array();
  without["post_processor"] = nullptr;
  const Tokenizer small = from_json(without);
  EXPECT_EQ(message_of<ValueError>([&] { small.mask_id(); }),
            "Tokenizer: the vocabulary must have a mask token, got none");
  EXPECT_EQ(message_of<ValueError>([&] {
              small.pad(small.encode({"a", "a a"}));
            }),
            "Tokenizer: the vocabulary must have a pad token, got none");
  EXPECT_EQ(small.pad(small.encode({"a a", "a b"}))[1].ids, (std::vector<std::int64_t>{1, 0}));
}

json added(std::int64_t id, const char* text, const json& flags = json::object()) {
  json token = {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", false}};
  token.update(flags);
  return token;
}

/// uncased_json() with one more token.
json with_added(const char* text, const json& flags) {
  json tokenizer = uncased_json();
  tokenizer["added_tokens"].push_back(
      added(static_cast<std::int64_t>(tokenizer["model"]["vocab"].size()), text, flags));
  return tokenizer;
}

std::vector<std::string> plain_tokens(const Tokenizer& tokenizer, const char* text) {
  return tokens_of(tokenizer, tokenizer.encode(text, {.add_special_tokens = false}));
}

TEST(TokenizerTest, FindsAddedTokens) {
  using Tokens = std::vector<std::string>;
  const Tokenizer raw = from_json(with_added("Foo", json::object()));
  EXPECT_EQ(plain_tokens(raw, "oldFoored Foo"), (Tokens{"old", "Foo", "red", "Foo"}));
  EXPECT_EQ(raw.encode("foo").ids[1], raw.token_to_id("foo"));
  const Tokenizer normalized = from_json(with_added("Foo", {{"normalized", true}}));
  EXPECT_EQ(plain_tokens(normalized, "FOO red"), (Tokens{"foo", "red"}));
  EXPECT_EQ(normalized.encode("foo").ids[1], normalized.token_to_id("Foo"));
  const Tokenizer renamed = from_json(with_added("Foo", {{"normalized", true}, {"special", true}}));
  EXPECT_EQ(renamed.decode(renamed.encode("old Foo").ids), "old foo") << "no special token has this text";
  const Tokenizer word = from_json(with_added("Foo", {{"single_word", true}}));
  EXPECT_EQ(plain_tokens(word, "Foo. xFoo Foox"), (Tokens{"Foo", ".", "x", "##f", "##oo", "foo", "##x"}));
  const Tokenizer split = from_json(with_added("zq", {{"single_word", true}}));
  EXPECT_EQ(plain_tokens(split, "zq zqx"), (Tokens{"zq", "z", "##q", "##x"})) << "the model has no zq";
  const Tokenizer stripped = from_json(with_added("Foo", {{"lstrip", true}, {"rstrip", true}}));
  const Encoding encoding = stripped.encode("red  Foo\t\u3000old");
  EXPECT_EQ(tokens_of(stripped, encoding), (Tokens{"[CLS]", "red", "Foo", "old", "[SEP]"}));
  EXPECT_EQ(json(encoding.offsets), json({{0, 0}, {0, 3}, {3, 10}, {10, 13}, {0, 0}}));
  json blank = with_added("Foo", {{"rstrip", true}});
  blank["added_tokens"].push_back(
      added(blank["added_tokens"].back()["id"].get<std::int64_t>() + 1, " ", {{"lstrip", true}}));
  EXPECT_EQ(plain_tokens(from_json(blank), "Foo old"), (Tokens{"Foo", "old"})) << "the blank is taken";
}

TEST(TokenizerTest, FollowsATemplate) {
  json tokenizer = uncased_json();
  const auto text = [](const char* id, int type) {
    return json{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  const json x = {{"SpecialToken", {{"id", "x"}, {"type_id", 7}}}};
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {x, text("A", 4)}},
      {"pair", {text("B", 5), x, text("A", 6)}},
      {"special_tokens", {{"x", {{"id", "x"}, {"ids", {3, 2}}, {"tokens", {"a", "b"}}}}}}};
  const Tokenizer read = from_json(tokenizer);
  EXPECT_EQ(read.encode("red").ids, (std::vector<std::int64_t>{3, 2, 474}));
  const Encoding pair = read.encode("red", "old house");
  EXPECT_EQ(pair.ids, (std::vector<std::int64_t>{472, 473, 3, 2, 474}));
  EXPECT_EQ(pair.type_ids, (std::vector<std::int64_t>{5, 5, 7, 7, 6}));
  EXPECT_EQ(xgrad_tests::to_json(pair.sequences), json({1, 1, nullptr, nullptr, 0}));
  tokenizer["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"[CLS]", 2}}, {"sep", {"[SEP]", 3}}};
  EXPECT_EQ(from_json(tokenizer).encode("red", "old").type_ids, (std::vector<std::int64_t>{0, 0, 0, 1, 1}));
}

TEST(TokenizerTest, TrimsTheBlanksOfByteLevelTokens) {
  json tokenizer = roberta_json();
  const auto offsets = [&](const char* text) { return json(from_json(tokenizer).encode(text).offsets); };
  EXPECT_EQ(offsets("a are"), json({{0, 0}, {0, 1}, {2, 5}, {0, 0}}));
  tokenizer["post_processor"]["trim_offsets"] = false;
  EXPECT_EQ(offsets("a are"), json({{0, 0}, {0, 1}, {1, 5}, {0, 0}}));
  tokenizer["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(plain_tokens(from_json(tokenizer), "are are"),
            (std::vector<std::string>{"\u0120are", "\u0120are"}));
  EXPECT_EQ(offsets("are are"), json({{0, 0}, {0, 3}, {3, 7}, {0, 0}}));
  EXPECT_EQ(offsets("<mask>are"), json({{0, 0}, {0, 6}, {6, 9}, {0, 0}}));
  tokenizer["post_processor"].update({{"trim_offsets", true}, {"add_prefix_space", true}});
  EXPECT_EQ(offsets("a\t<mask>"), json({{0, 0}, {0, 1}, {2, 8}, {0, 0}})) << "any white space";
  tokenizer["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "="}}}, {"content", "are are"}};
  EXPECT_EQ(offsets("="), json({{0, 0}, {0, 1}, {0, 1}, {0, 0}})) << "both are of the first character";
}

TEST(TokenizerTest, AddedTokensWithOtherCharactersThanBytesHaveAreDecodedAsTheyAre) {
  json roberta = roberta_json();
  roberta["added_tokens"].push_back(added(301, "<\uff5cUser\uff5c>"));
  EXPECT_EQ(from_json(roberta).decode(std::vector<std::int64_t>{301}), "<\uff5cUser\uff5c>");
}

TEST(TokenizerTest, ByteLevelWordsThatAreTokensStayIfAsked) {
  json tokenizer = roberta_json();
  const std::size_t id = tokenizer["model"]["vocab"].size() + 50;
  tokenizer["model"]["vocab"]["zq"] = id;
  EXPECT_EQ(plain_tokens(from_json(tokenizer), "zq"), (std::vector<std::string>{"z", "q"}));
  tokenizer["model"]["ignore_merges"] = true;
  EXPECT_EQ(plain_tokens(from_json(tokenizer), "zq"), std::vector<std::string>{"zq"});
}

TEST(TokenizerTest, LongWordsTakeNoLongerThanShortOnes) {
  const Tokenizer bert = from_json(uncased_json()), roberta = from_json(roberta_json());
  EXPECT_EQ(bert.encode(std::string(1'000'000, 'a')).size(), 3U);
  const Tokenizer unigram = Tokenizer::from_folder(data + "/tokenizers/xlm_roberta_reranker");
  EXPECT_EQ(unigram.decode(unigram.encode(std::string(1'000'000, 'e')).ids), std::string(1'000'000, 'e'));
  EXPECT_EQ(roberta.decode(roberta.encode(std::string(1'000'000, 'e')).ids), std::string(1'000'000, 'e'));
}

TEST(TokenizerTest, ThreadsShareOne) {
  const Tokenizer roberta = from_json(roberta_json()), bert = from_json(uncased_json());
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (int& mine : wrong) {
    threads.emplace_back([&] {
      for (const json& one : cases().at("strings")) {
        const std::string text = one.at("text");
        mine += json(roberta.encode(text).ids) != one.at("bpe");
        mine += json(bert.encode(text).ids) != one.at("uncased");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

/// What a changed tokenizer.json is refused with, after the path.
std::string refusal(json tokenizer, const std::function<void(json&)>& change) {
  change(tokenizer);
  const JsonFolder folder(tokenizer);
  const std::string message = message_of<FileError>([&] { Tokenizer::from_folder(folder.path()); });
  const std::string path = folder.path() + "tokenizer.json: ";
  return message.starts_with(path) ? message.substr(path.size()) : message;
}

TEST(TokenizerTest, RefusesPartsThatItDoesNotKnow) {
  const auto bert = [](const std::function<void(json&)>& change) { return refusal(uncased_json(), change); };
  const auto roberta = [](const std::function<void(json&)>& change) {
    return refusal(roberta_json(), change);
  };
  EXPECT_EQ(
      bert([](json& t) { t["model"]["type"] = "WordLevel"; }),
      "model.type must be WordPiece, Unigram or BPE: other models are not supported, got \"WordLevel\"");
  EXPECT_EQ(
      bert([](json& t) { t["normalizer"]["type"] = "ByteLevel"; }),
      "normalizer.type must be NFC, NFD, NFKC, NFKD, Lowercase, Nmt, Precompiled, Prepend, Replace, Strip "
      "or StripAccents, or BertNormalizer alone, got \"ByteLevel\"");
  EXPECT_EQ(bert([](json& t) { t["pre_tokenizer"]["type"] = "Metaspace"; }),
            "pre_tokenizer.type must be BertPreTokenizer for a WordPiece model, got \"Metaspace\"");
  EXPECT_EQ(
      bert([](json& t) { t["post_processor"]["type"] = "Other"; }),
      "post_processor.type must be TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel, a "
      "Sequence of these, or no post_processor, got \"Other\"");
  EXPECT_EQ(bert([](json& t) {
              json parts = json::array({t["post_processor"], t["post_processor"]});
              t["post_processor"] = {{"type", "Sequence"}, {"processors", std::move(parts)}};
            }),
            "post_processor.processors[1]: must not come after a processor that adds tokens");
  EXPECT_EQ(bert([](json& t) { t["decoder"]["type"] = "CTC"; }),
            "decoder.type must be ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip or WordPiece, a "
            "Sequence of these, or no decoder, got \"CTC\"");
  EXPECT_EQ(bert([](json& t) {
              t["decoder"] = {{"type", "Sequence"}, {"decoders", json::array()}};
            }),
            "decoder.decoders must be decoders, got an array");
  EXPECT_EQ(bert([](json& t) {
              t["decoder"] = {{"type", "Strip"}, {"content", "ab"}, {"start", 1}, {"stop", 0}};
            }),
            "decoder.content must be one character, got \"ab\"");
  EXPECT_EQ(bert([](json& t) { t["version"] = "2.0"; }), "version must be 1.0, got \"2.0\"");
  EXPECT_EQ(bert([](json& t) { t.erase("model"); }), "model is missing");
  EXPECT_EQ(bert([](json& t) { t["normalizer"].erase("clean_text"); }), "normalizer: clean_text is missing");
  EXPECT_EQ(
      roberta([](json& t) { t["pre_tokenizer"]["type"] = "Whitespace"; }),
      "pre_tokenizer.type must be Split, Digits, Punctuation, WhitespaceSplit, ByteLevel or Metaspace, or "
      "a Sequence of these, got \"Whitespace\"");
  EXPECT_EQ(roberta([](json& t) {
              json parts = json::array({t["pre_tokenizer"], t["pre_tokenizer"]});
              t["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
            }),
            "pre_tokenizer.pretokenizers[1]: must be the only ByteLevel or Metaspace");
  EXPECT_EQ(roberta([](json& t) { t["model"]["dropout"] = 0.5; }),
            "model.dropout must be a number from 0 to 0, got 0.5");
  for (const std::string name : {"end_of_word_suffix", "continuing_subword_prefix"}) {
    EXPECT_EQ(roberta([&](json& t) { t["model"][name] = "</w>"; }),
              "model." + name + " must be empty: other values are not supported, got \"</w>\"");
  }
}

TEST(TokenizerTest, RefusesVocabulariesThatAreNotWhole) {
  const auto bert = [](const std::function<void(json&)>& change) { return refusal(uncased_json(), change); };
  const auto roberta = [](const std::function<void(json&)>& change) {
    return refusal(roberta_json(), change);
  };
  EXPECT_EQ(bert([](json& t) { t["model"]["vocab"] = json::object(); }), "must have tokens, got none");
  EXPECT_EQ(bert([](json& t) { t["model"]["vocab"]["new"] = -1; }),
            "model.vocab.new must be a whole number from 0 to 2147483647, got -1");
  EXPECT_EQ(bert([](json& t) { t["model"]["vocab"]["new"] = 4'000'000'000; }),
            "model.vocab.new must be a whole number from 0 to 2147483647, got 4000000000");
  EXPECT_EQ(bert([](json& t) { t["model"]["vocab"]["new"] = 4; }),
            "an id must have one token, got \"[MASK]\" and \"new\" with the id 4");
  EXPECT_EQ(bert([](json& t) { t["model"]["vocab"][std::string(1001, 'a')] = 600; }),
            "a token must have at most 1000 bytes, got 1001 for the id 600");
  EXPECT_EQ(bert([](json& t) { t["model"]["unk_token"] = "<unk>"; }),
            "model.unk_token must be a token of model.vocab, got \"<unk>\"");
  EXPECT_EQ(refusal(with_added("new", json::object()), [](json& t) { t["model"]["unk_token"] = "new"; }),
            "model.unk_token must be a token of model.vocab, got \"new\"");
  EXPECT_EQ(bert([](json& t) { t["added_tokens"][0]["id"] = 7; }),
            "added_tokens[0]: the id of \"[PAD]\" must be 0, as in the vocabulary, got 7");
  EXPECT_EQ(refusal(with_added("new", {{"id", 9999}}), [](json&) {}),
            "added_tokens[5]: the id of \"new\" must be 549, the first after the vocabulary, got 9999");
  EXPECT_EQ(bert([](json& t) { t["added_tokens"].push_back(t["added_tokens"][1]); }),
            "added_tokens[5]: a token must be declared once, got \"[UNK]\" twice");
  EXPECT_EQ(refusal(with_added("\u0342", {{"normalized", true}}), [](json&) {}),
            "added_tokens[5]: a token must not be empty after normalisation, got \"\u0342\"");
  EXPECT_EQ(bert([](json& t) { t["post_processor"]["special_tokens"]["[SEP]"]["ids"][0] = 9999; }),
            "post_processor.special_tokens.[SEP].ids[0] must be the id of a token, got 9999");
  EXPECT_EQ(bert([](json& t) { t["post_processor"]["special_tokens"].erase("[SEP]"); }),
            "post_processor.special_tokens: [SEP] is missing");
  EXPECT_EQ(bert([](json& t) { t["post_processor"]["pair"].erase(3); }),
            "post_processor.pair: must have the sequences A and B");
  EXPECT_EQ(bert([](json& t) { t["post_processor"]["single"].push_back(t["post_processor"]["single"][1]); }),
            "post_processor.single: must have the sequence A once");
  EXPECT_EQ(bert([](json& t) { t["post_processor"]["single"][1]["Sequence"]["id"] = "C"; }),
            "post_processor.single[1].Sequence.id must be A or B, got \"C\"");
  EXPECT_EQ(bert([](json& t) { t["post_processor"]["single"][1] = json::object(); }),
            "post_processor.single[1]: must have one member, Sequence or SpecialToken");
  EXPECT_EQ(roberta([](json& t) {
              t["model"]["vocab"] = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}, {"<mask>", 300}};
              t["model"]["merges"] = json::array();
            }),
            "model: the vocabulary must have tokens for bytes, got none");
  EXPECT_EQ(roberta([](json& t) { t["model"]["merges"].push_back("a new"); }),
            "model: merge 40 of \"a\" and \"new\" must join two tokens into a token, got no token \"new\"");
  EXPECT_EQ(roberta([](json& t) { t["model"]["merges"].push_back("a b c"); }),
            "model.merges[40] must be two tokens separated by a blank, got \"a b c\"");
  EXPECT_EQ(roberta([](json& t) { t["model"]["merges"].push_back({"a"}); }),
            "model.merges[40] must be two tokens, got an array");
  EXPECT_EQ(roberta([](json& t) { t["post_processor"]["cls"] = {"<s>"}; }),
            "post_processor.cls must be a token and its id, got an array");
}

TEST(TokenizerTest, BytesWithoutATokenAreLeftOut) {
  const json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", true}};
  const json tokenizer{{"pre_tokenizer", byte_level},
                       {"decoder", byte_level},
                       {"model",
                        {{"type", "BPE"},
                         {"vocab", {{"a", 0}, {"c", 1}, {"ac", 2}, {"\u0120", 3}, {"d", 4}}},
                         {"merges", {"a c"}}}}};
  const Tokenizer read = Tokenizer::from_json(tokenizer.dump());
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(read.encode("abc").ids, (Ids{2}));  // as they are neighbours then
  EXPECT_EQ(read.encode("ab c").ids, (Ids{0, 3, 1}));
  EXPECT_EQ(read.encode("b").ids, Ids());
  const auto encoding = read.encode("abcd d");
  EXPECT_EQ(encoding.ids, (Ids{2, 4, 3, 4}));
  EXPECT_EQ(json(encoding.offsets), json({{0, 2}, {2, 3}, {4, 5}, {5, 6}}));
  EXPECT_EQ(read.encode("abc").ids, (Ids{2}));  // from what is kept of words
}

TEST(TokenizerTest, TextOfATokenizerJsonIsSavedAsItIs) {
  const std::string text = uncased_json().dump();
  const Tokenizer read = Tokenizer::from_json(text, "model.gguf");
  EXPECT_EQ(read.encode("red").ids, from_json(uncased_json()).encode("red").ids);
  const TemporaryFolder folder;
  read.save(folder.path("saved"));
  EXPECT_EQ(xgrad_tests::read_bytes(folder.path("saved/tokenizer.json")), text);
  folder.write("vocab.txt", "a");
  EXPECT_NE(message_of<FileError>([&] { read.check_save(folder.path("")); }), "no exception");
  EXPECT_EQ(message_of<FileError>([] { Tokenizer::from_json("{", "model.gguf"); }).substr(0, 12),
            "model.gguf: ");
}

TEST(TokenizerTest, IdsMayHaveGaps) {
  json tokenizer = uncased_json();
  tokenizer["model"]["vocab"]["zebra"] = 2'000'000'000;
  const Tokenizer read = from_json(tokenizer);
  EXPECT_EQ(read.encode("zebra").ids, (std::vector<std::int64_t>{2, 2'000'000'000, 3}));
  EXPECT_EQ(read.token(2'000'000'000), "zebra");
  EXPECT_THROW(read.token(1'999'999'999), IndexError);
}

TEST(TokenizerTest, OlderTokenizerJsonsNameNoTypeOfTheirModel) {
  json bert = uncased_json(), roberta = roberta_json();
  bert["model"].erase("type");
  roberta["model"].erase("type");
  roberta["model"].erase("byte_fallback");
  roberta["pre_tokenizer"].erase("use_regex");
  EXPECT_EQ(from_json(bert).encode("red").ids, (std::vector<std::int64_t>{2, 474, 3}));
  EXPECT_EQ(from_json(roberta).encode("are").ids, from_json(roberta_json()).encode("are").ids);
}

/// Writes files and returns the message of reading them, with FOLDER for the folder.
std::string refused_files(const std::map<std::string, std::string>& files) {
  const TemporaryFolder folder;
  for (const auto& [name, bytes] : files) folder.write(name, bytes);
  std::string message = message_of<FileError>([&] { Tokenizer::from_folder(folder.path("")); });
  const std::string path = folder.path("");
  if (message.starts_with(path)) message.replace(0, path.size(), "FOLDER/");
  return message;
}

TEST(TokenizerTest, RefusesOlderFilesThatAreNotWhole) {
  const std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  EXPECT_EQ(
      refused_files({}),
      "FOLDER/: must be a folder with a tokenizer.json, with a vocab.txt, with a vocab.json and a "
      "merges.txt, with a vocab.json, a source.spm and a target.spm, or with a model of sentencepiece, such "
      "as spm.model");
  EXPECT_EQ(refused_files({{"vocab.txt", ""}}), "FOLDER/vocab.txt: must have tokens, got none");
  EXPECT_EQ(refused_files({{"vocab.txt", "a\n"}}),
            "FOLDER/vocab.txt: the vocabulary must have the cls token, got no \"[CLS]\"");
  EXPECT_EQ(refused_files({{"vocab.txt", "[CLS]\n[SEP]\n"}}),
            "FOLDER/vocab.txt: the vocabulary must have the unk token, got no \"[UNK]\"");
  EXPECT_EQ(refused_files({{"vocab.txt", "a\nb\xFF\n"}}),
            "FOLDER/vocab.txt: must be UTF-8, got an invalid byte at 3");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab + std::string(100'000'000, 'a')}}),
            "FOLDER/vocab.txt: a token must have at most 1000 bytes, got 100000000 for the id 6");
  std::string many = vocab;
  for (int i = 0; i < 40'000; ++i) many += std::to_string(i) + std::string(900, 'a') + "\n";
  EXPECT_EQ(refused_files({{"vocab.txt", many}}),
            "FOLDER/vocab.txt: must have at most 2000000 tokens of 32000000 bytes in all");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab}, {"tokenizer_config.json", R"({"mask_token": "<mask>"})"}}),
            "FOLDER/tokenizer_config.json: mask_token: must be a token of the vocabulary, got \"<mask>\"");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab}, {"special_tokens_map.json", R"({"mask_token": "<mask>"})"}}),
            "FOLDER/special_tokens_map.json: mask_token: must be a token of the vocabulary, got \"<mask>\"");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab}, {"tokenizer_config.json", R"({"do_lower_case": "yes"})"}}),
            "FOLDER/tokenizer_config.json: do_lower_case must be true or false, got \"yes\"");
  EXPECT_EQ(
      refused_files({{"vocab.txt", vocab}, {"tokenizer_config.json", R"({"do_basic_tokenize": false})"}}),
      "FOLDER/tokenizer_config.json: do_basic_tokenize must be true, got false");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab}, {"tokenizer_config.json", R"({"model_max_length": 0})"}}),
            "FOLDER/tokenizer_config.json: model_max_length must be a number from 1 to 1e+300, got 0");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab}, {"tokenizer_config.json", R"({"model_max_length": 5.5})"}}),
            "FOLDER/tokenizer_config.json: model_max_length must be a whole number, got 5.5");
  EXPECT_EQ(
      refused_files({{"vocab.txt", vocab},
                     {"tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})"}}),
      "FOLDER/tokenizer_config.json: tokenizer_class must be one of BertTokenizer, DistilBertTokenizer, "
      "ElectraTokenizer without a tokenizer.json, got \"BertJapaneseTokenizer\"");
  EXPECT_EQ(
      refused_files({{"vocab.txt", vocab},
                     {"tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "a"}}})"}}),
      "FOLDER/tokenizer_config.json: added_tokens_decoder.x: the name must be an id");
  EXPECT_EQ(
      refused_files({{"vocab.txt", vocab},
                     {"tokenizer_config.json", R"({"added_tokens_decoder": {"5x": {"content": "a"}}})"}}),
      "FOLDER/tokenizer_config.json: added_tokens_decoder.5x: the name must be an id");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab}, {"added_tokens.json", R"({"[SEP]": 9})"}}),
            "FOLDER/added_tokens.json: [SEP]: the id of \"[SEP]\" must be 3, as in the vocabulary, got 9");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab}, {"added_tokens.json", R"({"<new>": 3})"}}),
            "FOLDER/added_tokens.json: <new>: the id of \"<new>\" must be 6, the first after the vocabulary, "
            "got 3");
  EXPECT_EQ(refused_files({{"vocab.txt", vocab}, {"tokenizer_config.json", R"({"padding_side": "up"})"}}),
            "FOLDER/tokenizer_config.json: padding_side must be left or right, got \"up\"");

  const std::string bytes = read_bytes(data + "/roberta_mlm/vocab.json");
  EXPECT_EQ(refused_files({{"vocab.json", bytes}, {"merges.txt", "#version: 0.2\na b c\n"}}),
            "FOLDER/merges.txt: line 2 must be two tokens separated by a blank, got \"a b c\"");
  EXPECT_EQ(refused_files({{"vocab.json", bytes}, {"merges.txt", "a new\n"}}),
            "FOLDER/merges.txt: merge 0 of \"a\" and \"new\" must join two tokens into a token, got no token "
            "\"new\"");
  EXPECT_EQ(refused_files({{"vocab.json", "{\"a\": 0}"}, {"merges.txt", ""}}),
            "FOLDER/vocab.json: the vocabulary must have the cls token, got no \"<s>\"");
}

TEST(TokenizerTest, ReadsVocabTxtAsTheLibraryDoes) {
  const TemporaryFolder folder;
  // A line ends with "\n" or "\r\n", blanks at its end do not count, and of equal ones the last counts.
  folder.write("vocab.txt", "[PAD]\r\n[UNK]\n[CLS]\n[SEP]\nred \t\nold\nred\u3000\n");
  folder.write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656,
      "cls_token": {"content": "[CLS]", "lstrip": true}, "additional_special_tokens": ["old"]})");
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path(""));
  EXPECT_EQ(tokenizer.encode("red old").ids, (std::vector<std::int64_t>{2, 6, 5, 3}));
  EXPECT_EQ(tokenizer.encode("RED old").ids, (std::vector<std::int64_t>{2, 6, 5, 3})) << "in lower case";
  EXPECT_EQ(tokenizer.decode(std::vector<std::int64_t>{6, 5}), "red");
  EXPECT_EQ(tokenizer.size(), 6U);
  EXPECT_THROW(tokenizer.token(4), IndexError);
  EXPECT_EQ(tokenizer.max_length(), std::nullopt);
  EXPECT_EQ(json(tokenizer.encode("red [CLS]").offsets), json({{0, 0}, {0, 3}, {3, 9}, {0, 0}}));
}

TEST(TokenizerTest, AddedTokensDecoderAddsTokens) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nred\n");
  folder.write(
      "tokenizer_config.json",
      R"({"added_tokens_decoder": {"5": {"content": "<new>", "special": true}, "0": {"content": "[PAD]"}}})");
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path(""));
  EXPECT_EQ(tokenizer.encode("red<new>").ids, (std::vector<std::int64_t>{2, 4, 5, 3}));
}

}  // namespace tokenizer_test
