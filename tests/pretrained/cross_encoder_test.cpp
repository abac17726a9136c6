#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"
#include "../program.hpp"
#include "folder.hpp"

namespace cross_encoder_test {

using namespace xgrad::pretrained;
using nlohmann::json;
using xgrad::Array, xgrad::FileError, xgrad::ValueError;
using xgrad_tests::FolderCopy, xgrad_tests::message_of, xgrad_tests::output_of, xgrad_tests::read_bytes;

using Texts = std::vector<std::string>;

/// A classifier of one label, for the files that name its activation function.
class CrossEncoderTest : public testing::Test {
 protected:
  CrossEncoderTest() : copy_("bert_sentence") {
    const auto model =
        SequenceClassifier<float>::from_folder(copy_.path(), {.labels = Texts{"score"}, .note = ignore});
    for (const char* file : {"modules.json", "sentence_bert_config.json"})
      std::filesystem::remove(copy_.path(file));
    save_folder(model, copy_.path());
  }

  static void ignore(const std::string&) {}

  CrossEncoder<double> load() const { return CrossEncoder<double>::from_folder(copy_.path()); }

  /// What the function makes of the logit of a pair, with the logit in front.
  std::pair<double, double> score() const {
    const CrossEncoder<double> encoder = load();
    const Batch batch = encode(encoder.tokenizer(), Texts{"my feet"}, Texts{"the old house"});
    return {encoder.classifier()(batch).value()(0, 0), encoder.scores(batch).value()(0, 0)};
  }

  void expect_sigmoid() const {
    const auto [logit, got] = score();
    EXPECT_DOUBLE_EQ(got, 1 / (1 + std::exp(-logit)));
  }
  void expect_identity() const {
    const auto [logit, got] = score();
    EXPECT_EQ(got, logit);
  }
  void expect_tanh() const {
    const auto [logit, got] = score();
    EXPECT_DOUBLE_EQ(got, std::tanh(logit));
  }

  FolderCopy copy_;
};

TEST_F(CrossEncoderTest, TheNewestFileNamesTheFunction) {
  expect_sigmoid();
  copy_.configure([](json& config) {
    config["sbert_ce_default_activation_function"] = "torch.nn.modules.linear.Identity";
  });
  expect_identity();
  copy_.configure([](json& config) {
    config["sentence_transformers"] = {{"activation_fn", "torch.nn.modules.activation.Tanh"}};
  });
  expect_tanh();
  copy_.write("config_sentence_transformers.json", R"({"activation_fn": null})");
  expect_tanh();
  copy_.write("config_sentence_transformers.json",
              R"({"activation_fn": "torch.nn.modules.activation.Sigmoid"})");
  expect_sigmoid();
  copy_.write("config_sentence_transformers.json", R"({"activation_fn": "os.system"})");
  EXPECT_EQ(message_of<FileError>([&] { load(); }),
            copy_.path("config_sentence_transformers.json") +
                ": activation_fn must be one of torch.nn's ELU, GELU, Identity, LeakyReLU, LogSigmoid, ReLU, "
                "SiLU, Sigmoid, Softplus, Tanh, got \"os.system\"");
}

TEST_F(CrossEncoderTest, SeveralLabelsHaveTheirLogits) {
  const auto encoder = CrossEncoder<double>::from_folder(xgrad_tests::model_folder("bert_classifier"));
  const Batch batch = encode(encoder.tokenizer(), Texts{"my feet"}, Texts{"the old house"});
  xgrad_tests::expect_same_bits(encoder.scores(batch).value(), encoder.classifier()(batch).value());
  EXPECT_EQ(message_of<ValueError>([&] { encoder.rank("a", Texts{"b"}); }),
            "CrossEncoder: rank needs a model of one label, got 3");
}

TEST_F(CrossEncoderTest, OrderAndBatchesDoNotMatter) {
  const CrossEncoder<double> encoder = load();
  const Texts texts{"my shoes", "a", "the old house was red", ""},
      seconds{"feet", "the smallest shoe of", "", "is it?"};
  const Array<double> all = encoder(texts, seconds);
  ASSERT_EQ(xgrad::to_string(all.shape()), "(4, 1)");
  EXPECT_LT(xt::amax(xt::abs(Array<double>(encoder(texts, seconds, {.batch_size = 1}) - all)))(), 1e-14);
  std::vector<std::size_t> done;
  encoder(texts, seconds, {.batch_size = 3, .progress = [&](std::size_t some) { done.push_back(some); }});
  EXPECT_EQ(done, (std::vector<std::size_t>{3, 4}));
  EXPECT_EQ(xgrad::to_string(encoder(Texts(), Texts()).shape()), "(0, 1)");
  EXPECT_EQ(message_of<ValueError>([&] { encoder(texts, Texts{"a"}); }),
            "CrossEncoder: there must be as many second texts as texts, got 1 and 4");
  EXPECT_EQ(message_of<ValueError>([&] { encoder(Texts{"a"}, texts); }),
            "CrossEncoder: there must be as many second texts as texts, got 4 and 1");
  EXPECT_EQ(message_of<ValueError>([&] { encoder(texts, seconds, {.batch_size = 0}); }),
            "CrossEncoder: batch_size must be at least 1, got 0");

  const auto ranked = encoder.rank("my feet", texts);
  const Array<double> scores = encoder(Texts(4, "my feet"), texts);
  ASSERT_EQ(ranked.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(ranked[i].second, scores(ranked[i].first, 0), 1e-14);
    EXPECT_LE(ranked[i].second, ranked[i == 0 ? 0 : i - 1].second);
  }
}

TEST_F(CrossEncoderTest, PromptsGoBeforeFirstTexts) {
  copy_.write("config_sentence_transformers.json",
              R"({"prompts": {"q": "read: "}, "default_prompt_name": "q"})");
  const CrossEncoder<double> encoder = load();
  const Texts texts{"my feet"}, seconds{"the old house"};
  xgrad_tests::expect_same_bits(encoder(texts, seconds),
                                encoder(Texts{"read: my feet"}, seconds, {.prompt = ""}));
  EXPECT_EQ(message_of<ValueError>([&] { encoder(texts, seconds, {.prompt_name = "p"}); }),
            "CrossEncoder: prompt_name must be one of q, got \"p\"");
}

TEST_F(CrossEncoderTest, IsSavedWithAllFiles) {
  const std::string config = R"({"activation_fn": "torch.nn.modules.linear.Identity"})",
                    modules = R"([{"type": "x.Transformer", "path": ""}])";
  copy_.write("config_sentence_transformers.json", config);
  copy_.write("modules.json", modules);
  copy_.write("sentence_bert_config.json", R"({"max_seq_length": 7})");
  const CrossEncoder<double> encoder = load();
  EXPECT_EQ(encoder.max_length(), 7U);
  const xgrad_tests::TemporaryFolder folder;
  encoder.save(folder.path("saved"));
  EXPECT_EQ(read_bytes(folder.path("saved/config_sentence_transformers.json")), config);
  EXPECT_EQ(read_bytes(folder.path("saved/modules.json")), modules);
  const auto again = CrossEncoder<double>::from_folder(folder.path("saved"));
  const Texts texts{"my feet are big"}, seconds{"the old house"};
  xgrad_tests::expect_same_bits(again(texts, seconds), encoder(texts, seconds));
}

TEST_F(CrossEncoderTest, RefusesOtherModules) {
  copy_.write("modules.json", R"([{"type": "x.Transformer"}, {"type": "x.Dense"}])");
  EXPECT_EQ(message_of<FileError>([&] { load(); }),
            copy_.path("modules.json") + ": must list Transformer alone, as other modules are not supported");
  copy_.write("modules.json", R"([{"type": "x.BoW"}])");
  EXPECT_EQ(message_of<FileError>([&] { load(); }),
            copy_.path("modules.json") + ": [0].type must be Transformer, got \"x.BoW\"");
}

TEST_F(CrossEncoderTest, AScoreThatIsNoNumberIsAnError) {
  const std::string weights = copy_.path("model.safetensors");
  xgrad::StateDict<float> state = xgrad::load_safetensors<float>(weights);
  for (auto& [name, array] : state) {  // scores of the attention are infinite
    if (name.find(".query.") != name.npos || name.find(".key.") != name.npos) array *= 1e25F;
  }
  xgrad::save_safetensors(state, weights);
  EXPECT_EQ(xgrad_tests::error_of("rerank " + copy_.path() + " 'my feet' feet"),
            "rerank: " + copy_.path() + ": scores must be numbers, got nan\n");
}

TEST_F(CrossEncoderTest, ProgramsTakePairs) {
  const std::string folder = copy_.path();
  const auto encoder = CrossEncoder<float>::from_folder(folder);
  const Texts texts{"the old house", "big shoes", "feet"};
  std::string want;
  for (const auto& [i, score] : encoder.rank("my feet", texts)) {
    char number[32];
    std::snprintf(number, sizeof number, "%.6f\t", double{score});
    want += number + texts[i] + "\n";
  }
  EXPECT_EQ(output_of("rerank " + folder + " 'my feet' 'the old house' 'big shoes' feet"), want);
  EXPECT_EQ(output_of("rerank --top 1 " + folder + " 'my feet' 'the old house' 'big shoes' feet"),
            want.substr(0, want.find('\n') + 1));
  EXPECT_EQ(output_of("rerank " + folder + " 'my feet' </dev/null"), "");

  // One label has a probability, if it is no number.
  const auto classified = [&](const std::string& more) { return output_of("classify " + folder + more); };
  const auto logit = [&] {
    const Batch batch = encode(encoder.tokenizer(), Texts{"my feet"}, Texts{"feet"});
    return double{encoder.classifier()(batch).value()(0, 0)};
  };
  char probability[32], number[32];
  std::snprintf(probability, sizeof probability, "score %.4f", 1 / (1 + std::exp(-logit())));
  std::snprintf(number, sizeof number, "score %.4f", logit());
  EXPECT_EQ(classified(" --pairs \"$(printf 'my feet\\tfeet')\""),
            probability + std::string("\tmy feet\tfeet\n"));
  EXPECT_EQ(classified(" --second feet 'my feet'"), probability + std::string("\tmy feet\n"));
  copy_.configure([](json& config) { config["problem_type"] = "regression"; });
  EXPECT_EQ(classified(" --second feet 'my feet'"), number + std::string("\tmy feet\n"));
  copy_.configure([](json& config) { config["problem_type"] = "single_label_classification"; });
  EXPECT_EQ(classified(" --second feet 'my feet'"), probability + std::string("\tmy feet\n"));
  EXPECT_EQ(xgrad_tests::error_of("classify " + folder + " --pairs 'my feet'"),
            "classify: a pair must be a text, a tab and a text, got \"my feet\"\n");
  EXPECT_EQ(
      xgrad_tests::error_of("classify " + xgrad_tests::model_folder("distilbert_tokens") + " --second a b"),
      "classify: " + xgrad_tests::model_folder("distilbert_tokens") + ": labels words, not pairs of texts\n");
}

}  // namespace cross_encoder_test
