#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>

#include "../expect_error.hpp"
#include "folder.hpp"

namespace {

using namespace xgrad::pretrained;
using xgrad::Array, xgrad::FileError;
using xgrad_tests::FolderCopy, xgrad_tests::message_of, xgrad_tests::model_folder, xgrad_tests::read_bytes;

const std::vector<std::string> sentences{"the old house", "a", "my shoes are small, my feet are big", ""};

TEST(SentenceEmbedderTest, OrderAndBatchesDoNotMatter) {
  const auto embedder = SentenceEmbedder<double>::from_folder(model_folder("bert_sentence"));
  EXPECT_EQ(embedder.max_length(), 16U);
  EXPECT_EQ(embedder.pooling(), Pooling::mean);
  EXPECT_TRUE(embedder.normalizes());
  const Array<double> all = embedder(sentences);
  ASSERT_EQ(xgrad::to_string(all.shape()), "(4, 32)");
  for (const std::size_t batch_size : {std::size_t{1}, std::size_t{3}}) {
    const Array<double> difference = xt::abs(embedder(sentences, batch_size) - all);
    EXPECT_LT(xt::amax(difference)(), 1e-14);
  }
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    double squares = 0;
    for (std::size_t k = 0; k < 32; ++k) squares += all(i, k) * all(i, k);
    EXPECT_NEAR(squares, 1, 1e-14);
  }
  EXPECT_EQ(xgrad::to_string(embedder(std::vector<std::string>()).shape()), "(0, 32)");
  const std::vector<std::string> padded{"  the old house\u3000\n"};
  xgrad_tests::expect_same_bits(embedder(padded), embedder(std::vector<std::string>{"the old house"}));
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { embedder(sentences, 0); }),
            "SentenceEmbedder: batch_size must be at least 1, got 0");
}

TEST(SentenceEmbedderTest, PoolsTheFirstTokenIfAsked) {
  const FolderCopy copy("bert_sentence");
  copy.write("1_Pooling/config.json",
             R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  copy.write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                                 {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  const auto embedder = SentenceEmbedder<double>::from_folder(copy.path());
  EXPECT_FALSE(embedder.normalizes());
  const Batch batch = embedder.tokenizer().encode(sentences, {.max_length = 16});
  const Array<double> hidden = embedder.encoder()(batch).last_hidden_state.value();
  const Array<double> vectors = embedder(sentences, 4);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    for (std::size_t k = 0; k < 32; ++k) EXPECT_NEAR(vectors(i, k), hidden(i, 0, k), 1e-14);
  }
}

TEST(SentenceEmbedderTest, IsSavedWithAllFiles) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string original = model_folder("bert_sentence"), saved = folder.path("saved");
  const auto embedder = SentenceEmbedder<float>::from_folder(original);
  embedder.save(saved);
  for (const std::string file : {"modules.json", "sentence_bert_config.json", "1_Pooling/config.json",
                                 "tokenizer.json", "tokenizer_config.json", "vocab.txt"})
    EXPECT_TRUE(read_bytes(saved + "/" + file) == read_bytes(original + "/" + file)) << file;
  xgrad_tests::expect_same_bits(SentenceEmbedder<float>::from_folder(saved)(sentences), embedder(sentences));
  EXPECT_EQ(message_of<FileError>([&] { embedder.save(saved + "/vocab.txt"); }),
            saved + "/vocab.txt: cannot be made a folder: Not a directory");
}

TEST(SentenceEmbedderTest, RefusesModulesThatAreNotBuilt) {
  const FolderCopy copy("bert_sentence");
  const auto refusal = [&] {
    return message_of<FileError>([&] { SentenceEmbedder<float>::from_folder(copy.path()); });
  };
  const std::string pooling = copy.path("1_Pooling/config.json");
  copy.write("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})");
  EXPECT_EQ(refusal(), pooling +
                           ": pooling_mode_max_tokens must be false, as only the mean and the class token "
                           "are supported, got true");
  copy.write("1_Pooling/config.json",
             R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})");
  EXPECT_EQ(
      refusal(),
      pooling +
          ": pooling_mode_mean_tokens must be the only pooling mode, as several modes are not supported, "
          "got true");
  copy.write("1_Pooling/config.json", "{}");
  EXPECT_EQ(refusal(), pooling + ": pooling_mode_mean_tokens or pooling_mode_cls_token must be true");
  copy.write("modules.json", R"([{"type": "x.Transformer"}, {"type": "x.Dense"}])");
  EXPECT_EQ(refusal(),
            copy.path("modules.json") +
                ": [1].type must be Transformer, Pooling or Normalize, in this order, got \"x.Dense\"");
  copy.write("modules.json", R"([{"type": "x.Transformer"}, {"type": "x.Pooling", "path": "../x"}])");
  EXPECT_EQ(refusal(),
            copy.path("modules.json") + ": [1].path must be a folder inside this one, got \"../x\"");
  copy.write("modules.json", R"([{"type": "x.Transformer"}])");
  copy.write("sentence_bert_config.json", R"({"max_seq_length": 0})");
  EXPECT_EQ(refusal(), copy.path("sentence_bert_config.json") +
                           ": max_seq_length must be a whole number from 1 to 1073741824, got 0");
}

}  // namespace
