#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/detail/bytes/protobuf.hpp>
#include <xgrad/base/error.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>

#include "../../tokenizers/detail/normalizers/charsmap.hpp"
#include "../expect_error.hpp"
#include "../files.hpp"
#include "library_cases.hpp"

namespace sentence_piece_test {

using nlohmann::json;
using xgrad::FileError;
using xgrad::detail::MessageWriter;
using xgrad::tokenizers::Encoding, xgrad::tokenizers::Tokenizer;
using xgrad_tests::message_of, xgrad_tests::TemporaryFolder;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5;

/// A model file of sentencepiece.
class SentencePieceBuilder {
 public:
  void piece(const std::string& text, float score, std::int64_t type = normal) {
    MessageWriter piece;
    piece.text(1, text);
    piece.number(2, score);
    piece.integer(3, type);
    model_.message(1, piece);
  }

  void trainer(std::uint64_t field, std::int64_t value) {
    MessageWriter trainer;
    trainer.integer(field, value);
    model_.message(2, trainer);
  }

  void trainer(std::uint64_t field, std::string_view value) {
    MessageWriter trainer;
    trainer.text(field, value);
    model_.message(2, trainer);
  }

  void normalizer(std::uint64_t field, std::string_view value) {
    MessageWriter normalizer;
    normalizer.text(field, value);
    model_.message(3, normalizer);
  }

  void normalizer(std::uint64_t field, std::int64_t value) {
    MessageWriter normalizer;
    normalizer.integer(field, value);
    model_.message(3, normalizer);
  }

  void denormalizer(std::uint64_t field, std::string_view value) {
    MessageWriter denormalizer;
    denormalizer.text(field, value);
    model_.message(5, denormalizer);
  }

  std::string bytes() const {
    const auto written = model_.written();
    return {reinterpret_cast<const char*>(written.data()), written.size()};
  }

 private:
  MessageWriter model_;
};

/// <unk>, <s> and </s>, or others in their place, and a few texts.
SentencePieceBuilder with_texts(const std::vector<std::pair<std::string, std::int64_t>>& first = {
                                    {"<unk>", unknown}, {"<s>", control}, {"</s>", control}}) {
  SentencePieceBuilder builder;
  for (const auto& [text, type] : first) builder.piece(text, 0, type);
  float score = -1;
  for (const char* text : {"\u2581", "a", "b", "\u2581a", "\u2581b", "1", ",", "1,"}) {
    builder.piece(text, score);
    score -= 0.25F;
  }
  return builder;
}

class SentencePieceFolder : public TemporaryFolder {
 public:
  SentencePieceFolder(const std::string& name, const SentencePieceBuilder& model,
                      const json& config = json()) {
    write(name, model.bytes());
    if (!config.is_null()) write("tokenizer_config.json", config.dump());
  }

  Tokenizer read() const { return Tokenizer::from_folder(path("")); }
};

class SentencePieceFiles : public testing::TestWithParam<const char*> {};

TEST_P(SentencePieceFiles, AreReadAsSentencepieceDoes) {
  std::size_t count = 0;
  const auto note = [&](const std::string& name, bool right) {
    ++count;
    EXPECT_TRUE(right) << name;
  };
  const std::string folder = XGRAD_PRETRAINED_DIR "/tokenizers/";
  xgrad_tests::LibraryCases(folder + GetParam(), note).compare();
  EXPECT_GT(count, 200U);
}

INSTANTIATE_TEST_SUITE_P(SentencePieceTest, SentencePieceFiles,
                         testing::Values("sentencepiece_unigram", "sentencepiece_bpe", "sentencepiece_word",
                                         "sentencepiece_characters"));

TEST(SentencePieceTest, OfEqualSumsTheFirstIsTaken) {
  SentencePieceBuilder model;
  model.piece("<unk>", 0, unknown);
  model.piece("\u2581", -1);
  model.piece("a", -1);
  model.piece("aa", -2);
  const Encoding encoding = SentencePieceFolder("spm.model", model).read().encode("aa a");
  EXPECT_EQ(encoding.ids, (Ids{1, 3, 1, 2}));
  EXPECT_EQ(xgrad_tests::to_json(encoding.words), json({0, 0, 1, 1}));
  SentencePieceBuilder rounded;
  rounded.piece("<unk>", 0, unknown);
  rounded.piece("\u2581", -1);
  rounded.piece("a", 1e-8F);
  rounded.piece("\u2581a", -1);
  EXPECT_EQ(SentencePieceFolder("spm.model", rounded).read().encode("a").ids, Ids{3}) << "sums are floats";
}

TEST(SentencePieceTest, WhatIsUnknownIsBelowTheRarestToken) {
  SentencePieceBuilder model;
  model.piece("<unk>", 0, unknown);
  model.piece("\u2581", -1);
  model.piece("ab", -25);
  model.piece("b", -1);
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().encode("ab").ids, (Ids{1, 2}));
}

TEST(SentencePieceTest, WhatIsUnusedIsDividedAgain) {
  SentencePieceBuilder model;
  model.piece("<unk>", 0, unknown);
  float score = 0;
  for (const char* text : {"ab", "abc"}) model.piece(text, score--, unused);
  for (const char* text : {"a", "b", "c", "d", "\u2581"}) model.piece(text, score--);
  model.trainer(3, 2);
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().encode("abcdab").ids, (Ids{7, 3, 4, 5, 6, 3, 4}));
}

TEST(SentencePieceTest, OfMappedBeginningsTheLongestIsTaken) {
  const json other = json::parse(
      xgrad_tests::read_bytes(XGRAD_PRETRAINED_DIR "/tokenizers/xlm_roberta_reranker/tokenizer.json"));
  json map;
  for (const json& step : other.at("normalizer").at("normalizers"))
    if (step.at("type") == "Precompiled") map = step.at("precompiled_charsmap");
  SentencePieceBuilder model;
  model.piece("<unk>", 0, unknown);
  model.piece("\u2581", -1);
  model.piece("\u30ab", -1);
  model.piece("\u30ac", -1);
  model.normalizer(2,
                   xgrad::tokenizers::detail::decoded_base64(xgrad::detail::Json::parse("map", map.dump())));
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().encode("\uff76\uff76\uff9e").ids, (Ids{1, 2, 3}));
}

TEST(SentencePieceTest, WhatAUserDefinesIsNotMerged) {
  SentencePieceBuilder model;
  model.piece("<unk>", 0, unknown);
  model.piece("foo", 0, user_defined);
  float score = 0;
  for (const char* text : {"a", "b", "foob", "afoo", "ab", "\u2581"}) model.piece(text, score--);
  model.trainer(3, 2);
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().encode("abfoob afoo").ids,
            (Ids{7, 6, 1, 3, 7, 2, 1}));
}

TEST(SentencePieceTest, WhatIsUnknownIsShownAsTheFileSays) {
  SentencePieceBuilder model = with_texts();
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().decode(Ids{6, 0, 5}), "a \u2047 b");
  model.trainer(44, "<?>");
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().decode(Ids{6, 0, 5}), "a<?>b");
}

TEST(SentencePieceTest, WhatAUserDefinesIsTakenWhateverItsScore) {
  SentencePieceBuilder model;
  model.piece("<unk>", 0, unknown);
  model.piece("ab", -50, user_defined);
  for (const char* text : {"a", "b", "\u2581"}) model.piece(text, -1);
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().encode("ab").ids, (Ids{4, 1}));
}

TEST(SentencePieceTest, WhatWasJoinedIsJoinedWithWhatFollows) {
  SentencePieceBuilder model;
  model.piece("<unk>", 0, unknown);
  float score = 0;
  for (const char* text : {"ab", "cd", "abcd", "a", "b", "c", "d", "\u2581"}) model.piece(text, score--);
  model.trainer(3, 2);
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().encode("abcd").ids, (Ids{8, 3}));
}

TEST(SentencePieceTest, BlanksMayStayAsTheyAre) {
  SentencePieceBuilder model;
  model.piece("<unk>", 0, unknown);
  for (const char* text : {" ", " a", " b"}) model.piece(text, -1);
  model.normalizer(5, 0);  // escape_whitespaces
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().encode("a b").ids, (Ids{2, 3}));
}

TEST(SentencePieceTest, AllBlanksAtTheBeginningGoIfTheModelRemovesThem) {
  SentencePieceBuilder model = with_texts();
  const Ids ids{3, 3, 4};
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().decode(ids), "a");
  model.normalizer(4, 0);  // remove_extra_whitespaces
  EXPECT_EQ(SentencePieceFolder("spm.model", model).read().decode(ids), " a");
}

TEST(SentencePieceTest, XlmRobertaMovesTheIds) {
  const SentencePieceFolder folder("sentencepiece.bpe.model", with_texts(),
                                   {{"tokenizer_class", "XLMRobertaTokenizer"}, {"model_max_length", 7}});
  const Tokenizer tokenizer = folder.read();
  const Encoding encoding = tokenizer.encode("a  b \u00e9<mask>");
  EXPECT_EQ(encoding.ids, (Ids{0, 7, 8, 4, 3, 12, 2}));
  EXPECT_EQ(encoding.offsets[5], (std::pair<std::uint32_t, std::uint32_t>(6, 12)));
  EXPECT_EQ(tokenizer.encode("a <mask> b").offsets[2], (std::pair<std::uint32_t, std::uint32_t>(2, 8)));
  const SentencePieceFolder named("sentencepiece.bpe.model", with_texts(),
                                  {{"tokenizer_class", "XLMRobertaTokenizer"}, {"mask_token", "<mask>"}});
  EXPECT_EQ(named.read().encode("a <mask> b").offsets[2], (std::pair<std::uint32_t, std::uint32_t>(2, 8)));
  const SentencePieceFolder declared("sentencepiece.bpe.model", with_texts(),
                                     {{"tokenizer_class", "XLMRobertaTokenizer"},
                                      {"mask_token", {{"content", "<mask>"}, {"lstrip", true}}}});
  EXPECT_EQ(declared.read().encode("a <mask> b").offsets[2], (std::pair<std::uint32_t, std::uint32_t>(1, 8)));
  EXPECT_EQ(tokenizer.encode("a", "b").ids, (Ids{0, 7, 2, 2, 8, 2}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a b").ids), "a b");
  EXPECT_EQ((Ids{tokenizer.cls_id(), tokenizer.pad_id(), tokenizer.sep_id(), tokenizer.unk_id(),
                 tokenizer.mask_id()}),
            (Ids{0, 1, 2, 3, 12}));
  EXPECT_EQ(tokenizer.max_length(), 7U);
}

TEST(SentencePieceTest, CamembertHasTokensThatAreNotUsed) {
  const SentencePieceFolder folder("sentencepiece.bpe.model", with_texts(),
                                   {{"tokenizer_class", "CamembertTokenizerFast"}});
  const Tokenizer tokenizer = folder.read();
  EXPECT_EQ(tokenizer.encode("a \u00e9").ids, (Ids{5, 10, 7, 3, 6}));
  EXPECT_EQ(tokenizer.token(4), "<unk>NOTUSED");
  EXPECT_EQ(tokenizer.mask_id(), 15);
}

TEST(SentencePieceTest, DebertaAppendsTheMask) {
  const auto model =
      with_texts({{"[PAD]", control}, {"[CLS]", control}, {"[SEP]", control}, {"[UNK]", unknown}});
  const SentencePieceFolder folder("spm.model", model, {{"vocab_type", "spm"}, {"do_lower_case", true}});
  folder.write("config.json", R"({"model_type": "deberta-v2"})");
  const Tokenizer tokenizer = folder.read();
  EXPECT_EQ(tokenizer.encode(" A[MASK]b ").ids, (Ids{1, 7, 12, 8, 2}));
  EXPECT_EQ(tokenizer.encode("a[unk]b").ids, (Ids{1, 7, 3, 8, 2})) << "it is found in lower case";
  EXPECT_EQ(tokenizer.encode("a", "b").type_ids, (Ids{0, 0, 0, 1, 1}));

  const SentencePieceFolder listed("spm.model", model, {{"tokenizer_class", "DebertaV2Tokenizer"}});
  listed.write("added_tokens.json", R"({"[MASK]": 12, "<new>": 13})");
  EXPECT_EQ(listed.read().encode("<new>[MASK]").ids, (Ids{1, 13, 12, 2}));
  EXPECT_TRUE(listed.read().contains(13));
  listed.write("added_tokens.json", R"({"<new>": 12})");
  EXPECT_EQ(listed.read().encode("<new>[MASK]").ids, (Ids{1, 12, 13, 2})) << "the mask is behind them";
}

TEST(SentencePieceTest, AlbertLowersAndAvoidsNumbersWithCommas) {
  const auto model = with_texts({{"<pad>", control},
                                 {"<unk>", unknown},
                                 {"[CLS]", control},
                                 {"[SEP]", control},
                                 {"[MASK]", user_defined}});
  const SentencePieceFolder folder("spiece.model", model, {{"tokenizer_class", "AlbertTokenizer"}});
  EXPECT_EQ(folder.read().encode("\u00c1 1, [MASK]").ids, (Ids{2, 8, 5, 10, 11, 4, 3}));
  const SentencePieceFolder cased(
      "spiece.model", model,
      {{"tokenizer_class", "AlbertTokenizer"}, {"do_lower_case", false}, {"keep_accents", true}});
  EXPECT_EQ(cased.read().encode("\u00c1").ids, (Ids{2, 5, 1, 3}));
}

/// Texts that are unknown to SentencePiece can be tokens of Marian's vocabulary, as can their beginnings.
TEST(SentencePieceTest, MarianLooksUpWholeUnknownRuns) {
  const json config{{"tokenizer_class", "MarianTokenizer"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
  const SentencePieceFolder folder("source.spm", with_texts(), config);
  folder.write("target.spm", with_texts().bytes());
  const json vocabulary{{"<unk>", 0}, {"</s>", 1}, {"<pad>", 2}, {"\u2581", 3},
                        {"a", 4},     {"x", 5},    {"xyz", 6},   {"z", 7}};
  folder.write("vocab.json", vocabulary.dump());
  const Tokenizer marian = folder.read();
  const auto ids = [&](const std::string& text) {
    return marian.encode(text, {.add_special_tokens = false}).ids;
  };
  EXPECT_EQ(ids("x"), (Ids{3, 5}));
  EXPECT_EQ(ids("xy xyz"), (Ids{3, 0, 3, 6}));
  EXPECT_EQ(ids("xyaz"), (Ids{3, 0, 4, 7}));
  // This would take the square of the length if the beginnings were looked up.
  EXPECT_EQ(ids(std::string(1'000'000, 'x')), (Ids{3, 0}));

  EXPECT_EQ(ids("xz"), (Ids{3, 0}));
  SentencePieceBuilder target = with_texts();
  for (const char* text : {"x", "z"}) target.piece(text, -1);
  folder.write("target.spm", target.bytes());
  EXPECT_EQ(Tokenizer::from_folder(folder.path(""), {.target = true}).encode("xz").ids, (Ids{3, 5, 7, 1}));
  folder.write("tokenizer_config.json", R"({"eos_token": "x"})");
  EXPECT_EQ(folder.read().encode("z").ids, (Ids{3, 7, 5}));
}

TEST(SentencePieceTest, T5HasExtraTokensAtTheEnd) {
  const auto model = with_texts({{"<pad>", control}, {"</s>", control}, {"<unk>", unknown}});
  const SentencePieceFolder folder("spiece.model", model,
                                   {{"tokenizer_class", "T5Tokenizer"}, {"extra_ids", 3}});
  const Tokenizer tokenizer = folder.read();
  EXPECT_EQ(tokenizer.encode("a<extra_id_0>b<extra_id_2>", "a").ids, (Ids{6, 13, 7, 11, 1, 6, 1}));
  EXPECT_EQ(tokenizer.encode("a", "a").type_ids, (Ids{0, 0, 0, 0}));
  EXPECT_EQ(tokenizer.size(), 14U);
  const SentencePieceFolder usual("spiece.model", model, {{"tokenizer_class", "T5Tokenizer"}});
  EXPECT_EQ(usual.read().size(), 111U);
  const SentencePieceFolder modern("spiece.model", model,
                                   {{"tokenizer_class", "T5Tokenizer"}, {"legacy", false}});
  EXPECT_EQ(modern.read().encode("a<extra_id_0>b ").ids, (Ids{6, 110, 5, 1}));
  EXPECT_EQ(usual.read().encode("a\nb ").ids, (Ids{6, 7, 1})) << "any white space is between words";
  const SentencePieceFolder bare("spiece.model", model,
                                 {{"tokenizer_class", "T5Tokenizer"}, {"add_prefix_space", false}});
  EXPECT_EQ(bare.read().encode("ab").ids, (Ids{4, 5, 1}));
}

TEST(SentencePieceTest, WhatAUserDefinesIsShownInDecodedTexts) {
  SentencePieceBuilder model = with_texts({{"<pad>", control}, {"</s>", control}, {"<unk>", unknown}});
  model.piece("<sep>", 0, user_defined);
  const SentencePieceFolder folder("spiece.model", model, {{"tokenizer_class", "T5Tokenizer"}});
  const Encoding encoding = folder.read().encode("a<sep>b");
  EXPECT_EQ(encoding.ids, (Ids{6, 11, 7, 1}));
  EXPECT_EQ(folder.read().decode(encoding.ids), "a<sep> b");
}

TEST(SentencePieceTest, FilesAreSavedAsTheyWereRead) {
  const SentencePieceFolder folder("spm.model", with_texts());
  const TemporaryFolder copy;
  folder.read().save(copy.path(""));
  EXPECT_EQ(xgrad_tests::read_bytes(copy.path("spm.model")), with_texts().bytes());
}

TEST(SentencePieceTest, RefusesFilesThatAreNotWhole) {
  const auto refused = [](const SentencePieceBuilder& model, const json& config = json()) {
    const SentencePieceFolder folder("spm.model", model, config);
    std::string message = message_of<FileError>([&] { folder.read(); });
    const std::string path = folder.path("");
    return message.starts_with(path) ? message.substr(path.size()) : message;
  };
  const auto with = [&](const std::function<void(SentencePieceBuilder&)>& change,
                        const json& config = json()) {
    SentencePieceBuilder model = with_texts();
    change(model);
    return refused(model, config);
  };
  EXPECT_EQ(refused({}), "spm.model: there must be one unknown token, got 0");
  EXPECT_EQ(with([](auto& model) { model.piece("?", 0, unknown); }),
            "spm.model: there must be one unknown token, got 2");
  SentencePieceBuilder none;
  none.piece("<unk>", 0, unknown);
  EXPECT_EQ(refused(none), "spm.model: there must be tokens of texts, got none");
  EXPECT_EQ(with([](auto& model) { model.piece("a", 0); }),
            "spm.model: a token must be there once, got \"a\" twice");
  EXPECT_EQ(with([](auto& model) { model.piece("", 0); }),
            "spm.model: token 11 must be UTF-8 of 1 to 1000 bytes, got \"\"");
  EXPECT_EQ(with([](auto& model) { model.piece("\xFF", 0); }),
            "spm.model: token 11 must be UTF-8 of 1 to 1000 bytes, got \"\ufffd\"");
  EXPECT_EQ(with([](auto& model) { model.piece("c", std::numeric_limits<float>::infinity()); }),
            "spm.model: token 11: the score must be a number, got inf");
  EXPECT_EQ(with([](auto& model) { model.piece("c", 0, 7); }),
            "spm.model: token 11: the type must be from 1 to 6, got 7");
  EXPECT_EQ(with([](auto& model) { model.trainer(3, 5); }),
            "spm.model: model_type must be 1 (unigram), 2 (BPE), 3 (word) or 4 (character), got 5");
  EXPECT_EQ(with([](auto& model) { model.trainer(1, 5); }), "no exception");
  EXPECT_EQ(with([](auto& model) { model.normalizer(3, "x"); }),
            "spm.model: must be a model of sentencepiece, got field 3 must hold an integer, got wire type 2");
  EXPECT_EQ(
      with([](auto& model) { model.normalizer(2, "x"); }),
      "spm.model: precompiled_charsmap: must begin with the size of its double array, got 0 in 1 bytes");
  EXPECT_EQ(with([](auto& model) { model.denormalizer(2, "x"); }),
            "spm.model: denormalizer_spec must have no map of characters");
  EXPECT_EQ(with([](auto& model) { model.trainer(3, 2); }, {{"tokenizer_class", "T5Tokenizer"}}),
            "spm.model: model_type must be 1 (unigram) for T5Tokenizer, got 2");
  EXPECT_EQ(
      refused(with_texts(), {{"tokenizer_class", "LlamaTokenizer"}}),
      "tokenizer_config.json: tokenizer_class must be one of XLMRobertaTokenizer, CamembertTokenizer, "
      "DebertaV2Tokenizer, AlbertTokenizer, T5Tokenizer without a tokenizer.json, got \"LlamaTokenizer\"");
  EXPECT_EQ(refused(with_texts(), {{"tokenizer_class", "T5Tokenizer"}, {"extra_ids", -1}}),
            "tokenizer_config.json: extra_ids must be a whole number from 0 to 100000, got -1");
  EXPECT_EQ(refused(with_texts(), {{"tokenizer_class", "DebertaV2Tokenizer"}, {"split_by_punct", true}}),
            "tokenizer_config.json: split_by_punct must be false without a tokenizer.json, got true");
  const TemporaryFolder folder;
  folder.write("spm.model", with_texts().bytes().substr(0, 40));
  EXPECT_NE(message_of<FileError>([&] {
              Tokenizer::from_folder(folder.path(""));
            }).find("must be a model of sentencepiece"),
            std::string::npos);
}

}  // namespace sentence_piece_test
