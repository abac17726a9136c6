// The model of train_gpt: its tokens, what it computes and draws, and its file.

#include "../../apps/models/text_model.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"
#include "files.hpp"

namespace text_model_test {

using apps::TextModel, apps::TextTokens;
using xgrad_tests::message_of;

TextModel model_of(const std::string& text, std::size_t context = 6) {
  xgrad::manual_seed(1);
  return TextModel(TextTokens::of_characters(text), context,
                   {.d_model = 64, .heads = 2, .d_ff = 128, .layers = 2});
}

TEST(TextTokensTest, AreTheCharactersInTheirOrder) {
  const TextTokens tokens = TextTokens::of_characters("b 猫a\nb");
  EXPECT_EQ(tokens.size(), 5u);
  EXPECT_EQ(tokens.ids("\n abb猫"), (std::vector<std::int64_t>{0, 1, 2, 3, 3, 4}));
  EXPECT_EQ(tokens.text({4, 0, 2}), "猫\na");
  EXPECT_EQ(tokens.labels(), (std::vector<std::string>{"↵", "␣", "a", "b", "猫"}));
  EXPECT_EQ(message_of<std::invalid_argument>([&] { tokens.ids("abc"); }),
            "the text that the model learns has no character \"c\"");
  EXPECT_EQ(message_of<std::invalid_argument>([&] { tokens.ids("caf\xE9"); }),
            "characters: word must be valid UTF-8, got \"caf\\xE9\"");
}

TEST(TextTokensTest, MayBeBytePairs) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "the cat sat on the mat.\n";
  const TextTokens tokens = TextTokens::of_byte_pairs(text, 265);
  EXPECT_EQ(tokens.size(), 265u);
  EXPECT_STREQ(tokens.name(), "tokens");
  const std::vector<std::int64_t> ids = tokens.ids("the 猫 sat\n");
  EXPECT_LT(ids.size(), 12u);
  EXPECT_EQ(tokens.text(ids), "the 猫 sat\n") << "also with bytes that were not in the text";
  const std::vector<std::int64_t> cat = tokens.ids("猫");
  ASSERT_EQ(cat.size(), 3u);
  const TextTokens::Stream stream = tokens.stream();
  EXPECT_EQ(stream(cat[0]), "");
  EXPECT_EQ(stream(cat[1]), "");
  EXPECT_EQ(stream(cat[2]), "猫");
  EXPECT_EQ(tokens.text({cat[0], cat[1]}), "") << "a part of a character is not shown";
  const std::vector<std::string> labels = tokens.labels();
  EXPECT_TRUE(std::find(labels.begin(), labels.end(), "␣the") != labels.end());
  EXPECT_TRUE(std::find(labels.begin(), labels.end(), "↵") != labels.end());
}

TEST(TextModelTest, StartsAsGpt2) {
  const TextModel made = model_of("abcdefghijklmnopqrstuvwxyz", 64);
  std::size_t residuals = 0, zeros = 0;
  for (const auto& [name, parameter] : made.model().named_parameters()) {
    const xgrad::Array<float>& values = parameter.value();
    double squares = 0;
    for (const float value : values) squares += std::pow(static_cast<double>(value), 2);
    const double size = std::sqrt(squares / static_cast<double>(values.size()));
    if (values.dimension() == 1) {
      EXPECT_EQ(size, name.ends_with("bias") ? 0 : 1) << name;
      zeros += size == 0 ? 1 : 0;
    } else if (name.ends_with("out_proj.weight") || name.ends_with("linear2.weight")) {
      EXPECT_NEAR(size, 0.01, 0.0005) << name << ": a half for two layers";
      ++residuals;
    } else {
      EXPECT_NEAR(size, 0.02, 0.001) << name;
    }
  }
  EXPECT_EQ(residuals, 4u);
  EXPECT_EQ(zeros, 10u) << "of three norms and two matrices a layer, of the last norm and of the head";
  const auto& layers = made.model().config().layers;
  EXPECT_TRUE(layers.norm_first && layers.is_causal);
  EXPECT_EQ(layers.activation, xgrad::Activation::gelu);
}

TEST(TextModelTest, ItsLossIsThatOfTheNextTokens) {
  const TextModel made = model_of("abcd");
  const xgrad::Ids windows{{0, 1, 2}, {3, 3, 1}};
  const xgrad::Array<float> log_probabilities =
      log_softmax(made.model().token_logits(xgrad::Ids{{0, 1}, {3, 3}})).value();
  const float expected = -(log_probabilities(0, 0, 1) + log_probabilities(0, 1, 2) +
                           log_probabilities(1, 0, 3) + log_probabilities(1, 1, 1));
  EXPECT_NEAR(made.loss(windows).item(), expected, 1e-5);
}

TEST(TextModelTest, ItsLossMayBeginLater) {
  const TextModel made = model_of("abcd");
  const xgrad::Ids window{{0, 1, 2, 3}};
  EXPECT_NEAR(made.loss(window, 3).item() + made.loss(xgrad::Ids{{0, 1, 2}}).item(), made.loss(window).item(),
              1e-5);
}

class TextModelFileTest : public testing::Test {
 protected:
  TextModelFileTest() { made_.save(path_); }

  /// What loading says of the file with another value in its metadata; without it if that is null.
  std::string error_with(const std::string& key, const char* value) const {
    xgrad::Metadata metadata = xgrad::SafetensorsFile(path_).metadata();
    metadata.erase(key);
    if (value != nullptr) metadata[key] = value;
    const std::string changed = folder_.path("changed");
    save_safetensors(made_.model().state_dict(), changed, metadata);
    const std::string text = message_of<xgrad::FileError>([&] { TextModel::load(changed); });
    return text.substr(std::min(changed.size(), text.size()));
  }

  xgrad_tests::TemporaryFolder folder_;
  const std::string path_ = folder_.path("model");
  const TextModel made_ = model_of("a 猫\n");
};

TEST_F(TextModelFileTest, GivesTheSameModel) {
  const TextModel loaded = TextModel::load(path_);
  EXPECT_EQ(loaded.model().state_dict(), made_.model().state_dict());
  EXPECT_FALSE(loaded.model().training());
  EXPECT_EQ(loaded.tokens().ids("a 猫\n"), made_.tokens().ids("a 猫\n"));
  const xgrad::Ids ids{{0, 1, 2, 3, 0, 1}};
  EXPECT_EQ(loaded.model().token_logits(ids).value(), made_.model().token_logits(ids).value());
}

TEST_F(TextModelFileTest, RefusesAFileThatIsNotItsOwn) {
  EXPECT_EQ(error_with("task", "tags"), ": the metadata \"task\" must be 'text'");
  EXPECT_EQ(error_with("context", "4097"), ": the metadata \"context\" must be a number of at most 4096");
  EXPECT_EQ(error_with("characters", ""), ": the metadata \"characters\" must be text in UTF-8");
  EXPECT_EQ(error_with("characters", nullptr), ": the metadata \"characters\" must be there");
  EXPECT_NE(error_with("characters", "abc").find("token_embedding.weight"), std::string::npos);
  EXPECT_NE(error_with("context", "5").find("position_embedding"), std::string::npos);
}

TEST_F(TextModelFileTest, HasTokensOfBytePairs) {
  const TextTokens tokens = TextTokens::of_byte_pairs("the cat the cat the cat\n", 260);
  xgrad::manual_seed(1);
  const TextModel saved(tokens, 4, {.d_model = 8, .heads = 2, .d_ff = 8, .layers = 1});
  saved.save(path_);
  const TextModel loaded = TextModel::load(path_);
  EXPECT_EQ(loaded.tokens().size(), 260u);
  EXPECT_EQ(loaded.tokens().ids("the cat 猫\n"), tokens.ids("the cat 猫\n"));
  EXPECT_EQ(loaded.model().state_dict(), saved.model().state_dict());
  EXPECT_EQ(error_with("merges", "ab\n"), ": the metadata \"merges\" must be two tokens a line");
  EXPECT_TRUE(
      error_with("merges", "a q\n")
          .starts_with(": the metadata \"vocabulary\" must be of byte pair encoding: write_byte_level_bpe: "))
      << error_with("merges", "a q\n");
  EXPECT_EQ(error_with("vocabulary", nullptr), ": the metadata \"vocabulary\" must be there");
}

TEST_F(TextModelFileTest, ASmallFileDoesNotAskForMuchMemory) {
  std::size_t held = 0;
  for (const auto& [name, array] : made_.model().state_dict()) held += array.size();
  EXPECT_EQ(error_with("context", "4096"),
            ": the tables of the metadata's tokens and of its \"context\" have at least " +
                std::to_string(64 * (4096 + 2 * 4)) + " weights, got a file with " + std::to_string(held));
  EXPECT_TRUE(error_with("layers", "64").starts_with(": a layer of the metadata's")) << "of what it has";
}

}  // namespace text_model_test
