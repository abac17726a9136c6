#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"
#include "folder.hpp"

namespace batch_test {

using namespace xgrad::pretrained;
using xgrad::Ids, xgrad::tokenizers::Encoding, xgrad::tokenizers::Tokenizer;

TEST(BatchTest, IsPaddedToTheLongest) {
  const auto tokenizer = Tokenizer::from_folder(xgrad_tests::model_folder("bert_sentence"));
  const std::vector<std::string> texts{"the old house", "red"}, seconds{"red", "red red"};
  const std::vector<Encoding> rows = tokenizer.pad(tokenizer.encode(texts));
  const std::size_t length = rows[0].size();
  ASSERT_GT(length, 3U);

  const Batch batch = encode(tokenizer, texts);
  ASSERT_EQ(batch.input_ids.shape(), (xgrad::Shape{2, length}));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(batch.encodings[i].ids, rows[i].ids);
    for (std::size_t k = 0; k < length; ++k) {
      EXPECT_EQ(batch.input_ids(i, k), rows[i].ids[k]);
      EXPECT_EQ((*batch.attention_mask)(i, k), rows[i].attention_mask[k]);
      EXPECT_EQ((*batch.token_type_ids)(i, k), rows[i].type_ids[k]);
    }
  }

  const Batch pairs = encode(tokenizer, texts, seconds, {.max_length = 6});
  const std::vector<Encoding> pair_rows = tokenizer.pad(tokenizer.encode(texts, seconds, {.max_length = 6}));
  EXPECT_EQ(pairs.input_ids, pad(tokenizer, pair_rows).input_ids);
  EXPECT_EQ((*pairs.token_type_ids)(0, 5), 1);

  const Batch none = encode(tokenizer, std::vector<std::string>());
  EXPECT_EQ(xgrad::to_string(none.input_ids.shape()), "(0, 0)");
  EXPECT_TRUE(none.encodings.empty());
  EXPECT_EQ(
      xgrad_tests::message_of<xgrad::ShapeError>(
          [&] { encode(tokenizer, texts, {}, {.padding = xgrad::tokenizers::Padding::do_not_pad}); }),
      "pad: encodings of a batch must have one length, got " + std::to_string(length) + " and 3 tokens");
}

/// A folder whose padding_side is left.
struct PaddedAtTheLeft : xgrad_tests::FolderCopy {
  explicit PaddedAtTheLeft(const std::string& name) : FolderCopy(name) {
    auto config = nlohmann::json::parse(xgrad_tests::read_bytes(path("tokenizer_config.json")));
    config["padding_side"] = "left";
    write("tokenizer_config.json", config.dump());
  }
};

TEST(BatchTest, ATextHasTheHiddenStatesThatItHasAlone) {
  const std::vector<std::string> texts{"red", "my shoes are small, my feet are big", "the old house"};
  for (const char* const name :
       {"bert_sentence", "distilbert_qa", "electra_discriminator", "mpnet_mlm", "roberta_mlm"}) {
    const PaddedAtTheLeft copy(name);
    const auto tokenizer = Tokenizer::from_folder(copy.path());
    EXPECT_EQ(tokenizer.pad(tokenizer.encode(texts))[0].attention_mask[0], 0) << "left by itself";
    const auto encoder = Encoder<double>::from_folder(copy.path());
    const auto together = encoder(encode(tokenizer, texts)).last_hidden_state.value();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto alone = encoder(encode(tokenizer, std::vector{texts[i]})).last_hidden_state.value();
      for (std::size_t k = 0; k < alone.shape()[1]; ++k)
        for (std::size_t j = 0; j < alone.shape()[2]; ++j)
          EXPECT_NEAR(together(i, k, j), alone(0, k, j), 1e-12) << name << ", " << texts[i];
    }
  }
  const PaddedAtTheLeft copy("bert_sentence");
  const auto tokenizer = Tokenizer::from_folder(copy.path());
  EXPECT_EQ((*encode(tokenizer, texts).attention_mask)(0, 0), 1);
  const Batch left = encode(tokenizer, texts, {}, {.padding_side = xgrad::tokenizers::Side::left});
  EXPECT_EQ((*left.attention_mask)(0, 0), 0) << "where it is asked for";
}

TEST(BatchTest, VectorsAndScoresDoNotDependOnTheBatch) {
  const std::vector<std::string> texts{"red", "my shoes are small, my feet are big", "the old house"};
  for (const char* const name : {"bert_sentence", "st_all_modes", "st_prompt_left_out_cls"}) {
    const PaddedAtTheLeft copy(name);
    const auto embedder = SentenceEmbedder<double>::from_folder(copy.path());
    const auto reference = SentenceEmbedder<double>::from_folder(xgrad_tests::model_folder(name));
    const xgrad::Array<double> together = embedder(texts), expected = reference(texts, {.batch_size = 1});
    for (std::size_t i = 0; i < together.size(); ++i)
      EXPECT_NEAR(together.data()[i], expected.data()[i], 1e-12) << name;
  }
}

TEST(BatchTest, AllIdsMustBeInTheVocabulary) {
  const auto tokenizer = Tokenizer::from_folder(xgrad_tests::model_folder("bert_sentence"));
  const std::int64_t largest = tokenizer.largest_id();
  Config config = Config::of(Family::bert);
  config.vocab_size = static_cast<std::size_t>(largest) + 1;
  EXPECT_NO_THROW(check_vocabulary(tokenizer, config, "folder"));
  --config.vocab_size;
  EXPECT_EQ(xgrad_tests::message_of<xgrad::FileError>([&] { check_vocabulary(tokenizer, config, "folder"); }),
            "folder: the tokenizer's ids must be below vocab_size in config.json, " +
                std::to_string(largest) + ", got " + std::to_string(largest) + " of \"" +
                tokenizer.token(largest) + '"');
}

}  // namespace batch_test
