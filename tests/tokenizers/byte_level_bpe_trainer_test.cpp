#include <xgrad/tokenizers/byte_level_bpe_trainer.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/base/error.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>
#include <xgrad/tokenizers/tokenizer_files.hpp>

#include "../expect_error.hpp"
#include "../files.hpp"
#include "../temporary_folder.hpp"

namespace byte_level_bpe_trainer_test {

using nlohmann::json;
using xgrad::ValueError;
using xgrad::tokenizers::ByteLevelBpe, xgrad::tokenizers::train_byte_level_bpe, xgrad::tokenizers::Tokenizer;
using xgrad_tests::message_of;

using Texts = std::vector<std::string>;

TEST(ByteLevelBpeTrainerTest, MergesAreTheLibrarys) {
  const json cases =
      json::parse(xgrad_tests::read_bytes(XGRAD_PRETRAINED_DIR "/tokenizers/byte_level_bpe.json"));
  const auto texts = cases.at("texts").get<Texts>();
  for (const json& run : cases.at("runs")) {
    const ByteLevelBpe trained =
        train_byte_level_bpe(texts, {.vocab_size = run.at("vocab_size").get<std::size_t>(),
                                     .min_frequency = run.at("min_frequency").get<std::uint64_t>(),
                                     .add_prefix_space = run.at("add_prefix_space").get<bool>(),
                                     .special_tokens = run.at("special_tokens").get<Texts>()});
    Texts merges;
    for (const auto& [left, right] : trained.merges) merges.push_back(left + " " + right);
    EXPECT_EQ(json(merges), run.at("merges"));
    EXPECT_EQ(trained.vocabulary.size(), run.at("size").get<std::size_t>());
    EXPECT_EQ(json(Texts(trained.vocabulary.begin(), trained.vocabulary.begin() + 4)),
              run.at("first_tokens"));
  }
}

TEST(ByteLevelBpeTrainerTest, MergesTheMostFrequentPairsAndOfEqualOnesTheFirst) {
  // By hand: (a, b) is 4, (Ġ, ab) 3, (Ġab, c) 2.
  const ByteLevelBpe trained = train_byte_level_bpe(Texts{"ab ab", " abc abc"});
  EXPECT_EQ(trained.merges, (std::vector<std::pair<std::string, std::string>>{
                                {"a", "b"}, {"\u0120", "ab"}, {"\u0120ab", "c"}}));
  EXPECT_EQ(trained.vocabulary.size(), 256U + 3U);
  EXPECT_EQ(trained.vocabulary.back(), "\u0120abc");
  EXPECT_TRUE(train_byte_level_bpe(Texts{"ab ab"}, {.vocab_size = 0}).merges.empty());
}

TEST(ByteLevelBpeTrainerTest, WhatIsWrittenIsRead) {
  const Texts texts{"the old house was red", "the old horse was in the house"};
  const ByteLevelBpe trained = train_byte_level_bpe(texts, {.special_tokens = {"<|end|>"}});
  const xgrad_tests::TemporaryFolder folder;
  write_byte_level_bpe(folder.path(""), trained,
                       {.special_tokens = {"<|end|>"}, .end_token = "<|end|>", .max_length = 64});
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path(""));
  EXPECT_EQ(tokenizer.size(), trained.vocabulary.size());
  EXPECT_EQ(tokenizer.max_length(), 64U);
  const auto encoding = tokenizer.encode("the old house<|end|>\u00e9");
  EXPECT_EQ(encoding.ids[0], *tokenizer.token_to_id("the"));
  EXPECT_EQ(tokenizer.decode(encoding.ids, false), "the old house<|end|>\u00e9");
  EXPECT_EQ(tokenizer.decode(encoding.ids), "the old house\u00e9");
  const xgrad_tests::TemporaryFolder other;
  write_byte_level_bpe(other.path(""), trained, {.special_tokens = {"<|end|>"}, .add_prefix_space = true});
  EXPECT_EQ(Tokenizer::from_folder(other.path("")).encode("old").ids, tokenizer.encode(" old").ids);
}

TEST(ByteLevelBpeTrainerTest, TheFileHasWhatOtherReadersNeed) {
  const ByteLevelBpe trained = train_byte_level_bpe(Texts{"ab ab"});
  const xgrad_tests::TemporaryFolder folder;
  write_byte_level_bpe(folder.path(""), trained, {.add_prefix_space = true});
  const json file = json::parse(xgrad_tests::read_bytes(folder.path("tokenizer.json")));
  json model = file.at("model");
  EXPECT_EQ(model.at("vocab").size(), trained.vocabulary.size());
  EXPECT_EQ(model.at("merges"), json(trained.merges));
  model.erase("vocab");
  model.erase("merges");
  // As the library tokenizers writes it.
  EXPECT_EQ(
      model,
      json::parse(R"({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false})"));
  json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", true}};
  EXPECT_EQ(file.at("decoder"), byte_level);
  EXPECT_EQ(file.at("post_processor"), byte_level);
  byte_level["add_prefix_space"] = true;
  EXPECT_EQ(file.at("pre_tokenizer"), byte_level);
  for (const char* name : {"truncation", "padding", "normalizer"})
    EXPECT_TRUE(file.at(name).is_null()) << name;
}

TEST(ByteLevelBpeTrainerTest, RefusesWhatIsNoTextAndNoVocabulary) {
  const auto error = [](const Texts& texts) {
    return message_of<ValueError>([&] { train_byte_level_bpe(texts); });
  };
  EXPECT_EQ(error({}), "train_byte_level_bpe: texts must have words, got none");
  EXPECT_EQ(error({""}), "train_byte_level_bpe: texts must have words, got none");
  EXPECT_EQ(error({"a", "b\xE9"}), "train_byte_level_bpe: texts[1] must be UTF-8, got an invalid byte at 1");
  const ByteLevelBpe trained = train_byte_level_bpe(Texts{"ab ab"});
  const xgrad_tests::TemporaryFolder folder;
  const auto refusal = [&](ByteLevelBpe changed, xgrad::tokenizers::ByteLevelBpeFileOptions options = {}) {
    return message_of<ValueError>([&] { write_byte_level_bpe(folder.path(""), changed, options); });
  };
  ByteLevelBpe changed = trained;
  changed.vocabulary.push_back("ab");
  EXPECT_EQ(refusal(changed),
            "write_byte_level_bpe: tokens must be UTF-8, differ and not be empty, got \"ab\"");
  changed = trained;
  changed.vocabulary.erase(changed.vocabulary.begin());
  EXPECT_EQ(refusal(changed), "write_byte_level_bpe: the vocabulary must have all bytes, got none for \"!\"");
  changed = trained;
  changed.merges.emplace_back("a", "c");
  EXPECT_EQ(refusal(changed),
            "write_byte_level_bpe: the vocabulary must have what merges make, got none for \"ac\"");
  EXPECT_EQ(refusal(trained, {.special_tokens = {"<s>"}}),
            "write_byte_level_bpe: the vocabulary must have the special tokens, got none for \"<s>\"");
  EXPECT_EQ(refusal(trained, {.end_token = "a"}),
            "write_byte_level_bpe: end_token must be one of special_tokens, got \"a\"");
}

}  // namespace byte_level_bpe_trainer_test
