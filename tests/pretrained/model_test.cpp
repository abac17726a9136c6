#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>
#include <xgrad/pretrained/detail/bodies/body.hpp>
#include <xgrad/pretrained/detail/likely_family.hpp>
#include <xgrad/xgrad.hpp>

#include "../difference.hpp"
#include "../expect_error.hpp"
#include "../torch_writer.hpp"
#include "folder.hpp"

namespace model_test {

using namespace xgrad::pretrained;
namespace torch = xgrad_tests::torch;
using xgrad::Activation, xgrad::Array, xgrad::FileError, xgrad::Ids, xgrad::Shape, xgrad::TensorView,
    xgrad::ValueError, xgrad::Variable;
using xgrad_tests::FolderCopy, xgrad_tests::message_of, xgrad_tests::model_folder, xgrad_tests::read_bytes;

const std::vector<std::string> all_folders{"bert_classifier",   "bert_pretraining",      "bert_sentence",
                                           "distilbert_tokens", "electra_discriminator", "roberta_mlm"};

Input some_input() {
  const Ids ids{{2, 7, 9, 20, 3}, {2, 11, 3, 0, 0}};
  return {ids, Ids{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}, Ids{{0, 0, 0, 1, 1}, {0, 0, 0, 0, 0}}};
}

/// The notes that loading gives.
struct Notes {
  LoadOptions options(std::optional<std::vector<std::string>> labels = {}) {
    return {.labels = std::move(labels), .note = [this](const std::string& note) { all.push_back(note); }};
  }
  std::vector<std::string> all;
};

Array<double> hidden(const std::string& folder, const Input& input = some_input()) {
  Notes notes;
  return Encoder<double>::from_folder(folder, notes.options())(input).last_hidden_state.value();
}

std::set<std::string> names_in(const std::string& file) {
  std::set<std::string> names;
  const xgrad::SafetensorsFile opened(file);
  for (const TensorView& tensor : opened.tensors()) names.insert(tensor.name);
  return names;
}

TEST(ModelFolderTest, SpellingsOfNamesAreOneModel) {
  const Array<double> expected = hidden(model_folder("bert_pretraining"));
  const FolderCopy copy("bert_pretraining");
  copy.rename([](std::string name) {  // a file of a bare encoder, with names of today
    const auto replace = [&name](const std::string& from, const std::string& to) {
      if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
    };
    replace("bert.", "");
    replace("LayerNorm.gamma", "LayerNorm.weight");
    replace("LayerNorm.beta", "LayerNorm.bias");
    return name;
  });
  xgrad_tests::expect_same_bits(hidden(copy.path()), expected);
  copy.change([](std::vector<TensorView>& tensors) {
    static const std::int64_t positions[] = {0, 1};
    tensors.push_back(
        {"embeddings.position_ids", xgrad::DType::I64, {1, 2}, std::as_bytes(std::span(positions))});
  });
  xgrad_tests::expect_same_bits(hidden(copy.path()), expected);
}

TEST(ModelFolderTest, PositionsOfOlderFilesAreNoWeights) {
  const FolderCopy copy("roberta_mlm");
  copy.change([](std::vector<TensorView>& tensors) {
    static const std::int64_t positions[] = {0, 1};
    tensors.push_back(
        {"roberta.embeddings.position_ids", xgrad::DType::I64, {1, 2}, std::as_bytes(std::span(positions))});
  });
  Notes notes;
  MaskedLM<float>::from_folder(copy.path(), notes.options());
  EXPECT_TRUE(notes.all.empty()) << notes.all.front();
}

TEST(ModelFolderTest, TheFirstOfManyTensorsWithoutUseAreNamed) {
  const FolderCopy copy("bert_sentence");
  copy.change([](std::vector<TensorView>& tensors) {
    static const float number = 1;
    for (int i = 0; i < 25; ++i)
      tensors.push_back(
          {"extra" + std::to_string(i), xgrad::DType::F32, {1}, std::as_bytes(std::span(&number, 1))});
  });
  Notes notes;
  Encoder<float>::from_folder(copy.path(), notes.options());
  ASSERT_EQ(notes.all.size(), 1U);
  EXPECT_TRUE(notes.all[0].ends_with(" and 5 more are not used")) << notes.all[0];
}

TEST(ModelFolderTest, WeightsMayBeInSeveralFiles) {
  const Array<double> expected = hidden(model_folder("bert_pretraining"));
  const FolderCopy copy("bert_pretraining");
  {
    const xgrad::SafetensorsFile file(copy.path("model.safetensors"));
    std::vector<TensorView> halves[2];
    nlohmann::json index;
    for (const TensorView& tensor : file.tensors()) {
      const std::size_t half = halves[0].size() > file.tensors().size() / 2 ? 1 : 0;
      halves[half].push_back(tensor);
      index["weight_map"][tensor.name] = "part" + std::to_string(half);
    }
    for (std::size_t half : {0, 1})
      xgrad::write_safetensors(halves[half], copy.path("part" + std::to_string(half)));
    copy.write("model.safetensors.index.json", index.dump());
  }
  std::filesystem::remove(copy.path("model.safetensors"));
  xgrad_tests::expect_same_bits(hidden(copy.path()), expected);
  copy.write("model.safetensors.index.json", R"({"weight_map": {"x": "../part0"}})");
  EXPECT_EQ(message_of<FileError>([&] { hidden(copy.path()); }),
            copy.path("model.safetensors.index.json") +
                ": weight_map.x must be a file of the same folder, got \"../part0\"");
}

TEST(ModelFolderTest, FilesOfTorchAreRead) {
  const Array<double> expected = hidden(model_folder("bert_pretraining"));
  const FolderCopy copy("bert_pretraining");
  const xgrad::SafetensorsFile file(model_folder("bert_pretraining") + "/model.safetensors");
  const std::vector<TensorView>& tensors = file.tensors();
  const auto middle = tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() / 2);
  nlohmann::json index;
  for (auto tensor = tensors.begin(); tensor != tensors.end(); ++tensor)
    index["weight_map"][tensor->name] = tensor < middle ? "part1" : "part2";
  copy.write("part1", torch::file_of({tensors.begin(), middle}));
  copy.write("part2", torch::file_of({middle, tensors.end()}));
  copy.write("pytorch_model.bin.index.json", index.dump());
  copy.write("pytorch_model.bin", "broken");
  xgrad_tests::expect_same_bits(hidden(copy.path()), expected);  // from model.safetensors
  std::filesystem::remove(copy.path("model.safetensors"));
  EXPECT_EQ(message_of<FileError>([&] { hidden(copy.path()); }),
            copy.path("pytorch_model.bin") +
                ": must be a file of torch.save, a zip archive or a pickle, got \"broken\"");
  copy.write("pytorch_model.bin", torch::file_of(tensors));
  std::filesystem::remove(copy.path("part1"));  // the whole file comes first
  xgrad_tests::expect_same_bits(hidden(copy.path()), expected);
  copy.write("part1", torch::file_of({tensors.begin(), middle}));
  std::filesystem::remove(copy.path("pytorch_model.bin"));
  xgrad_tests::expect_same_bits(hidden(copy.path()), expected);
}

TEST(ModelFolderTest, HalvesAreConverted) {
  const FolderCopy copy("bert_classifier");
  for (const xgrad::DType type : {xgrad::DType::BF16, xgrad::DType::F16}) {
    const xgrad::SafetensorsFile file(model_folder("bert_classifier") + "/model.safetensors");
    std::vector<TensorView> tensors = file.tensors();
    std::vector<std::vector<std::uint16_t>> halves;
    for (TensorView& tensor : tensors) {
      std::vector<std::uint16_t>& half = halves.emplace_back();
      for (const float value : xgrad::to_array<float>(tensor)) {
        // The upper half of a float; as a half, numbers near 1 / 2^8 that are written in its bits.
        half.push_back(static_cast<std::uint16_t>(type == xgrad::DType::BF16
                                                      ? std::bit_cast<std::uint32_t>(value) >> 16
                                                      : 0x1c00 + half.size() % 64));
      }
      tensor.dtype = type;
      tensor.bytes = std::as_bytes(std::span(half));
    }
    xgrad::write_safetensors(tensors, copy.path("model.safetensors"));
    const auto model = SequenceClassifier<float>::from_folder(copy.path());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name != "classifier.weight") continue;
      const Array<float> got = model.state_dict().at("classifier.weight");
      for (std::size_t j = 0; j < got.size(); ++j) {
        EXPECT_EQ(got.data()[j], type == xgrad::DType::BF16 ? xgrad::bfloat16_to_float(halves[i][j])
                                                            : xgrad::half_to_float(halves[i][j]));
      }
    }
  }
}

template <class M>
void expect_round_trip(const std::string& name) {
  SCOPED_TRACE(name);
  const xgrad_tests::TemporaryFolder folder;
  Notes notes;
  const M model = M::from_folder(model_folder(name), notes.options());
  save_folder(model, folder.path("once"));
  const M again = M::from_folder(folder.path("once"), notes.options());
  save_folder(again, folder.path("twice"));
  EXPECT_TRUE(notes.all.empty()) << notes.all.front();
  for (const char* file : {"/config.json", "/model.safetensors"})
    EXPECT_TRUE(read_bytes(folder.path("once") + file) == read_bytes(folder.path("twice") + file)) << file;
  const xgrad::SafetensorsFile stored(model_folder(name) + "/model.safetensors"),
      saved(folder.path("once/model.safetensors"));
  EXPECT_EQ(saved.metadata(), (xgrad::Metadata{{"format", "pt"}}));
  const auto states = model.state_dict();
  EXPECT_EQ(saved.tensors().size(), states.size());
  const nlohmann::json before = nlohmann::json::parse(read_bytes(model_folder(name) + "/config.json")),
                       after = nlohmann::json::parse(read_bytes(folder.path("once/config.json")));
  for (const auto& [field, value] : before.items()) {
    if (field != "torch_dtype") {
      EXPECT_EQ(after.at(field), value) << field;
    }
  }
}

TEST(ModelFolderTest, SavingWhatWasLoadedGivesTheSameBytes) {
  expect_round_trip<SequenceClassifier<float>>("bert_classifier");
  expect_round_trip<PreTraining<double>>("bert_pretraining");
  expect_round_trip<Encoder<float>>("bert_sentence");
  expect_round_trip<TokenClassifier<float>>("distilbert_tokens");
  expect_round_trip<Discriminator<float>>("electra_discriminator");
  expect_round_trip<MaskedLM<double>>("roberta_mlm");
  expect_round_trip<MaskedLM<float>>("mpnet_mlm");
  expect_round_trip<SequenceClassifier<float>>("albert_groups");
  expect_round_trip<SequenceClassifier<float>>("modernbert_cls");
  expect_round_trip<MaskedLM<float>>("eurobert_mlm");
  expect_round_trip<SequenceClassifier<float>>("deberta_cls");
  expect_round_trip<MaskedLM<float>>("deberta_v2_mlm");
  expect_round_trip<Encoder<float>>("t5_gated");
  expect_round_trip<QuestionAnswerer<float>>("distilbert_qa");
}

TEST(ModelFolderTest, FusedTensorsAreTakenApartAndJoined) {
  const std::string folder = model_folder("gte_mlm");
  Notes notes;
  const auto model = MaskedLM<float>::from_folder(folder, notes.options());
  EXPECT_TRUE(notes.all.empty()) << notes.all.front();
  const auto parameters = model.state_dict();
  const xgrad::SafetensorsFile file(folder + "/model.safetensors");
  for (const TensorView& tensor : file.tensors()) {
    const auto expect_rows = [&](std::size_t begin, std::size_t end, const std::string& name) {
      const Array<float> rows = xt::view(xgrad::to_array<float>(tensor), xt::range(begin, end));
      xgrad_tests::expect_same_bits(parameters.at(name), rows);
    };
    if (tensor.name == "gte.encoder.layer.1.attention.qkv_proj.bias") {
      expect_rows(0, 8, "gte.layers.1.self_attn.q_proj.bias");
      expect_rows(8, 16, "gte.layers.1.self_attn.k_proj.bias");
      expect_rows(16, 24, "gte.layers.1.self_attn.v_proj.bias");
    }
    if (tensor.name == "gte.encoder.layer.0.mlp.up_gate_proj.weight") {
      expect_rows(0, 12, "gte.layers.0.mlp.up_proj.weight");
      expect_rows(12, 24, "gte.layers.0.mlp.gate_proj.weight");
    }
  }
  const xgrad_tests::TemporaryFolder saved;
  save_folder(model, saved.path("model"));
  EXPECT_TRUE(read_bytes(saved.path("model/model.safetensors")) == read_bytes(folder + "/model.safetensors"));
  EXPECT_EQ(nlohmann::json::parse(read_bytes(saved.path("model/config.json"))),
            nlohmann::json::parse(read_bytes(folder + "/config.json")));
}

/// What a model of the folder predicts. It must have all parameters, and no others.
Array<double> predicted(const std::string& folder) {
  Notes notes;
  const auto model = MaskedLM<double>::from_folder(folder, notes.options());
  EXPECT_TRUE(notes.all.empty()) << notes.all.front();
  return model(some_input()).value();
}

TEST(ModelFolderTest, FusedTensorsMayBeStoredApart) {
  const FolderCopy copy("gte_mlm");
  const Array<double> expected = predicted(copy.path());
  const auto parameters = MaskedLM<float>::from_folder(copy.path()).state_dict();
  xgrad::save_safetensors(parameters, copy.path("model.safetensors"));
  xgrad_tests::expect_same_bits(predicted(copy.path()), expected);
}

TEST(ModelFolderTest, SpellingsOfGteAreOneModel) {
  const FolderCopy copy("gte_mlm");
  const double slower = std::pow(8, 2 / 4.0);
  copy.configure([&](nlohmann::json& config) {
    config["rope_parameters"] = {{"rope_type", "linear"}, {"rope_theta", 160000}, {"factor", slower}};
  });
  const Array<double> expected = predicted(copy.path());
  copy.configure([](nlohmann::json& config) {
    config.erase("rope_parameters");
    config.update({{"model_type", "new"},
                   {"rope_theta", 20000},
                   {"rope_scaling", {{"type", "ntk"}, {"factor", 8}}},
                   {"position_embedding_type", "rope"},
                   {"layer_norm_type", "layer_norm"},
                   {"logn_attention_scale", false},
                   {"pack_qkv", true},
                   {"unpad_inputs", "true"}});
  });
  copy.rename([](std::string name) { return name.replace(0, name.starts_with("gte.") ? 4 : 0, "new."); });
  copy.rename([](const std::string& name) { return name.substr(name.starts_with("new.lm_head.") ? 4 : 0); });
  xgrad_tests::expect_same_bits(predicted(copy.path()), expected);
  save_folder(MaskedLM<float>::from_folder(copy.path()), copy.path("saved"));
  EXPECT_EQ(names_in(copy.path("saved/model.safetensors")), names_in(copy.path("model.safetensors")));
  EXPECT_EQ(MaskedLM<float>::from_folder(copy.path("saved")).architecture(), "NewForMaskedLM");
}

TEST(ModelFolderTest, RefusesFusedTensorsThatDoNotFit) {
  const auto loaded = [](const FolderCopy& copy) {
    return message_of<FileError>([&] { MaskedLM<float>::from_folder(copy.path()); });
  };
  const FolderCopy wide("gte_mlm");
  wide.configure([](nlohmann::json& config) { config["intermediate_size"] = 16'000'000; });
  EXPECT_EQ(loaded(wide), wide.path("model.safetensors") +
                              ": tensor \"gte.encoder.layer.0.mlp.up_gate_proj.weight\": shape must be "
                              "(32000000, 8) as config.json says, got (24, 8)");
  const FolderCopy twice("gte_mlm");
  twice.rename([](const std::string& name) {
    return name == "gte.encoder.layer.0.mlp.down_proj.weight" ? "layers.0.mlp.gate_proj.weight" : name;
  });
  EXPECT_EQ(loaded(twice), twice.path("model.safetensors") +
                               ": tensor \"layers.0.mlp.gate_proj.weight\" is the same parameter as "
                               "\"gte.encoder.layer.0.mlp.up_gate_proj.weight\"");
  const FolderCopy adapted("gte_mlm");
  adapted.rename([](const std::string& name) {
    return name == "gte.encoder.layer.0.mlp.down_proj.weight"
               ? "gte.encoder.layer.0.mlp.down_proj.parametrizations.weight.original"
               : name;
  });
  EXPECT_EQ(loaded(adapted),
            adapted.path("model.safetensors") +
                ": tensor \"gte.encoder.layer.0.mlp.down_proj.parametrizations.weight.original\" belongs to "
                "an adapter (LoRA), which is not supported; merge it into the weights");
}

TEST(ModelFolderTest, NamesAreThoseOfTheFile) {
  const auto model = MaskedLM<float>::from_folder(model_folder("roberta_mlm"));
  std::set<std::string> ours;
  for (const auto& [name, parameter] : model.named_parameters()) ours.insert(name);
  EXPECT_EQ(ours, names_in(model_folder("roberta_mlm") + "/model.safetensors"));
  EXPECT_EQ(model.architecture(), "RobertaForMaskedLM");
}

TEST(ModelFolderTest, AHeadThatIsMissingStartsFreshAndSaysSo) {
  Notes notes;
  xgrad::manual_seed(1);
  const auto model =
      TokenClassifier<float>::from_folder(model_folder("bert_sentence"), notes.options({{"A", "B", "C"}}));
  const std::string folder = model_folder("bert_sentence");
  EXPECT_EQ(notes.all,
            (std::vector<std::string>{folder + ": classifier.weight, classifier.bias get initial values, as "
                                               "the folder does not have them; train them before use",
                                      folder + ": pooler.dense.bias, pooler.dense.weight are not used"}));
  EXPECT_EQ(xgrad::to_string(model(some_input()).shape()), "(2, 5, 3)");
  EXPECT_EQ(model.config().id2label, (std::vector<std::string>{"A", "B", "C"}));
  const auto state = model.state_dict();
  const Array<float>& weight = state.at("classifier.weight");
  double squares = 0;
  for (const float value : weight) squares += double(value) * double(value);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(weight.size())), 0.02, 0.005);
  for (const float value : state.at("classifier.bias")) EXPECT_EQ(value, 0);
}

TEST(ModelFolderTest, AHeadThatIsMissingIsAnErrorWhereAllIsNeeded) {
  const auto refusal = [](const std::string& folder) {
    return message_of<FileError>([&] { MaskedLM<float>::from_folder(folder, {.complete = true}); });
  };
  const std::string folder = model_folder("bert_classifier");
  EXPECT_EQ(refusal(folder),
            folder +
                ": must hold BertForMaskedLM, got BertForSequenceClassification without "
                "cls.predictions.transform.dense.weight, cls.predictions.transform.dense.bias, "
                "cls.predictions.transform.LayerNorm.weight, cls.predictions.transform.LayerNorm.bias, "
                "cls.predictions.bias; train the head first, or choose a folder that has it");
  EXPECT_EQ(refusal(model_folder("roberta_mlm")), "no exception");
}

TEST(ModelFolderTest, NamesOfAnotherFamilySayWhich) {
  const FolderCopy copy("bert_classifier");
  const auto refusal = [&] {
    const std::string message = message_of<FileError>([&] { hidden(copy.path()); });
    EXPECT_TRUE(message.starts_with(copy.path() + ": the parameter ")) << message;
    return message.substr(message.find("the parameter "));
  };
  copy.configure([](nlohmann::json& config) { config["model_type"] = "roberta"; });
  EXPECT_EQ(
      refusal(),
      "the parameter \"embeddings.word_embeddings.weight\" is missing; what the files have is "
      "\"bert.embeddings.LayerNorm.bias\", \"bert.embeddings.LayerNorm.weight\", "
      "\"bert.embeddings.position_embeddings.weight\" and 38 more, as in a model of the model_type bert, "
      "where config.json says roberta");
  copy.configure([](nlohmann::json& config) { config["model_type"] = "bert"; });
  copy.rename([](const std::string& name) { return "module." + name; });
  const std::string message = refusal();
  EXPECT_NE(message.find("; what the files have is \"module.bert.embeddings."), message.npos) << message;
  EXPECT_EQ(message.find("as in a model"), message.npos) << message;
  copy.rename([](std::string name) {
    name.erase(0, std::string("module.").size());
    const std::size_t at = name.find(".layer.");
    return at == name.npos ? name : name.replace(at, 7, ".block.");
  });
  const std::string blocks = refusal();
  EXPECT_NE(blocks.find("; what the files have is \"bert.encoder.block.0."), blocks.npos) << blocks;
}

TEST(ModelFolderTest, TheNamesOfEachFamilyTellIt) {
  for (const char* name : {"albert_groups", "bert_sentence", "deberta_cls", "deberta_v2_mlm", "distilbert_qa",
                           "electra_discriminator", "eurobert_mlm", "gte_mlm", "modernbert_cls", "mpnet_mlm",
                           "roberta_mlm", "t5_gated"}) {
    const xgrad::SafetensorsFile file(model_folder(name) + "/model.safetensors");
    std::vector<std::string> names;
    for (const TensorView& tensor : file.tensors()) names.push_back(tensor.name);
    const Family family = Config::from_folder(model_folder(name)).model_type;
    EXPECT_EQ(detail::told_by_names(names, detail::info_of(family)), "") << name;
    const std::string told = detail::told_by_names(names, family == Family::t5 ? detail::bert : detail::t5);
    EXPECT_NE(told.find(detail::info_of(family).model_type), told.npos) << name << told;
  }
}

TEST(ModelFolderTest, RefusesWeightsThatAreNotFinite) {
  for (const double number : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    const FolderCopy copy("bert_classifier");
    std::vector<float> values;
    copy.change([&](std::vector<TensorView>& tensors) {
      for (TensorView& tensor : tensors) {
        if (tensor.name != "bert.encoder.layer.1.output.dense.weight") continue;
        const Array<float> before = xgrad::to_array<float>(tensor);
        values.assign(before.begin(), before.end());
        values[5] = static_cast<float>(number);
        tensor.bytes = std::as_bytes(std::span<const float>(values));
      }
    });
    const std::string message = message_of<FileError>([&] { hidden(copy.path()); });
    EXPECT_TRUE(message.starts_with(copy.path("model.safetensors") +
                                    ": tensor \"bert.encoder.layer.1.output.dense.weight\" must hold finite "
                                    "numbers, got "))
        << message;
    EXPECT_TRUE(message.ends_with(" at place 5")) << message;
  }
}

TEST(ModelFolderTest, SavingLeavesNoOtherModelBeside) {
  const auto model = SequenceClassifier<float>::from_folder(model_folder("bert_classifier"));
  for (const std::string name :
       {"pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-00001-of-00002.bin",
        "model.safetensors.index.json", "model-00001-of-00002.safetensors", "adapter_config.json",
        "adapter_model.safetensors", "modules.json"}) {
    const xgrad_tests::TemporaryFolder folder;
    folder.write(name, "other");
    EXPECT_EQ(
        message_of<FileError>([&] { save_folder(model, folder.path("")); }),
        folder.path("") + "/" + name +
            ": is of another model, and would stay beside the saved files and be read with them; remove "
            "it, or save to another folder");
    EXPECT_EQ(folder.file_count(), 1u);
  }
  const xgrad_tests::TemporaryFolder folder;
  for (const char* name : {"README.md", "model.safetensors", "config.json"}) folder.write(name, "other");
  save_folder(model, folder.path(""));
  save_folder(model, folder.path(""));
  EXPECT_EQ(folder.file_count(), 3u);
}

TEST(ModelFolderTest, AFailedSaveLeavesTheModel) {
  const FolderCopy copy("bert_classifier");
  const std::string config = read_bytes(copy.path("config.json")),
                    weights = read_bytes(copy.path("model.safetensors"));
  const auto other = SequenceClassifier<double>::from_folder(
      copy.path(), {.labels = std::vector<std::string>{"a", "b"}, .note = [](const std::string&) {}});
  std::filesystem::remove(copy.path("model.safetensors"));
  std::filesystem::create_directory(copy.path("model.safetensors"));  // which cannot be replaced
  EXPECT_THROW(save_folder(other, copy.path()), FileError);
  EXPECT_EQ(read_bytes(copy.path("config.json")), config);
  std::filesystem::remove(copy.path("model.safetensors"));
  copy.write("model.safetensors", weights);
  std::filesystem::remove(copy.path("config.json"));
  std::filesystem::create_directory(copy.path("config.json"));
  EXPECT_THROW(save_folder(other, copy.path()), FileError);
  EXPECT_TRUE(read_bytes(copy.path("model.safetensors")) == weights);
}

TEST(ModelFolderTest, OtherLabelsStartTheHeadFresh) {
  Notes notes;
  const std::string folder = model_folder("bert_classifier");
  const auto same = SequenceClassifier<float>::from_folder(folder, notes.options({{"x", "y", "z"}}));
  EXPECT_TRUE(notes.all.empty());
  const auto other = SequenceClassifier<float>::from_folder(folder, notes.options({{"x", "y"}}));
  EXPECT_EQ(notes.all,
            (std::vector<std::string>{folder + ": classifier.weight, classifier.bias get initial values, as "
                                               "the folder does not have them; train them before use"}));
  EXPECT_EQ(xgrad::to_string(other(some_input()).shape()), "(2, 2)");
  EXPECT_EQ(message_of<ValueError>([&] {
              SequenceClassifier<float>::from_folder(folder, {.labels = std::vector<std::string>{}});
            }),
            "from_folder: labels must have one or more, got none");
}

TEST(ModelFolderTest, AnswersHaveTwoLabels) {  // or transformers refuses the folder
  const xgrad_tests::TemporaryFolder folder;
  const QuestionAnswerer<float> model(Config::from_folder(model_folder("bert_classifier")));
  save_folder(model, folder.path("saved"));
  const auto config = nlohmann::json::parse(read_bytes(folder.path("saved/config.json")));
  EXPECT_EQ(config.at("id2label"), (nlohmann::json{{"0", "LABEL_0"}, {"1", "LABEL_1"}}));
  EXPECT_EQ(config.at("label2id"), (nlohmann::json{{"LABEL_0", 0}, {"LABEL_1", 1}}));
}

TEST(ModelFolderTest, WithTiedWeightsTheEmbeddingWins) {
  const FolderCopy copy("roberta_mlm");
  copy.change([](std::vector<TensorView>& tensors) {
    TensorView decoder = tensors.front();
    for (const TensorView& tensor : tensors) {
      if (tensor.shape == Shape{301, 32}) decoder = tensor;
    }
    static const std::vector<float> zeros(301 * 32);
    tensors.push_back(
        {"lm_head.decoder.weight", xgrad::DType::F32, decoder.shape, std::as_bytes(std::span(zeros))});
  });
  Notes notes;
  const Input untyped{some_input().input_ids};
  const auto tied = MaskedLM<float>::from_folder(copy.path(), notes.options());
  const auto expected = MaskedLM<float>::from_folder(model_folder("roberta_mlm"));
  xgrad_tests::expect_same_bits(tied(untyped).value(), expected(untyped).value());
  EXPECT_TRUE(notes.all.empty());

  copy.configure([](nlohmann::json& config) { config["tie_word_embeddings"] = false; });
  const auto untied = MaskedLM<float>::from_folder(copy.path());
  const Variable<float> logits = untied(untyped);
  const Array<float> bias = untied.state_dict().at("lm_head.bias");
  for (std::size_t i = 0; i < bias.size(); ++i) EXPECT_EQ(logits.value()(0, 1, i), bias(i)) << "x 0 + bias";
  EXPECT_EQ(untied.named_parameters().size(), expected.named_parameters().size() + 1);
}

TEST(ModelFolderTest, RefusesTensorsThatDoNotFit) {
  const auto loaded = [](const std::string& folder) {
    return message_of<FileError>([&] { SequenceClassifier<float>::from_folder(folder); });
  };
  const FolderCopy copy("bert_classifier");
  copy.configure([](nlohmann::json& config) { config["vocab_size"] = 16'000'000; });
  EXPECT_EQ(loaded(copy.path()), copy.path("model.safetensors") +
                                     ": tensor \"bert.embeddings.word_embeddings.weight\": shape must be "
                                     "(16000000, 32) as config.json says, got (121, 32)");
  copy.configure([](nlohmann::json& config) { config["vocab_size"] = 121, config["num_hidden_layers"] = 3; });
  EXPECT_EQ(loaded(copy.path()),
            copy.path() + ": the parameter \"encoder.layer.2.attention.self.query.weight\" is missing");
  copy.configure([](nlohmann::json& config) { config["num_hidden_layers"] = 2; });
  copy.rename(
      [](std::string name) { return name == "classifier.bias" ? "bert.embeddings.LayerNorm.gamma" : name; });
  EXPECT_EQ(loaded(copy.path()), copy.path("model.safetensors") +
                                     ": tensor \"bert.embeddings.LayerNorm.weight\" is the same parameter as "
                                     "\"bert.embeddings.LayerNorm.gamma\"");
  std::filesystem::remove(copy.path("model.safetensors"));
  EXPECT_EQ(loaded(copy.path()), copy.path() +
                                     ": must hold model.safetensors or pytorch_model.bin, or one of "
                                     "model.safetensors.index.json and pytorch_model.bin.index.json");
  copy.write("pytorch_model.bin",
             torch::zip_archive({{"a/data.pkl", torch::pickle(torch::global("posix", "system"))}}));
  EXPECT_EQ(loaded(copy.path()), copy.path("pytorch_model.bin") +
                                     ": the pickle names posix.system, which weights may not contain");
}

TEST(ModelFolderTest, RefusesTablesOfPositionsThatDoNotFit) {
  const FolderCopy copy("deberta_cls");
  copy.configure([](nlohmann::json& config) { config["max_relative_positions"] = 1 << 24; });
  EXPECT_EQ(
      message_of<FileError>([&] { Encoder<float>::from_folder(copy.path()); }),
      copy.path("model.safetensors") +
          ": tensor \"deberta.encoder.rel_embeddings.weight\": shape must be (33554432, 8) as config.json "
          "says, got (14, 8)");
}

TEST(ConfigTest, RefusesWhatIsNotBuilt) {
  const FolderCopy copy("bert_classifier");
  const std::string original = read_bytes(copy.path("config.json"));
  const auto refusal = [&](const std::string& field, const nlohmann::json& value) {
    copy.write("config.json", original);
    copy.configure([&](nlohmann::json& config) { config[field] = value; });
    const std::string message = message_of<FileError>([&] { Config::from_folder(copy.path(), false); });
    const std::string begin = copy.path("config.json") + ": ";
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  };
  const std::string families =
      "model_type must be albert, bert, camembert, deberta, deberta-v2, distilbert, electra, eurobert, gte, "
      "jina_embeddings_v3, modernbert, mpnet, new, nomic_bert, roberta, t5 or xlm-roberta";
  EXPECT_EQ(refusal("model_type", "gpt2"),
            families + ", as it is a decoder, which CausalLM loads, got \"gpt2\"");
  EXPECT_EQ(refusal("model_type", "what"), families + " (the supported encoders), got \"what\"");
  EXPECT_EQ(refusal("model_type", nullptr), "no exception");  // the class tells it
  copy.write("config.json", original);
  for (const nlohmann::json& classes :
       {nlohmann::json(nullptr), nlohmann::json::array(), nlohmann::json{"BertiForMaskedLM"}}) {
    copy.configure([&](nlohmann::json& config) {
      config.erase("model_type");
      config["architectures"] = classes;
    });
    EXPECT_EQ(message_of<FileError>([&] { Config::from_folder(copy.path(), false); }),
              copy.path("config.json") +
                  ": model_type is missing, and architectures names no class that tells it: add "
                  "\"model_type\", " +
                  families.substr(std::string("model_type must be ").size()));
  }
  copy.configure([](nlohmann::json& config) { config["architectures"] = {"BertModel"}; });
  EXPECT_EQ(Config::from_folder(copy.path()).model_type, Family::bert);
  EXPECT_EQ(refusal("position_embedding_type", "relative_key"),
            "position_embedding_type must be \"absolute\", as other positions than learned ones are not "
            "supported, got \"relative_key\"");
  EXPECT_EQ(refusal("is_decoder", true),
            "is_decoder must be false, as only encoders are supported, got true");
  EXPECT_EQ(refusal("add_cross_attention", true),
            "add_cross_attention must be false, as only encoders are supported, got true");
  EXPECT_EQ(
      refusal("hidden_act", "mish"),
      "hidden_act must be gelu, gelu_new, gelu_pytorch_tanh, gelu_python, gelu_fast, relu, silu, swish or "
      "tanh, got \"mish\"");
  EXPECT_EQ(
      refusal("use_magic", true),
      "the field \"use_magic\" of a bert model is not known, and may change what it computes; remove it if "
      "it does not");
  EXPECT_EQ(refusal("hidden_size", "wide"),
            "hidden_size must be a whole number from 1 to 16777216, got \"wide\"");
  EXPECT_EQ(refusal("hidden_size", 1e300),
            "hidden_size must be a whole number from 1 to 16777216, got 1e+300");
  EXPECT_EQ(refusal("num_attention_heads", 5), "num_attention_heads must divide hidden_size, got 5 and 32");
  EXPECT_EQ(message_of<FileError>([&] {
              const FolderCopy other("distilbert_tokens");
              other.configure([](nlohmann::json& config) { config["n_heads"] = 3; });
              try {
                Config::from_folder(other.path());
              } catch (const FileError& error) {
                throw FileError(std::string(error.what()).substr(other.path("config.json: ").size()));
              }
            }),
            "n_heads must divide dim, got 3 and 32");
  EXPECT_EQ(refusal("pad_token_id", 121), "pad_token_id must be a whole number from 0 to 120, got 121");
  EXPECT_EQ(refusal("hidden_dropout_prob", -1), "hidden_dropout_prob must be a number from 0 to 1, got -1");
  EXPECT_EQ(refusal("hidden_dropout_prob", 1.5), "hidden_dropout_prob must be a number from 0 to 1, got 1.5");
  EXPECT_EQ(refusal("id2label", nlohmann::json::object()),
            "id2label must be 1 to 100000 labels, got an object");
  EXPECT_EQ(refusal("id2label", {{"1", "x"}}), "id2label: 0 is missing");
  EXPECT_EQ(refusal("problem_type", "poetry"),
            "problem_type must be regression, single_label_classification or multi_label_classification, got "
            "\"poetry\"");
}

TEST(ModelFolderTest, LabelsOfATaskThatHasNoneChangeNothing) {
  Notes notes;
  const auto options = notes.options({{"A", "B", "C"}});
  const auto model = MaskedLM<float>::from_folder(model_folder("roberta_mlm"), options);
  const auto encoder = Encoder<float>::from_folder(model_folder("bert_sentence"), options);
  EXPECT_TRUE(notes.all.empty());
}

TEST(ModelFolderTest, ABiasMayBeThereTwice) {
  const FolderCopy copy("roberta_mlm");
  copy.change([](std::vector<TensorView>& tensors) {
    static const std::vector<float> zeros(301);
    tensors.push_back({"lm_head.decoder.bias", xgrad::DType::F32, {301}, std::as_bytes(std::span(zeros))});
  });
  const auto model = MaskedLM<float>::from_folder(copy.path()),
             expected = MaskedLM<float>::from_folder(model_folder("roberta_mlm"));
  xgrad_tests::expect_same_bits(model.state_dict().at("lm_head.bias"),
                                expected.state_dict().at("lm_head.bias"));
}

TEST(ModelFolderTest, ABiasMayBeThatOfTheDecoderAlone) {
  const FolderCopy copy("roberta_mlm");
  copy.rename([](const std::string& name) { return name == "lm_head.bias" ? "lm_head.decoder.bias" : name; });
  Notes notes;
  const auto model = MaskedLM<float>::from_folder(copy.path(), notes.options()),
             expected = MaskedLM<float>::from_folder(model_folder("roberta_mlm"));
  EXPECT_TRUE(notes.all.empty()) << notes.all.front();
  xgrad_tests::expect_same_bits(model.state_dict().at("lm_head.bias"),
                                expected.state_dict().at("lm_head.bias"));
}

TEST(ModelFolderTest, AHeadTooLargeToStartFreshIsRefused) {
  const FolderCopy copy("bert_sentence");
  copy.change([](std::vector<TensorView>& tensors) {
    static const std::vector<float> numbers(70'000 * 4);
    const auto bytes = std::as_bytes(std::span(numbers));
    const auto put = [&](const std::string& name, const Shape& shape) {
      tensors.push_back({name, xgrad::DType::F32, shape, bytes.first(4 * xgrad::element_count(shape))});
    };
    tensors.clear();
    put("embeddings.word_embeddings.weight", {1, 70'000});
    put("embeddings.position_embeddings.weight", {1, 70'000});
    put("embeddings.token_type_embeddings.weight", {1, 70'000});
    put("embeddings.LayerNorm.weight", {70'000});
    put("embeddings.LayerNorm.bias", {70'000});
  });
  copy.configure([](nlohmann::json& config) {
    config.update({{"hidden_size", 70'000},
                   {"vocab_size", 1},
                   {"max_position_embeddings", 1},
                   {"type_vocab_size", 1},
                   {"num_hidden_layers", 0}});
  });
  EXPECT_EQ(
      message_of<FileError>([&] { SequenceClassifier<float>::from_folder(copy.path()); }),
      copy.path() +
          ": the parameter \"pooler.dense.weight\" is missing, and too large to initialise: (70000, 70000)");
}

TEST(ConfigTest, KeepsNullAndNewNames) {
  const FolderCopy copy("bert_classifier");
  copy.configure([](nlohmann::json& config) {
    config["pad_token_id"] = nullptr;
    config["dtype"] = "float16";
    config["id2label"] = {{"0", 5}, {"1", "x"}, {"2", "y"}};
    config.erase("torch_dtype");
  });
  Config config = Config::from_folder(copy.path());
  EXPECT_FALSE(config.pad_token_id);
  EXPECT_EQ(config.id2label, (std::vector<std::string>{"5", "x", "y"}));
  EXPECT_EQ(config.problem_type, ProblemType::single_label_classification);
  config.problem_type.reset();
  const auto written = nlohmann::json::parse(config.json("BertModel", "float32"));
  EXPECT_TRUE(written.at("pad_token_id").is_null());
  EXPECT_EQ(written.at("dtype"), "float32");
  EXPECT_FALSE(written.contains("torch_dtype"));
  EXPECT_FALSE(written.contains("problem_type"));
}

TEST(ConfigTest, WhatTheFileCannotSayIsNotWritten) {
  Config config = Config::of(Family::distilbert);
  config.layer_norm_eps = 1e-5;
  EXPECT_EQ(message_of<ValueError>([&] { config.json("DistilBertModel", "float32"); }),
            "config.json: layer_norm_eps must be 1e-12, as a file of a distilbert model can say nothing "
            "else, got 1e-05");
  config = Config::of(Family::modernbert);
  config.type_vocab_size = 2;
  EXPECT_EQ(message_of<ValueError>([&] { config.json("ModernBertModel", "float32"); }),
            "config.json: type_vocab_size must be 0, as a file of a modernbert model can say nothing else, "
            "got 2");
  config = Config::of(Family::bert);
  config.hidden_dropout_prob = 1.5;
  EXPECT_EQ(message_of<ValueError>([&] { config.json("BertModel", "float32"); }),
            "config.json: hidden_dropout_prob must be a number from 0 to 1, got 1.5");
  for (int family = 0; family <= static_cast<int>(Family::qwen3); ++family)
    EXPECT_NO_THROW(Config::of(static_cast<Family>(family)).json("", "float32")) << family;
}

TEST(ConfigTest, PositionsThatDependOnAnotherFieldAreNotChangedBySaving) {
  const FolderCopy copy("eurobert_mlm");
  copy.configure([](nlohmann::json& config) {
    config.erase("rope_parameters");
    config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2}};
  });
  Config config = Config::from_folder(copy.path());
  EXPECT_NO_THROW(config.json("EuroBertModel", "float32"));
  config.max_position_embeddings *= 2;
  EXPECT_EQ(message_of<ValueError>([&] {
              config.json("EuroBertModel", "float32");
            }).find("config.json: rotary must be {"),
            0u);
}

TEST(ConfigTest, RefusesSizesThatDoNotFit) {
  const auto refusal = [](Family family, const auto& change) {
    Config config = Config::of(family);
    change(config);
    return message_of<ValueError>([&] { config.check(); });
  };
  Config::of(Family::electra).check();
  EXPECT_EQ(refusal(Family::bert, [](Config& c) { c.hidden_size = 64, c.num_attention_heads = 4; }),
            "Config: embedding_size must equal hidden_size in bert, got 768 and 64");
  EXPECT_EQ(refusal(Family::distilbert, [](Config& c) { c.type_vocab_size = 2; }),
            "Config: type_vocab_size must be 0 in distilbert, got 2");
  EXPECT_EQ(refusal(Family::bert, [](Config& c) { c.num_attention_heads = 0; }),
            "Config: num_attention_heads must divide hidden_size, got 0 and 768");
  EXPECT_EQ(refusal(Family::t5, [](Config& c) { c.num_attention_heads = 7; }), "no exception");
  EXPECT_EQ(refusal(Family::roberta, [](Config& c) { c.max_position_embeddings = 2; }),
            "Config: max_position_embeddings must be above pad_token_id + 1");
  EXPECT_EQ(refusal(Family::roberta, [](Config& c) { c.vocab_size = 1; }),
            "Config: pad_token_id must be below vocab_size, got 1 and 1");
}

TEST(ConfigTest, RefusesFieldsOfFamiliesThatDoNotFit) {
  const auto refusal = [](const char* folder, const char* field, const nlohmann::json& value) {
    const FolderCopy copy(folder);
    copy.configure([&](nlohmann::json& config) { config[field] = value; });
    const std::string message = message_of<FileError>([&] { Config::from_folder(copy.path()); });
    const std::string begin = copy.path("config.json") + ": ";
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  };
  EXPECT_EQ(refusal("mpnet_mlm", "relative_attention_num_buckets", 16),
            "relative_attention_num_buckets must be at least 32");
  EXPECT_EQ(refusal("mpnet_mlm", "pad_token_id", 0), "pad_token_id must be 1 in mpnet");
  EXPECT_EQ(refusal("modernbert_cls", "classifier_pooling", "max"),
            "classifier_pooling must be cls or mean, got \"max\"");
  EXPECT_EQ(refusal("modernbert_cls", "layer_types", {"full_attention"}),
            "layer_types must be 4 types, as num_hidden_layers says, got an array");
  EXPECT_EQ(refusal("modernbert_cls", "num_attention_heads", 32),
            "hidden_size / num_attention_heads must be even, got 1");
  EXPECT_EQ(
      refusal("eurobert_mlm", "rope_parameters", {{"rope_type", "spiral"}}),
      "rope_parameters.rope_type must be default, linear, dynamic, llama3, yarn or longrope, got \"spiral\"");
  EXPECT_EQ(refusal("eurobert_mlm", "rope_parameters", {{"rope_type", "yarn"}, {"factor", "much"}}),
            "rope_parameters.factor must be a number from 0 to 1e+12, got \"much\"");
  EXPECT_EQ(refusal("eurobert_mlm", "rope_parameters", {{"rope_theta", 100}, {"partial_rotary_factor", 0.5}}),
            "rope_parameters.partial_rotary_factor must be 1, as all of a head is rotated, got 0.5");
  EXPECT_EQ(
      refusal("eurobert_mlm", "rope_parameters", {{"rope_theta", 100}, {"mixed_b", 0.5}}),
      "rope_parameters: the field \"mixed_b\" of rotary positions is not known, and may change what the "
      "model computes; remove it if it does not");
  EXPECT_EQ(refusal("modernbert_cls", "rope_parameters", {{"rope_type", "linear"}, {"factor", 2}}),
            "rope_parameters.factor must be a field of full_attention or of sliding_attention, got 2");
  EXPECT_EQ(refusal("modernbert_cls", "rope_parameters", {{"sliding_attention", {{"rope_theta", 0}}}}),
            "rope_theta and the scaling: rotary_tables: theta must be a finite "
            "number above 0, got 0");
  EXPECT_EQ(refusal("eurobert_mlm", "num_key_value_heads", 3),
            "num_key_value_heads must divide num_attention_heads, got 3 and 4");
  EXPECT_EQ(
      refusal("deberta_cls", "pos_att_type", "c2p|p2p"),
      "pos_att_type must be c2p and p2c, each at most once, in a list or with | between, got \"c2p|p2p\"");
  EXPECT_EQ(refusal("deberta_cls", "pos_att_type", {"c2p", "c2p"}),
            "pos_att_type must be c2p and p2c, each at most once, in a list or with | between, got an array");
  EXPECT_EQ(refusal("deberta_cls", "talking_head", true),
            "talking_head must be false, as heads are not mixed, got true");
  EXPECT_EQ(refusal("deberta_cls", "pooler_hidden_size", 16),
            "pooler_hidden_size must be 8, as hidden_size, got 16");
  EXPECT_EQ(refusal("deberta_cls", "max_relative_positions", -2),
            "max_relative_positions must be a whole number from -1 to 16777216, got -2");
  EXPECT_EQ(refusal("deberta_cls", "legacy", false),
            "embedding_size must equal hidden_size where legacy is false");
  EXPECT_EQ(
      refusal("deberta_cls", "position_buckets", 8),
      "the field \"position_buckets\" of a deberta model is not known, and may change what it computes; "
      "remove it if it does not");
  EXPECT_EQ(refusal("deberta_v2_mlm", "tie_word_embeddings", false),
            "tie_word_embeddings must be true where legacy is false");
  EXPECT_EQ(refusal("deberta_v2_mlm", "attention_head_size", 8),
            "attention_head_size must be hidden_size / num_attention_heads, got 8");
  EXPECT_EQ(refusal("deberta_v2_mlm", "conv_kernel_size", 4),
            "conv_kernel_size must be 0, or odd and at most 255, got 4");
  EXPECT_EQ(refusal("deberta_v2_mlm", "conv_groups", 3), "conv_groups must divide hidden_size, got 3 and 8");
  EXPECT_EQ(refusal("deberta_v2_mlm", "norm_rel_ebd", "rms_norm"),
            "norm_rel_ebd must be layer_norm or none, got \"rms_norm\"");
  EXPECT_EQ(refusal("deberta_v2_mlm", "position_buckets", 1),
            "position_buckets must be -1 or at least 2, got 1");
  EXPECT_EQ(refusal("deberta_v2_mlm", "max_relative_positions", 4),
            "max_relative_positions must be above 4, as position_buckets says, got 4");
  EXPECT_EQ(
      refusal("t5_gated", "feed_forward_proj", "gated-mish"),
      "feed_forward_proj must be a function, or gated- and a function: gelu, gelu_new, gelu_pytorch_tanh, "
      "gelu_python, gelu_fast, relu, silu, swish or tanh, got \"gated-mish\"");
  EXPECT_EQ(refusal("t5_gated", "relative_attention_max_distance", 1),
            "relative_attention_max_distance must be above a fourth of relative_attention_num_buckets, got 1 "
            "and 16");
  EXPECT_EQ(refusal("t5_gated", "relative_attention_max_distance", 5), "no exception");
  EXPECT_EQ(message_of<ValueError>([] { SequenceClassifier<float>::from_folder(model_folder("t5_gated")); }),
            "SequenceClassifier: is no head of t5 models");
}

TEST(ConfigTest, OwnFieldsOfFamiliesAreWrittenForNewModels) {
  for (const Family family :
       {Family::xlm_roberta, Family::camembert, Family::mpnet, Family::albert, Family::deberta,
        Family::deberta_v2, Family::modernbert, Family::eurobert, Family::t5, Family::nomic_bert, Family::gte,
        Family::gte_new, Family::jina_embeddings_v3}) {
    const Config config = Config::of(family);
    config.check();
    const FolderCopy copy("bert_classifier");
    copy.write("config.json", config.json("Model", "float32"));
    const Config read = Config::from_folder(copy.path());
    EXPECT_EQ(read.model_type, family);
    EXPECT_EQ(read.hidden_size, config.hidden_size);
    EXPECT_EQ(read.embedding_size, config.embedding_size);
    EXPECT_EQ(read.hidden_act, config.hidden_act);
    EXPECT_EQ(read.json("Model", "float32"), config.json("Model", "float32"));
  }
}

TEST(ConfigTest, ValuesAreSpeltAsTransformersDoes) {
  const auto written = [](const Config& config) {
    return nlohmann::json::parse(config.json("Model", "float32"));
  };
  EXPECT_EQ(written(Config::of(Family::deberta)).at("max_relative_positions"), -1);
  EXPECT_EQ(written(Config::of(Family::deberta_v2)).at("position_buckets"), -1);
  const FolderCopy copy("t5_gated");
  copy.configure([](nlohmann::json& config) { config["feed_forward_proj"] = "gated-relu"; });
  Config config = Config::from_folder(copy.path());
  config.hidden_act = Activation::gelu_tanh;
  EXPECT_EQ(written(config).at("feed_forward_proj"), "gated-gelu");
}

TEST(ConfigTest, ReadsAndWritesAllFields) {
  for (const std::string& name : all_folders) {
    SCOPED_TRACE(name);
    const Config config = Config::from_folder(model_folder(name));
    const FolderCopy copy(name);
    Config changed = config;
    changed.hidden_size = changed.embedding_size = 40;
    changed.num_attention_heads = 8;
    changed.hidden_act = Activation::silu;
    changed.id2label = {"x", "y"};
    changed.problem_type = ProblemType::regression;
    changed.classifier_dropout = 0.5;
    copy.write("config.json", changed.json("BertModel", "float32"));
    const Config read = Config::from_folder(copy.path());
    EXPECT_EQ(read.hidden_size, 40U);
    EXPECT_EQ(read.num_attention_heads, 8U);
    EXPECT_EQ(read.num_hidden_layers, config.num_hidden_layers);
    EXPECT_EQ(read.hidden_act, Activation::silu);
    EXPECT_EQ(read.id2label, changed.id2label);
    EXPECT_EQ(read.problem_type, changed.problem_type);
    EXPECT_EQ(read.classifier_dropout, 0.5);
    EXPECT_EQ(read.layer_norm_eps, config.layer_norm_eps);
  }
}

TEST(ConfigTest, HeadsDropWithTheProbabilityOfLayersWhereTheFileDoesNotSay) {
  const FolderCopy copy("bert_classifier");
  for (const bool has_null : {false, true}) {
    copy.configure([&](nlohmann::json& config) {
      config["hidden_dropout_prob"] = 0.25;
      config.erase("classifier_dropout");
      if (has_null) config["classifier_dropout"] = nullptr;
    });
    EXPECT_EQ(Config::from_folder(copy.path()).classifier_dropout, 0.25);
  }
}

Config small_config(Family family = Family::bert) {
  Config config = Config::of(family);
  config.vocab_size = 30;
  config.hidden_size = config.embedding_size = 8;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 2;
  config.intermediate_size = 16;
  config.max_position_embeddings = 12;
  config.initializer_range = 0.3;
  return config;
}

/// A new model of a family in a folder whose config.json a test may change.
class NewFolder {
 public:
  explicit NewFolder(Family family) {
    Config config = small_config(family);
    config.pad_token_id = 0;
    xgrad::manual_seed(6);
    save_folder(MaskedLM<double>(config), path());
  }

  std::string path() const { return folder_.path("model"); }

  void configure(const std::function<void(nlohmann::json&)>& change) const {
    nlohmann::json config = nlohmann::json::parse(read_bytes(path() + "/config.json"));
    change(config);
    folder_.write("model/config.json", config.dump());
  }

  /// The error about config.json, without its path.
  std::string refusal() const {
    const std::string message = message_of<FileError>([&] { Config::from_folder(path()); });
    const std::string begin = path() + "/config.json: ";
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  }

 private:
  xgrad_tests::TemporaryFolder folder_;
};

/// The config of a nomic_bert model as the code beside the models on the hub writes it.
nlohmann::json nomic_config() {
  return {{"model_type", "nomic_bert"},
          {"vocab_size", 30},
          {"n_embd", 8},
          {"n_layer", 3},
          {"n_head", 2},
          {"n_inner", 16},
          {"n_positions", 12},
          {"activation_function", "swiglu"},
          {"layer_norm_epsilon", 1e-12},
          {"resid_pdrop", 0.25},
          {"embd_pdrop", 0.5},
          {"attn_pdrop", 0.125},
          {"initializer_range", 0.02},
          {"max_trained_positions", 4},
          {"pad_vocab_size_multiple", 2},
          {"prenorm", false},
          {"qkv_proj_bias", false},
          {"rotary_emb_base", 100},
          {"rotary_emb_fraction", 1.0},
          {"rotary_emb_scale_base", nullptr},
          {"rotary_scaling_factor", nullptr},
          {"scale_attn_weights", true},
          {"type_vocab_size", 2}};
}

TEST(ConfigTest, NomicBertHasTwoSpellings) {
  const NewFolder folder(Family::nomic_bert);
  folder.configure([](nlohmann::json& config) { config["rope_theta"] = 100; });
  const Array<double> expected = predicted(folder.path());
  folder.configure([](nlohmann::json& config) { config = nomic_config(); });
  xgrad_tests::expect_same_bits(predicted(folder.path()), expected);
  Config config = Config::from_folder(folder.path());
  EXPECT_EQ(config.hidden_size, 8U);
  EXPECT_EQ(config.max_length(), 12U);
  EXPECT_EQ(config.hidden_act, Activation::silu);
  EXPECT_EQ(config.hidden_dropout_prob, 0.25);
  EXPECT_EQ(config.attention_probs_dropout_prob, 0.125);
  EXPECT_EQ(config.classifier_dropout, 0.5);
  const nlohmann::json before = nomic_config(),
                       same = nlohmann::json::parse(config.json("NomicBertModel", "float32"));
  for (const auto& [name, value] : before.items()) EXPECT_EQ(same.at(name), value) << name;
  EXPECT_FALSE(same.contains("hidden_size"));

  config.hidden_act = Activation::gelu;
  config.intermediate_size = 20;
  folder.configure(
      [&](nlohmann::json& json) { json = nlohmann::json::parse(config.json("NomicBertModel", "float32")); });
  config = Config::from_folder(folder.path());
  EXPECT_EQ(config.hidden_act, Activation::gelu) << "the name of Hugging Face's class goes before";
  EXPECT_EQ(config.intermediate_size, 20U);
  folder.configure([](nlohmann::json& json) {
    json = nomic_config();
    json["n_inner"] = nullptr;
  });
  EXPECT_EQ(Config::from_folder(folder.path()).intermediate_size, 32U) << "4 n_embd";
}

TEST(ConfigTest, RefusesBlocksThatTheCodeOnTheHubHas) {
  const auto refusal = [](Family family, const char* field, const nlohmann::json& value) {
    const NewFolder folder(family);
    folder.configure([&](nlohmann::json& config) {
      if (family == Family::nomic_bert) config = nomic_config();
      config[field] = value;
    });
    return folder.refusal();
  };
  EXPECT_EQ(refusal(Family::nomic_bert, "prenorm", true),
            "prenorm must be false, as other blocks are not supported, got true");
  EXPECT_EQ(refusal(Family::nomic_bert, "activation_function", "gelu"),
            "activation_function must be swiglu or geglu, got \"gelu\"");
  EXPECT_EQ(refusal(Family::nomic_bert, "rotary_emb_fraction", 0.5),
            "rotary_emb_fraction must be 1.0, as all of a head is rotated, got 0.5");
  EXPECT_EQ(refusal(Family::nomic_bert, "rotary_emb_scale_base", 512),
            "rotary_emb_scale_base must be null, as scaled rotary positions are not supported, got 512");
  EXPECT_EQ(refusal(Family::nomic_bert, "pad_vocab_size_multiple", 64),
            "pad_vocab_size_multiple must be a divisor of vocab_size, got 64");
  EXPECT_EQ(refusal(Family::nomic_bert, "head_dim", 3),
            "head_dim, or n_embd / n_head, must be an even number up to 65536, got 3");
  EXPECT_EQ(refusal(Family::nomic_bert, "rotary_emb_base", 0),
            "rope_theta and the scaling: rotary_tables: theta must be a finite "
            "number above 0, got 0");
  EXPECT_EQ(refusal(Family::jina_embeddings_v3, "rope_scaling", {{"type", "linear"}, {"factor", 0}}),
            "rope_theta and the scaling: rotary_tables: the factor of LinearScaling "
            "must be a finite number above 0, got 0");
  EXPECT_EQ(refusal(Family::nomic_bert, "moe_every_n_layers", 2),
            "the field \"moe_every_n_layers\" of a nomic_bert model is not known, and may change what it "
            "computes; remove it if it does not");
  EXPECT_EQ(refusal(Family::gte, "layer_norm_type", "rms_norm"),
            "layer_norm_type must be \"layer_norm\", as other norms are not supported, got \"rms_norm\"");
  EXPECT_EQ(refusal(Family::gte, "logn_attention_scale", true),
            "logn_attention_scale must be false, as scores that grow with the length are not supported, got "
            "true");
  EXPECT_EQ(refusal(Family::gte, "rope_scaling", {{"type", "ntk"}, {"factor", 2}, {"mixed_b", 0.5}}),
            "rope_scaling.mixed_b must be null, as a mixed scaling is not supported, got 0.5");
  EXPECT_EQ(refusal(Family::gte, "rope_parameters",
                    {{"rope_type", "longrope"}, {"short_factor", {1}}, {"long_factor", {1, 2}}}),
            "rope_theta and the scaling: rotary_tables: LongScaling needs dim / 2 = 2 factors, got 1");
  EXPECT_EQ(refusal(Family::jina_embeddings_v3, "lora_adaptations", {"retrieval.query"}),
            "lora_adaptations must be null, as adapters of tasks are not supported, got an array");
}

TEST(ModelFolderTest, TheFamilyWithTheMostOfTheNamesIsTold) {
  std::vector<std::string> names;  // gte has these, and biases
  const Encoder<float> encoder(small_config(Family::nomic_bert));
  for (const auto& [name, parameter] : encoder.named_parameters()) names.push_back(name);
  const std::string told = detail::told_by_names(names, detail::bert);
  EXPECT_TRUE(told.ends_with(", as in a model of the model_type nomic_bert, where config.json says bert"))
      << told;
}

TEST(PretrainedTest, TheMeanOfATextIsThatOfItsTokens) {
  const FolderCopy copy("modernbert_cls");
  copy.configure([](nlohmann::json& config) { config["classifier_pooling"] = "mean"; });
  const auto model = SequenceClassifier<double>::from_folder(copy.path());
  const Array<double> batch = model({some_input().input_ids, some_input().attention_mask}).value(),
                      first = model({Ids{{2, 7, 9, 20, 3}}}).value(),
                      second = model({Ids{{2, 11, 3}}}).value();
  for (std::size_t label = 0; label < 3; ++label) {
    EXPECT_NEAR(batch(0, label), first(0, label), 1e-12);
    EXPECT_NEAR(batch(1, label), second(0, label), 1e-12);
  }
}

TEST(ModelFolderTest, LayersThatAreMissingAreFoundBeforeTheyAreNamed) {
  for (const auto& [name, field] : {std::pair{"bert_sentence", "num_hidden_layers"},
                                    {"albert_groups", "num_hidden_groups"},
                                    {"albert_groups", "inner_group_num"}}) {
    const FolderCopy copy(name);
    copy.configure([field = field](nlohmann::json& config) { config[field] = 1 << 24; });
    EXPECT_NE(message_of<FileError>([&] { Encoder<float>::from_folder(copy.path()); }).find("is missing"),
              std::string::npos);
  }
}

TEST(ModelFolderTest, EncodersAreSavedInTheTypeThatIsAskedFor) {
  const auto encoder = Encoder<float>::from_folder(model_folder("bert_sentence"));
  const xgrad_tests::TemporaryFolder folder;
  save_folder(encoder, folder.path("half"), {.dtype = xgrad::DType::BF16});
  EXPECT_EQ(Config::from_folder(folder.path("half")).dtype, "bfloat16");
  const auto half = Encoder<float>::from_folder(folder.path("half"));
  for (const auto& [name, values] : encoder.state_dict()) {
    const Array<float> rounded = half.state_dict().at(name);
    EXPECT_TRUE(xt::allclose(rounded, values, 0x1p-8, 0)) << name;
  }
}

TEST(ModelFolderTest, ConfigsNameTheTypeOfTheWeights) {
  const xgrad_tests::TemporaryFolder folder;
  save_folder(Encoder<float>(small_config()), folder.path("float"));
  save_folder(Encoder<double>(small_config()), folder.path("double"));
  const auto type = [&](const std::string& name) {
    return nlohmann::json::parse(read_bytes(folder.path(name + "/config.json"))).at("torch_dtype");
  };
  EXPECT_EQ(type("float"), "float32");
  EXPECT_EQ(type("double"), "float64");
}

TEST(PretrainedTest, HeadsMayHaveASizeOfTheirOwn) {
  const NewFolder folder(Family::nomic_bert);
  folder.configure([](nlohmann::json& config) { config["head_dim"] = 6; });
  const Encoder<double> encoder(Config::from_folder(folder.path()));
  const auto shape = [&](const std::string& name) {
    return xgrad::to_string(encoder.state_dict().at("layers.0.self_attn." + name + "_proj.weight").shape());
  };
  for (const char* const name : {"q", "k", "v"}) EXPECT_EQ(shape(name), "(12, 8)");
  EXPECT_EQ(shape("o"), "(8, 12)");
  EXPECT_EQ(xgrad::to_string(encoder(some_input()).last_hidden_state.shape()), "(2, 5, 8)");
}

TEST(PretrainedTest, PositionsMayGoThroughTheProjectionsOfContents) {
  const FolderCopy copy("deberta_v2_mlm");
  copy.change([](std::vector<TensorView>& tensors) {
    for (TensorView& tensor : tensors) {
      const std::size_t at = tensor.name.find("pos_");
      if (at == tensor.name.npos) continue;
      const std::string shared = tensor.name.substr(0, at) + tensor.name.substr(at + 4);
      tensor.bytes = std::ranges::find(tensors, shared, &TensorView::name)->bytes;
    }
  });
  const Array<double> expected = predicted(copy.path());
  copy.configure([](nlohmann::json& config) { config["share_att_key"] = true; });
  copy.rename([](const std::string& name) { return name.find("pos_") == name.npos ? name : ""; });
  xgrad_tests::expect_same_bits(predicted(copy.path()), expected);
}

TEST(PretrainedTest, ScoresAreDividedByTheNumberOfTheirKinds) {
  // Scores with positions that are all 0 only divide the others, by the root of how many kinds there are.
  const auto divided = [](const std::vector<std::string>& kinds) {
    const FolderCopy copy("deberta_v2_mlm");
    copy.configure([&](nlohmann::json& config) { config["pos_att_type"] = kinds; });
    const double larger = std::sqrt(1 + static_cast<double>(kinds.size()));
    std::vector<std::vector<float>> changed;
    copy.change([&](std::vector<TensorView>& tensors) {
      for (TensorView& tensor : tensors) {
        const bool is_of_positions = tensor.name.find(".pos_") != tensor.name.npos;
        if (!is_of_positions && tensor.name.find(".query_proj.") == tensor.name.npos) continue;
        std::vector<float>& values = changed.emplace_back();
        for (const float value : xgrad::to_array<float>(tensor))
          values.push_back(is_of_positions ? 0 : static_cast<float>(value * larger));
        tensor.bytes = std::as_bytes(std::span<const float>(values));
      }
    });
    Notes notes;
    return MaskedLM<double>::from_folder(copy.path(), notes.options())(some_input()).value();
  };
  const Array<double> expected = divided({});
  for (const std::vector<std::string>& kinds : {std::vector<std::string>{"c2p"}, {"p2c"}, {"c2p", "p2c"}}) {
    const Array<double> difference = xt::abs(divided(kinds) - expected);
    EXPECT_LT(xt::amax(difference)(), 1e-5) << kinds.front() << kinds.size();
  }
}

TEST(PretrainedTest, WhatAttentionGivesIsDroppedAsHiddenStatesAre) {
  const FolderCopy copy("bert_sentence");
  copy.configure([](nlohmann::json& config) {
    config.update({{"hidden_dropout_prob", 1}, {"attention_probs_dropout_prob", 0}});
  });
  const auto encoder = Encoder<double>::from_folder(copy.path());
  const auto state = encoder.state_dict();
  encoder.train();
  // With all dropped, the only layer normalises what its first norm makes of zeros, which is its bias.
  const std::string layer = "encoder.layer.0.";
  const Array<double>& x = state.at(layer + "attention.output.LayerNorm.bias");
  const Array<double>& weight = state.at(layer + "output.LayerNorm.weight");
  const Array<double>& bias = state.at(layer + "output.LayerNorm.bias");
  const double mean = xt::mean(x)(), deviation = std::sqrt(xt::variance(x)() + 1e-12);
  const Array<double> states = encoder(some_input()).last_hidden_state.value();
  for (std::size_t i = 0; i < 32; ++i)
    EXPECT_NEAR(states(0, 1, i), (x(i) - mean) / deviation * weight(i) + bias(i), 1e-9);
}

TEST(PretrainedTest, TokensAreDroppedInFrontOfTheirClassifier) {
  for (const Family family : {Family::bert, Family::roberta, Family::electra}) {
    Config config = small_config(family);
    config.pad_token_id = 0;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
    config.classifier_dropout = 1;
    const TokenClassifier<double> model(config);
    EXPECT_NE(model(some_input()).value()(0, 0, 0), 0);
    model.train();
    EXPECT_EQ(model(some_input()).value(), Array<double>(xt::zeros<double>({2, 5, 2}))) << "the biases alone";
  }
}

TEST(PretrainedTest, SequencesOfDistilBertAreClassifiedBehindARelu) {
  const Config config = small_config(Family::distilbert);
  const SequenceClassifier<double> model(config);
  const auto state = model.state_dict();
  const Variable<double> first = select(model.encoder()(some_input()).last_hidden_state, 1, 0);
  const auto linear = [&](const std::string& name, const Variable<double>& x) {
    return xgrad::linear(x, Variable<double>(state.at(name + ".weight")),
                         Variable<double>(state.at(name + ".bias")));
  };
  const Array<double> expected = linear("classifier", relu(linear("pre_classifier", first))).value();
  const Array<double> got = model(some_input()).value();
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got.data()[i], expected.data()[i], 1e-14);
}

TEST(PretrainedTest, TokensWithoutTypesAreOfTheFirst) {
  const Encoder<double> encoder(small_config());
  const Ids ids{{2, 7, 9}};
  EXPECT_EQ(encoder({ids}).last_hidden_state.value(),
            encoder({ids, {}, Ids{{0, 0, 0}}}).last_hidden_state.value());
}

TEST(PretrainedTest, NewEncodersHaveTheirPooler) {
  EXPECT_TRUE(Encoder<double>(small_config())(some_input()).pooler_output.defined());
}

TEST(PretrainedTest, AnswersInFrontOfTheTextAreAtItsFirstToken) {
  const QuestionAnswerer<double> model(small_config());
  EXPECT_EQ(model.loss(some_input(), Ids{-5, 2}, Ids{-1, 3}).item(),
            model.loss(some_input(), Ids{0, 2}, Ids{0, 3}).item());
}

TEST(PretrainedTest, TheLastHiddenStateIsBehindThoseOfTheEmbeddingsAndTheLayers) {
  const Encoder<double> encoder(small_config());
  const EncoderOutput<double> output = encoder(some_input(), {.hidden_states = true});
  ASSERT_EQ(output.hidden_states.size(), 4U);
  xgrad_tests::expect_same_bits(output.hidden_states.back().value(), output.last_hidden_state.value());
}

TEST(PretrainedTest, RotaryPositionsFollowTheLengthOfASequence) {
  const NewFolder folder(Family::nomic_bert);
  const std::string original = read_bytes(folder.path() + "/config.json");
  const auto states = [&](const nlohmann::json& fields, const Ids& ids) {
    folder.configure([&](nlohmann::json& config) {
      config = nlohmann::json::parse(original);
      config.erase("rope_theta");
      config.update(fields);
    });
    return hidden(folder.path(), {ids});
  };
  const auto rotary = [](nlohmann::json fields) {
    fields["rope_theta"] = fields.value("rope_theta", 100.0);
    return nlohmann::json{{"rope_parameters", fields}};
  };
  const auto expect_near = [](const Array<double>& got, const Array<double>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.data()[i], want.data()[i], 1e-13);
  };
  const Ids shorter{{5, 6, 7, 8}}, longer{{5, 6, 7, 8, 9}};
  const nlohmann::json plain = rotary({{"rope_type", "default"}}),
                       slower = rotary({{"rope_type", "linear"}, {"factor", 2}});
  EXPECT_FALSE(states(plain, longer) == states(slower, longer));

  const nlohmann::json on_the_hub{
      {"rotary_emb_base", 100}, {"rotary_scaling_factor", 2}, {"max_trained_positions", 4}};
  xgrad_tests::expect_same_bits(states(on_the_hub, shorter), states(plain, shorter));
  const double theta = 100 * std::pow(2 * 5 / 4.0 - 1, 4 / (4 - 2.0));
  expect_near(states(on_the_hub, longer),
              states(rotary({{"rope_type", "default"}, {"rope_theta", theta}}), longer));

  const nlohmann::json of_two_lengths = rotary({{"rope_type", "longrope"},
                                                {"short_factor", {1, 1}},
                                                {"long_factor", {2, 2}},
                                                {"attention_factor", 1},
                                                {"original_max_position_embeddings", 4}});
  expect_near(states(of_two_lengths, shorter), states(plain, shorter));
  expect_near(states(of_two_lengths, longer), states(slower, longer));
}

TEST(PretrainedTest, PositionsThatNoTextReachesTakeNoMemory) {
  for (const Family family : {Family::nomic_bert, Family::eurobert, Family::modernbert}) {
    Config config = small_config(family);
    config.hidden_size = config.embedding_size = 4096;
    config.num_attention_heads = 1;
    config.num_hidden_layers = 0;
    config.pad_token_id = 0;
    config.max_position_embeddings = std::size_t{1} << 24;  // times 4096 angles
    const Encoder<double> encoder(config);
    EXPECT_EQ(xgrad::to_string(encoder({Ids{{5, 6, 7}}}).last_hidden_state.shape()), "(1, 3, 4096)");
  }
}

TEST(PretrainedTest, BothSpellingsOfTheLayersOfModernBertAreOneModel) {
  const FolderCopy copy("modernbert_cls");
  Ids ids(Shape{1, 20});
  for (std::size_t i = 0; i < ids.size(); ++i) ids(0, i) = static_cast<std::int64_t>(i + 5);
  const Input input{ids};
  const Array<double> every_third = hidden(copy.path(), input);
  const auto states = [&](const char* field, const nlohmann::json& value) {
    copy.configure([&](nlohmann::json& config) {
      config.erase("global_attn_every_n_layers");
      config[field] = value;
    });
    return hidden(copy.path(), input);
  };
  const Array<double> every_second = states("global_attn_every_n_layers", 2);
  EXPECT_GT(xgrad_tests::relative_difference(every_second, every_third), 1e-4);
  const char *const full = "full_attention", *const sliding = "sliding_attention";
  xgrad_tests::expect_same_bits(states("layer_types", {full, sliding, full, sliding}), every_second);
}

TEST(PretrainedTest, NewModernBertsHaveTheLayersThatTheirFolderHas) {
  const NewFolder folder(Family::modernbert);
  Config config = small_config(Family::modernbert);
  config.pad_token_id = 0;
  xgrad::manual_seed(6);
  const MaskedLM<double> model(config);
  const Input input{some_input().input_ids};
  xgrad_tests::expect_same_bits(MaskedLM<double>::from_folder(folder.path())(input).value(),
                                model(input).value());
}

TEST(PretrainedTest, FrozenLayersGetNoGradientsAndTheOthersTheSame) {
  for (const Family family : {Family::bert, Family::distilbert}) {
    xgrad::manual_seed(3);
    const TokenClassifier<double> model(small_config(family));
    const Ids labels{{0, 1, 0, 1, -100}, {1, 1, -100, -100, -100}};
    model.loss(some_input(), labels).backward();
    std::map<std::string, Array<double>> whole;
    for (const auto& [name, parameter] : model.named_parameters()) whole[name] = parameter.grad().value();
    model.zero_grad();

    const TokenClassifier<double> same = model;
    same.encoder().freeze(2);
    std::set<std::string> trainable;
    for (const auto& [name, parameter] : model.trainable_parameters()) trainable.insert(name);
    EXPECT_LT(trainable.size(), whole.size());
    model.loss(some_input(), labels).backward();
    for (const auto& [name, parameter] : model.named_parameters()) {
      SCOPED_TRACE(name);
      const bool frozen = name.find("embeddings") != name.npos || name.find("layer.0.") != name.npos ||
                          name.find("layer.1.") != name.npos;
      EXPECT_EQ(trainable.contains(name), !frozen);
      EXPECT_EQ(parameter.has_grad(), !frozen);
      if (!frozen) xgrad_tests::expect_same_bits(parameter.grad().value(), whole[name]);
    }
    model.encoder().freeze(3);
    EXPECT_EQ(model.trainable_parameters().size(), 2U) << "the classifier's";
    const MaskedLM<double> masked(small_config(family));
    masked.encoder().freeze(0);
    masked.loss(some_input(), labels).backward();
    EXPECT_FALSE(masked.encoder().word_embeddings().has_grad()) << "the decoder's are the same";
    model.encoder().freeze({});
    EXPECT_EQ(model.trainable_parameters().size(), whole.size());
    EXPECT_EQ(message_of<ValueError>([&] { model.encoder().freeze(4); }),
              "Encoder: freeze must name at most the 3 layers, got 4");
  }
}

TEST(PretrainedTest, TrainableParametersBeginWithTheEncoders) {
  const MaskedLM<double> model(small_config());
  const auto list = model.trainable_parameters();
  EXPECT_FALSE(model.named_parameters().front().first.starts_with("bert."));
  EXPECT_TRUE(list.front().first.starts_with("bert."));
  EXPECT_TRUE(
      std::ranges::is_partitioned(list, [](const auto& one) { return one.first.starts_with("bert."); }));
}

TEST(PretrainedTest, PositionsThatLayersShareAreFrozenWithTheEmbeddings) {
  const auto model = MaskedLM<double>::from_folder(model_folder("deberta_v2_mlm"));
  model.encoder().freeze(1);
  model.loss(some_input(), Ids{{2, -100, 9, -100, 3}, {-100, 11, -100, -100, -100}}).backward();
  for (const auto& [name, parameter] : model.named_parameters()) {
    const bool trains = name.find("layer.1.") != name.npos || name.starts_with("lm_predictions.");
    EXPECT_EQ(parameter.has_grad(), trains) << name;
  }
}

TEST(PretrainedTest, SkippingPaddingChangesNoLossAndNoGradient) {
  for (const Family family : {Family::bert, Family::distilbert, Family::roberta}) {
    xgrad::manual_seed(4);
    Config config = small_config(family);
    config.pad_token_id = 0;
    const TokenClassifier<double> model(config);
    for (const Ids& mask : {Ids{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}, Ids{{1, 1, 1, 1, 1}, {0, 0, 1, 1, 1}},
                            Ids{{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}}) {
      Input input = some_input();
      input.attention_mask = mask;
      Ids labels = mask;
      for (std::int64_t& label : labels) label = label == 0 ? -100 : 1;
      model.encoder().skip_padding(false);
      model.zero_grad();
      const Variable<double> whole = model.loss(input, labels);
      whole.backward();
      std::map<std::string, Array<double>> gradients;
      for (const auto& [name, parameter] : model.named_parameters())
        gradients[name] = parameter.grad().value();
      const Array<double> states = model.encoder()(input).last_hidden_state.value();

      model.encoder().skip_padding();
      model.zero_grad();
      const Variable<double> skipped = model.loss(input, labels);
      skipped.backward();
      EXPECT_NEAR(skipped.item(), whole.item(), 1e-13);
      for (const auto& [name, parameter] : model.named_parameters()) {
        const Array<double> difference = xt::abs(parameter.grad().value() - gradients[name]);
        EXPECT_LT(xt::amax(difference)(), 1e-13) << name;
      }
      const Array<double> left = model.encoder()(input).last_hidden_state.value();
      const bool skips = mask(1, 0) != 0;  // sequences begin with tokens
      for (std::size_t row = 0; row < 2; ++row) {
        for (std::size_t i = 0; i < 5; ++i)
          EXPECT_NEAR(left(row, i, 3), skips && mask(row, i) == 0 ? 0 : states(row, i, 3), 1e-13);
      }
    }
  }
}

TEST(PretrainedTest, HiddenStatesOfAllLayersAreThoseWithPadding) {
  const Encoder<double> encoder(small_config());
  encoder.skip_padding(false);
  const auto whole = encoder(some_input(), {.hidden_states = true}).hidden_states;
  encoder.skip_padding();
  const auto same = encoder(some_input(), {.hidden_states = true}).hidden_states;
  ASSERT_EQ(same.size(), 4U);
  for (std::size_t i = 0; i < same.size(); ++i)
    xgrad_tests::expect_same_bits(same[i].value(), whole[i].value());
}

TEST(PretrainedTest, ALossWithoutLabelsIsNanAndLabelsMustFit) {
  const MaskedLM<float> model(small_config());
  EXPECT_TRUE(std::isnan(model.loss(some_input(), Ids(-100 * xt::ones<std::int64_t>({2, 5}))).item()));
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              model.loss(some_input(), Ids{{1, 2}, {3, 4}});
            }),
            "loss: labels must be (batch, length), got (2, 2) for hidden states (2, 5, 8)");
  EXPECT_EQ(message_of<xgrad::IndexError>([&] {
              model.loss(some_input(), Ids{{1, -1, -100, 3, 4}, {1, 2, 3, 4, 5}});
            }),
            "cross_entropy: target must be in [0, 30), got -1 (30 classes)");
}

/// Central differences of the loss by each parameter.
template <class Loss>
void check_gradients(const xgrad::Module<double>& model, const Loss& loss) {
  model.zero_grad();
  loss().backward();
  for (const auto& [name, parameter] : model.named_parameters()) {
    Array<double> values = parameter.value();
    const std::size_t at = values.size() / 2;
    const double kept = values.data()[at], h = 1e-5;
    const double gradient = parameter.has_grad() ? parameter.grad().value().data()[at] : 0;
    double sides[2];
    for (const int side : {0, 1}) {
      values.data()[at] = kept + (side == 0 ? -h : h);
      parameter.assign(values);
      sides[side] = loss().item();
    }
    values.data()[at] = kept;
    parameter.assign(values);
    const double expected = (sides[1] - sides[0]) / (2 * h);
    EXPECT_NEAR(gradient, expected, 1e-8 * (1 + std::abs(expected))) << name;
  }
}

TEST(PretrainedTest, LossesOfAllHeadsHaveTheirGradients) {
  xgrad::manual_seed(5);
  for (const Family family : {Family::bert, Family::distilbert, Family::roberta, Family::electra}) {
    Config config = small_config(family);
    if (family == Family::electra) config.embedding_size = 4;
    config.pad_token_id = 0;
    const Input input = some_input();
    const SequenceClassifier<double> sequence(config);
    check_gradients(sequence, [&] { return sequence.loss(input, Ids{1, 0}); });
    check_gradients(sequence, [&] { return sequence.loss(input, Array<double>{{1, 0}, {1, 1}}); });
    const QuestionAnswerer<double> answers(config);
    const double loss = answers.loss(input, Ids{1, 2}, Ids{3, 9}).item();
    answers.encoder().skip_padding();
    EXPECT_EQ(answers.loss(input, Ids{1, 2}, Ids{3, 9}).item(), loss) << "it is over padding, too";
    check_gradients(answers, [&] { return answers.loss(input, Ids{1, 2}, Ids{3, 9}); });
    const MaskedLM<double> masked(config);
    check_gradients(masked, [&] {
      return masked.loss(input, Ids{{-100, 5, -100, 6, -100}, {-100, 7, -100, -100, -100}});
    });
  }
  const NextSentence<double> next(small_config());
  check_gradients(next, [&] { return next.loss(some_input(), Ids{1, 0}); });
}

TEST(PretrainedTest, ProblemTypesHaveTheirLosses) {
  xgrad::manual_seed(5);
  Config config = small_config();
  config.id2label = {"score"};
  const SequenceClassifier<double> regression(config);
  const Array<double> scores{0.5, -1};
  const Array<double> logits = regression(some_input()).value();
  const double first = logits(0, 0) - 0.5, second = logits(1, 0) + 1;
  EXPECT_NEAR(regression.loss(some_input(), scores).item(), (first * first + second * second) / 2, 1e-15);
  EXPECT_EQ(message_of<ValueError>([&] {
              regression.loss(some_input(), Ids{1, 0});
            }),
            "SequenceClassifier: a model with one label predicts a number: pass the targets as an Array");
  config.problem_type = ProblemType::multi_label_classification;
  xgrad::manual_seed(5);
  const SequenceClassifier<double> binary(config);
  const Array<double> targets{1, 0};
  EXPECT_NEAR(binary.loss(some_input(), targets).item(),
              (std::log1p(std::exp(-logits(0, 0))) + std::log1p(std::exp(logits(1, 0)))) / 2, 1e-14);
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              binary.loss(some_input(), Array<double>{1.0, 0.0, 1.0});
            }),
            "SequenceClassifier: targets must be (batch, labels), got (3) for logits (2, 1)");
}

/// Whether Model takes labels of this type.
template <class Model, class Labels>
concept TakesLabels = requires(const Model& model, const Input& input, const Labels& labels) {
  model.loss(input, labels);
};

TEST(PretrainedTest, LabelsAreIntegers) {
  static_assert(TakesLabels<MaskedLM<float>, Ids> && !TakesLabels<MaskedLM<float>, Array<float>>);
  static_assert(TakesLabels<TokenClassifier<float>, Ids> &&
                !TakesLabels<TokenClassifier<float>, Array<float>>);
  static_assert(TakesLabels<NextSentence<float>, Ids> && !TakesLabels<NextSentence<float>, Array<double>>);
  static_assert(TakesLabels<Discriminator<float>, Ids> && !TakesLabels<Discriminator<float>, xgrad::Mask>);
  static_assert(TakesLabels<SequenceClassifier<float>, Ids> &&
                TakesLabels<SequenceClassifier<float>, Array<float>>);
}

TEST(PretrainedTest, RefusesInputThatDoesNotFit) {
  const Encoder<float> encoder(small_config());
  const auto refusal = [&](const Input& input) { return message_of([&] { encoder(input); }); };
  EXPECT_EQ(refusal({Ids{1, 2}}), "Encoder: input_ids must be (batch, length), got (2)");
  EXPECT_EQ(refusal({Ids::from_shape({2, 0})}), "Encoder: input_ids must be (batch, length), got (2, 0)");
  EXPECT_EQ(refusal({Ids(xt::zeros<std::int64_t>({1, 13}))}),
            "Encoder: input_ids must have at most 12 positions, got (1, 13)");
  EXPECT_EQ(refusal({Ids{{1, 2}}, Ids::from_shape({1, 1})}),
            "Encoder: attention_mask must have the shape of input_ids, got (1, 1) and (1, 2)");
  EXPECT_EQ(refusal({Ids{{1, 2}}, {}, Ids::from_shape({1, 1})}),
            "Encoder: token_type_ids must have the shape of input_ids, got (1, 1) and (1, 2)");
  EXPECT_EQ(refusal({Ids{{1, 30}}}),
            "embeddings.word_embeddings: embedding: ids must be in [0, 30), got 30 (vocabulary size 30)");
  Config electra = small_config(Family::electra);
  EXPECT_EQ(message_of<ValueError>([&] { PreTraining<float>{electra}; }),
            "PreTraining: needs a bert model, as no other has this head");
  EXPECT_EQ(message_of<ValueError>([&] { Discriminator<float>{small_config()}; }),
            "Discriminator: needs an electra model, as no other has this head");
}

TEST(PretrainedTest, DecayGroupsLeaveBiasesAndNormsOut) {
  const MaskedLM<float> model(small_config(Family::roberta));
  const auto groups = decay_groups(model.trainable_parameters(), {.lr = 1e-3, .weight_decay = 0.1});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].options.weight_decay, 0.1);
  EXPECT_EQ(groups[1].options.weight_decay, 0);
  for (const auto& parameter : groups[0].parameters) EXPECT_EQ(parameter.dimension(), 2U);
  for (const auto& parameter : groups[1].parameters) EXPECT_EQ(parameter.dimension(), 1U);
  EXPECT_EQ(groups[0].parameters.size() + groups[1].parameters.size(), model.parameters().size());
}

}  // namespace model_test
