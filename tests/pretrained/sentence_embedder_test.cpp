#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../expect_error.hpp"
#include "../torch_writer.hpp"
#include "folder.hpp"

namespace sentence_embedder_test {

using namespace xgrad::pretrained;
using xgrad::Array, xgrad::FileError;
using xgrad_tests::FolderCopy, xgrad_tests::message_of, xgrad_tests::model_folder, xgrad_tests::read_bytes;

const std::vector<std::string> sentences{"the old house", "a", "my shoes are small, my feet are big", ""};

TEST(SentenceEmbedderTest, OrderAndBatchesDoNotMatter) {
  const auto embedder = SentenceEmbedder<double>::from_folder(model_folder("bert_sentence"));
  EXPECT_EQ(embedder.max_length(), 16U);
  EXPECT_EQ(embedder.poolings(), std::vector{Pooling::mean});
  EXPECT_EQ(embedder.size(), 32U);
  const Array<double> all = embedder(sentences);
  ASSERT_EQ(xgrad::to_string(all.shape()), "(4, 32)");
  for (const std::size_t batch_size : {std::size_t{1}, std::size_t{3}}) {
    const Array<double> difference = xt::abs(embedder(sentences, {.batch_size = batch_size}) - all);
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
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { embedder(sentences, {.batch_size = 0}); }),
            "SentenceEmbedder: batch_size must be at least 1, got 0");
}

TEST(SentenceEmbedderTest, RefusesATokenizerWithMoreTokensThanTheModel) {
  const FolderCopy copy("bert_sentence");
  auto tokenizer = nlohmann::json::parse(read_bytes(copy.path("tokenizer.json")));
  tokenizer["model"]["vocab"]["zebra"] = 4000;
  copy.write("tokenizer.json", tokenizer.dump());
  EXPECT_EQ(message_of<FileError>([&] { SentenceEmbedder<float>::from_folder(copy.path()); }),
            copy.path() +
                ": the tokenizer's ids must be below vocab_size in config.json, 110, got 4000 of "
                "\"zebra\"");
}

TEST(SentenceEmbedderTest, SavingLeavesNoFileOfAnotherTokenizer) {
  const xgrad_tests::TemporaryFolder folder;
  const auto embedder = SentenceEmbedder<float>::from_folder(model_folder("bert_sentence"));
  for (const std::string name : {"merges.txt", "config_sentence_transformers.json"}) {
    const std::string path = folder.write(name, "other");
    EXPECT_EQ(
        message_of<FileError>([&] { embedder.save(folder.path("")); }),
        folder.path("") + "/" + name +
            ": is of another model, and would stay beside the saved files and be read with them; remove "
            "it, or save to another folder");
    EXPECT_EQ(folder.file_count(), 1u);
    std::filesystem::remove(path);
  }
}

TEST(SentenceEmbedderTest, PoolsTheFirstTokenIfAsked) {
  const FolderCopy copy("bert_sentence");
  copy.write("1_Pooling/config.json",
             R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  copy.write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                                 {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  const auto embedder = SentenceEmbedder<double>::from_folder(copy.path());
  EXPECT_EQ(embedder.poolings(), std::vector{Pooling::cls_token});
  const Batch batch = encode(embedder.tokenizer(), sentences, {.max_length = 16});
  const Array<double> hidden = embedder.encoder()(batch).last_hidden_state.value();
  const Array<double> vectors = embedder(sentences, {.batch_size = 4});
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    for (std::size_t k = 0; k < 32; ++k) EXPECT_NEAR(vectors(i, k), hidden(i, 0, k), 1e-14);
  }
}

TEST(SentenceEmbedderTest, PoolsTheMeanIfNothingIsAsked) {
  const FolderCopy copy("bert_sentence");
  copy.write("1_Pooling/config.json", "{}");
  EXPECT_EQ(SentenceEmbedder<double>::from_folder(copy.path()).poolings(), std::vector{Pooling::mean});
}

TEST(SentenceEmbedderTest, TellsThatAnAbsentFlagOfTheMeanCountsAsFalse) {
  const FolderCopy copy("bert_sentence");
  copy.write("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})");
  std::vector<std::string> notes;
  const auto embedder = SentenceEmbedder<double>::from_folder(
      copy.path(), {.note = [&](const std::string& note) { notes.push_back(note); }});
  EXPECT_EQ(embedder.poolings(), std::vector{Pooling::max});
  EXPECT_EQ(notes, std::vector{copy.path() +
                               "/1_Pooling/config.json: without pooling_mode_mean_tokens the mean is not "
                               "taken, as in sentence-transformers 6; earlier versions took it, too"});
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

TEST(SentenceEmbedderTest, ModulesAreTrainedAndSaved) {
  const std::string original = model_folder("st_dense_identity");
  const xgrad_tests::TemporaryFolder folder;
  const auto embedder = SentenceEmbedder<float>::from_folder(original);
  embedder.save(folder.path("same"));
  for (const std::string file :
       {"2_Dense/model.safetensors", "3_Dense/model.safetensors", "2_Dense/config.json",
        "4_LayerNorm/model.safetensors", "4_LayerNorm/config.json", "modules.json"})
    EXPECT_TRUE(read_bytes(folder.path("same/" + file)) == read_bytes(original + "/" + file)) << file;

  std::vector<std::string> names;
  for (const auto& [name, parameter] : embedder.trainable_parameters()) names.push_back(name);
  const std::vector<std::string> of_modules{"2.linear.weight", "2.linear.bias", "3.linear.weight",
                                            "4.norm.weight", "4.norm.bias"};
  ASSERT_EQ(names.size(), embedder.encoder().named_parameters().size() + of_modules.size());
  EXPECT_TRUE(std::equal(of_modules.rbegin(), of_modules.rend(), names.rbegin()));
  const Array<float> before = embedder(sentences);
  xgrad::AdamW<float> optimizer(decay_groups(embedder.trainable_parameters(), {.lr = 0.1}));
  const Batch batch = encode(embedder.tokenizer(), sentences, {.max_length = embedder.max_length()});
  xgrad::sum(xgrad::select(embedder.embed(batch), 1, 0)).backward();
  optimizer.step();
  const Array<float> after = embedder(sentences);
  EXPECT_GT(xt::amax(xt::abs(after - before))(), 1e-3F);
  embedder.save(folder.path("trained"));
  for (const std::string file : {"2_Dense/model.safetensors", "4_LayerNorm/model.safetensors"})
    EXPECT_FALSE(read_bytes(folder.path("trained/" + file)) == read_bytes(original + "/" + file)) << file;
  xgrad_tests::expect_same_bits(SentenceEmbedder<float>::from_folder(folder.path("trained"))(sentences),
                                after);
}

TEST(SentenceEmbedderTest, FrozenParametersAreNotTrained) {
  const auto embedder = SentenceEmbedder<float>::from_folder(model_folder("st_dense_identity"));
  embedder.encoder().freeze(0);
  const auto trained = embedder.trainable_parameters();
  EXPECT_FALSE(trained.empty());
  for (const auto& [name, parameter] : trained) {
    EXPECT_TRUE(parameter.requires_grad()) << name;
    EXPECT_FALSE(name.starts_with("embeddings.")) << name;
  }
}

TEST(SentenceEmbedderTest, DenseModulesHaveTheFunctionsOfTorch) {
  const FolderCopy copy("st_dense_identity");
  copy.write("modules.json", R"([{"type": "x.Transformer", "path": ""},
                                 {"type": "x.Pooling", "path": "1_Pooling"},
                                 {"type": "x.Dense", "path": "2_Dense"}])");
  const auto vectors = [&](const std::string& function) {
    const nlohmann::json config{{"in_features", 24},
                                {"out_features", 40},
                                {"activation_function", "torch.nn.modules.activation." + function}};
    copy.write("2_Dense/config.json", config.dump());
    return SentenceEmbedder<double>::from_folder(copy.path())(sentences);
  };
  const std::map<std::string, double (*)(double)> functions{
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"ReLU", [](double x) { return std::max(x, 0.0); }},
      {"GELU", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"SiLU", [](double x) { return x / (1 + std::exp(-x)); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"ELU", [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"LeakyReLU", [](double x) { return x > 0 ? x : 0.01 * x; }},
      {"LogSigmoid", [](double x) { return -std::log1p(std::exp(-x)); }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }}};
  const Array<double> before = vectors("Identity");
  for (const auto& [name, function] : functions) {
    const Array<double> after = vectors(name);
    for (std::size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(after.data()[i], function(before.data()[i]), 1e-14) << name;
  }
}

TEST(SentenceEmbedderTest, WithoutModulesItIsSavedWithThoseOfMeanPooling) {
  const xgrad_tests::TemporaryFolder folder;
  const auto embedder = SentenceEmbedder<float>::from_folder(model_folder("bert_classifier"),
                                                             {.note = [](const std::string&) {}});
  embedder.save(folder.path("saved"));
  EXPECT_TRUE(std::filesystem::exists(folder.path("saved/modules.json")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("saved/1_Pooling/config.json")));
  xgrad_tests::expect_same_bits(SentenceEmbedder<float>::from_folder(folder.path("saved"))(sentences),
                                embedder(sentences));
}

TEST(SentenceEmbedderTest, PromptsGoBeforeTexts) {
  const auto embedder = SentenceEmbedder<double>::from_folder(model_folder("st_prompt_left_out_cls"));
  const std::string prompt = "read the new story: ";
  EXPECT_EQ(embedder.prompts(), (std::map<std::string, std::string>{{"document", ""}, {"query", prompt}}));
  EXPECT_EQ(embedder.prompt_length(""), 0U);
  EXPECT_GT(embedder.prompt_length(prompt), 5U);
  const Array<double> named = embedder(sentences, {.prompt_name = "query"});
  xgrad_tests::expect_same_bits(named, embedder(sentences, {.prompt = prompt}));
  xgrad_tests::expect_same_bits(embedder(sentences), embedder(sentences, {.prompt_name = "document"}));
  EXPECT_GT(xt::amax(xt::abs(named - embedder(sentences)))(), 1e-3);
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { embedder(sentences, {.prompt_name = "quest"}); }),
            "SentenceEmbedder: prompt_name must be one of document, query, got \"quest\"");
  const auto without = SentenceEmbedder<double>::from_folder(model_folder("bert_sentence"));
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { without(sentences, {.prompt_name = "query"}); }),
            "SentenceEmbedder: prompt_name must be empty, as there are no prompts, got \"query\"");

  const FolderCopy copy("st_prompt_left_out_cls");
  copy.write("config_sentence_transformers.json",
             R"({"prompts": {"q": "read: "}, "default_prompt_name": "q"})");
  const auto with_default = SentenceEmbedder<double>::from_folder(copy.path());
  xgrad_tests::expect_same_bits(with_default(sentences), embedder(sentences, {.prompt = "read: "}));
  xgrad_tests::expect_same_bits(with_default(sentences, {.prompt = ""}), embedder(sentences));
  copy.write("config_sentence_transformers.json", R"({"default_prompt_name": "q"})");
  EXPECT_EQ(message_of<FileError>([&] { SentenceEmbedder<double>::from_folder(copy.path()); }),
            copy.path("config_sentence_transformers.json") +
                ": default_prompt_name must be a name in prompts, got \"q\"");
}

TEST(SentenceEmbedderTest, TruncatesVectorsBehindAllModules) {
  const FolderCopy copy("bert_sentence");
  const Array<double> whole = SentenceEmbedder<double>::from_folder(copy.path())(sentences);
  copy.write("config_sentence_transformers.json", R"({"truncate_dim": 5})");
  const auto embedder = SentenceEmbedder<double>::from_folder(copy.path());
  EXPECT_EQ(embedder.size(), 5U);
  xgrad_tests::expect_same_bits<double>(embedder(sentences), xt::view(whole, xt::all(), xt::range(0, 5)));
  copy.write("config_sentence_transformers.json", R"({"truncate_dim": 33})");
  xgrad_tests::expect_same_bits(SentenceEmbedder<double>::from_folder(copy.path())(sentences), whole);
  copy.write("config_sentence_transformers.json", R"({"truncate_dim": -1})");
  EXPECT_EQ(message_of<FileError>([&] { SentenceEmbedder<double>::from_folder(copy.path()); }),
            copy.path("config_sentence_transformers.json") +
                ": truncate_dim must be a whole number from 1 to 1073741824, got -1");
}

TEST(SentenceEmbedderTest, GradientsOfPoolingsAreRight) {
  std::mt19937 bits(3);
  std::normal_distribution<double> normal;
  Array<double> states = Array<double>::from_shape({3, 4, 2});
  std::ranges::generate(states, [&] { return normal(bits); });
  const Input input{.input_ids = xgrad::Ids({3, 4}, 1),
                    .attention_mask = xgrad::Ids{{1, 1, 1, 1}, {1, 1, 0, 0}, {0, 1, 1, 1}}};
  const xgrad::Variable<double> hidden(states, true);
  for (const Pooling pooling : {Pooling::mean, Pooling::cls_token, Pooling::max, Pooling::mean_sqrt,
                                Pooling::weighted_mean, Pooling::last_token}) {
    for (const std::size_t left_out : {std::size_t{0}, std::size_t{1}})
      EXPECT_TRUE(xgrad::gradcheck(
          [&](const auto& inputs) { return pool(inputs[0], input, pooling, left_out); }, {hidden}));
  }
}

TEST(SentenceEmbedderTest, PoolsWhatIsLeft) {
  const Input input{.input_ids = xgrad::Ids({2, 3}, 1), .attention_mask = xgrad::Ids{{1, 1, 1}, {0, 1, 1}}};
  Array<double> states = Array<double>::from_shape({2, 3, 1});
  std::ranges::copy(std::vector<double>{1, 2, 4, 100, 8, 6}, states.begin());
  const xgrad::Variable<double> hidden(states);
  const auto pooled = [&](Pooling pooling, std::size_t left_out = 0) {
    const Array<double> vectors = pool(hidden, input, pooling, left_out).value();
    return std::vector<double>(vectors.begin(), vectors.end());
  };
  using Vector = std::vector<double>;
  EXPECT_EQ(pooled(Pooling::cls_token), (Vector{1, 8}));
  EXPECT_EQ(pooled(Pooling::cls_token, 1), (Vector{2, 6}));
  EXPECT_EQ(pooled(Pooling::cls_token, 3), (Vector{1, 100})) << "nothing is left";
  EXPECT_EQ(pooled(Pooling::last_token), (Vector{4, 6}));
  EXPECT_EQ(pooled(Pooling::last_token, 2), (Vector{4, 0}));  // nothing is left of the second text
  EXPECT_EQ(pooled(Pooling::max), (Vector{4, 8}));
  EXPECT_EQ(pooled(Pooling::mean, 1), (Vector{3, 6}));
  EXPECT_EQ(pooled(Pooling::mean, 3), (Vector{0, 0})) << "nothing is left";
  EXPECT_DOUBLE_EQ(pooled(Pooling::mean_sqrt)[1], 14 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(pooled(Pooling::weighted_mean)[0], (1 + 4 + 12) / 6.0);
  EXPECT_DOUBLE_EQ(pooled(Pooling::weighted_mean)[1], (8 + 12) / 3.0);
  EXPECT_EQ(xgrad::to_string(pool(hidden, input, std::vector{Pooling::max, Pooling::mean}).shape()),
            "(2, 2)");
}

TEST(SentenceEmbedderTest, WeightsOfModulesMayBeFilesOfTorch) {
  const FolderCopy copy("st_dense_identity");
  const Array<double> expected = SentenceEmbedder<double>::from_folder(copy.path())(sentences);
  for (const std::string folder : {"", "2_Dense/", "3_Dense/", "4_LayerNorm/"}) {
    const std::string path = copy.path(folder + "model.safetensors");
    const xgrad::SafetensorsFile weights(path);
    copy.write(folder + "pytorch_model.bin", xgrad_tests::torch::file_of(weights.tensors()));
    std::filesystem::remove(path);
  }
  const auto embedder = SentenceEmbedder<double>::from_folder(copy.path());
  xgrad_tests::expect_same_bits(embedder(sentences), expected);
  embedder.save(copy.path("saved"));
  xgrad_tests::expect_same_bits(SentenceEmbedder<double>::from_folder(copy.path("saved"))(sentences),
                                expected);
}

TEST(SentenceEmbedderTest, ADenseLayerWithoutAFunctionHasTanh) {
  const FolderCopy copy("st_dense_identity");
  const Array<double> expected = SentenceEmbedder<double>::from_folder(copy.path())(sentences);
  auto dense = nlohmann::json::parse(read_bytes(copy.path("2_Dense/config.json")));
  EXPECT_EQ(dense.at("activation_function"), "torch.nn.modules.activation.Tanh");
  dense.erase("activation_function");
  copy.write("2_Dense/config.json", dense.dump());
  xgrad_tests::expect_same_bits(SentenceEmbedder<double>::from_folder(copy.path())(sentences), expected);
}

TEST(SentenceEmbedderTest, RefusesModulesThatAreNotBuilt) {
  const FolderCopy copy("st_dense_identity");
  const auto refusal = [&] {
    return message_of<FileError>([&] { SentenceEmbedder<float>::from_folder(copy.path()); });
  };
  const auto refusal_of = [&](const std::string& file, const char* text) {
    const std::string before = read_bytes(copy.path(file));
    copy.write(file, text);
    const std::string message = refusal();
    copy.write(file, before);
    EXPECT_TRUE(message.starts_with(copy.path() + "/")) << message;
    return message.substr(copy.path().size() + 1);
  };
  EXPECT_EQ(refusal_of("1_Pooling/config.json", R"({"pooling_mode": "median"})"),
            "1_Pooling/config.json: pooling_mode must be cls, lasttoken, max, mean, mean_sqrt_len_tokens or "
            "weightedmean, got \"median\"");
  EXPECT_EQ(refusal_of("1_Pooling/config.json", R"({"pooling_mode": []})"),
            "1_Pooling/config.json: pooling_mode must be one or more modes, got an array");
  EXPECT_EQ(refusal_of("1_Pooling/config.json", R"({"embedding_dimension": 25})"),
            "1_Pooling/config.json: embedding_dimension must be the encoder's hidden_size 24, got 25");
  EXPECT_EQ(
      refusal_of("1_Pooling/config.json", R"({"pooling_mode_median_tokens": true})"),
      "1_Pooling/config.json: the field \"pooling_mode_median_tokens\" is not known, and may change the "
      "vectors; remove it if it does not");
  EXPECT_EQ(refusal_of("2_Dense/config.json", R"({"in_features": 40, "out_features": 40})"),
            "2_Dense/config.json: in_features must be the size 24 of what comes before, got 40");
  EXPECT_EQ(refusal_of("2_Dense/config.json", R"({"in_features": 24, "out_features": 41})"),
            "2_Dense/model.safetensors: linear.weight must have the shape (41, 24), got (40, 24)");
  EXPECT_EQ(refusal_of("3_Dense/config.json", R"({"in_features": 40, "out_features": 16})"),
            "3_Dense/model.safetensors: must hold the tensor linear.bias");
  for (const std::string function : {"os.system", "mine.Tanh"})
    EXPECT_EQ(
        refusal_of("2_Dense/config.json",
                   (R"({"in_features": 24, "out_features": 40, "activation_function": ")" + function + "\"}")
                       .c_str()),
        "2_Dense/config.json: activation_function must be one of torch.nn's ELU, GELU, Identity, LeakyReLU, "
        "LogSigmoid, ReLU, SiLU, Sigmoid, Softplus, Tanh, got \"" +
            function + "\"");
  EXPECT_EQ(refusal_of("3_Dense/config.json",
                       R"({"in_features": 40, "out_features": 16, "bias": false, "use_residual": true})"),
            "3_Dense/config.json: use_residual must be false, as residual connections are not supported, got "
            "true");
  EXPECT_EQ(refusal_of("4_LayerNorm/config.json", R"({"dimension": 17})"),
            "4_LayerNorm/config.json: dimension must be the size 16 of what comes before, got 17");
  EXPECT_EQ(refusal_of("modules.json", R"([{"type": "x.Transformer"}, {"type": "x.Dense"}])"),
            "modules.json: [1].type must be Pooling, got \"x.Dense\"");
  for (const char* const few : {"[]", R"([{"type": "x.Transformer"}])"})
    EXPECT_EQ(refusal_of("modules.json", few), "modules.json: must list Transformer and Pooling");
  EXPECT_EQ(refusal_of("modules.json", R"([{"type": "x.BoW"}, {"type": "x.Pooling"}])"),
            "modules.json: [0].type must be Transformer, got \"x.BoW\"");
  const std::string pooling = R"([{"type": "x.Transformer"}, {"type": "x.Pooling", "path": "1_Pooling"}, )";
  EXPECT_EQ(refusal_of("modules.json", (pooling + R"({"type": "x.CNN", "path": "2_Dense"}])").c_str()),
            "modules.json: [2].type must be Dense, LayerNorm or Normalize, got \"x.CNN\"");
  EXPECT_EQ(refusal_of("modules.json", R"([{"type": "x.Transformer"}, {"type": "x.Pooling", "path": "."}])"),
            "modules.json: [1].path must be a folder inside this one, got \".\"");
  EXPECT_EQ(
      refusal_of("modules.json", R"([{"type": "x.Transformer"}, {"type": "x.Pooling", "path": "../x"}])"),
      "modules.json: [1].path must be a folder inside this one, got \"../x\"");
  EXPECT_EQ(refusal_of("modules.json",
                       R"([{"type": "x.Transformer"}, {"type": "x.Pooling", "path": "x/../../x"}])"),
            "modules.json: [1].path must be a folder inside this one, got \"x/../../x\"");
  EXPECT_EQ(refusal_of("sentence_bert_config.json", R"({"max_seq_length": 0})"),
            "sentence_bert_config.json: max_seq_length must be a whole number from 1 to 1073741824, got 0");
}

}  // namespace sentence_embedder_test
