// export_onnx, run_onnx and inspect, from the files that they read to what they write and refuse.

#include <filesystem>

#include <gtest/gtest.h>

#include <xgrad/files.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../files.hpp"
#include "../program.hpp"
#include "model_builder.hpp"

namespace programs_test {

using xgrad::Array, xgrad::Ids;
using xgrad_tests::error_of, xgrad_tests::ModelBuilder, xgrad_tests::output_of, xgrad_tests::read_bytes,
    xgrad_tests::run_program, xgrad_tests::TemporaryFolder;

const std::string classifier = XGRAD_PRETRAINED_DIR "/bert_classifier";

class OnnxProgramsTest : public testing::Test {
 protected:
  /// y = x w + (1, 1), of x (open, 2).
  std::string small_graph() const {
    ModelBuilder builder;
    builder.input("x", 1, {-1, 2});
    builder.output("y");
    builder.floats("w", {2, 2}, {1, -2, 0.5F, 4});
    builder.floats("ones", {2}, {1, 1});
    builder.node("MatMul", {"x", "w"}, {"xw"});
    builder.node("Add", {"xw", "ones"}, {"y"});
    return folder_.write("small.onnx", builder.bytes());
  }

  template <class T>
  std::string npy(const std::string& name, const Array<T>& array) const {
    xgrad::save_npy(array, folder_.path(name));
    return folder_.path(name);
  }

  TemporaryFolder folder_;
};

TEST_F(OnnxProgramsTest, InspectListsValuesOperatorsAndParameters) {
  EXPECT_EQ(output_of("inspect " + small_graph()),
            "input  type   shape\n"
            "x      FLOAT  (open, 2)\n"
            "\n"
            "output  type   shape\n"
            "y       FLOAT  ()\n"
            "\n"
            "operator  count\n"
            "Add           1\n"
            "MatMul        1\n"
            "\n"
            "name  dtype  shape   min  max  nan\n"
            "w     F32    (2, 2)   -2    4    0\n"
            "ones  F32    (2)       1    1    0\n"
            "2 tensors, 6 elements, 24 bytes\n");
}

TEST_F(OnnxProgramsTest, RunPrintsOrSavesOutputs) {
  const std::string run =
      "run_onnx " + small_graph() + " --input x=" + npy("x.npy", Array<float>{{1, 2}, {0, 0}});
  EXPECT_EQ(output_of(run),
            "y (2, 2)\n"
            "tensor([[3., 7.],\n"
            "        [1., 1.]])\n");
  EXPECT_EQ(output_of(run + " --output y=" + folder_.path("y.npy")), "");
  xgrad_tests::expect_same_bits(xgrad::load_npy<float>(folder_.path("y.npy")), Array<float>{{3, 7}, {1, 1}});
}

TEST_F(OnnxProgramsTest, AnExportedFolderGivesTheModelsLogits) {
  const std::string out = folder_.path("out");
  EXPECT_EQ(output_of("export_onnx " + classifier + " " + out), "");
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"})
    EXPECT_EQ(read_bytes(out + "/" + name), read_bytes(classifier + "/" + name)) << name;

  const Ids ids{{2, 30, 41, 3}, {2, 50, 3, 0}}, mask{{1, 1, 1, 1}, {1, 1, 1, 0}},
      types{{0, 0, 1, 1}, {0, 0, 0, 0}};
  output_of("run_onnx " + out + "/onnx/model.onnx --input input_ids=" + npy("ids.npy", ids) +
            " --input attention_mask=" + npy("mask.npy", mask) + " --input token_type_ids=" +
            npy("types.npy", types) + " --output logits=" + folder_.path("logits.npy"));
  const auto model = xgrad::pretrained::SequenceClassifier<float>::from_folder(classifier);
  model.eval();
  const Array<float> expected = model({ids, mask, types}).value();
  const Array<float> got = xgrad::load_npy<float>(folder_.path("logits.npy"));
  ASSERT_EQ(got.shape(), expected.shape());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got.data()[i], expected.data()[i], 1e-6) << i;
}

TEST_F(OnnxProgramsTest, ASentenceEncoderTakesItsPoolingAlong) {
  const std::string from = folder_.path("model"), out = folder_.path("out");
  std::filesystem::copy(XGRAD_PRETRAINED_DIR "/st_dense_identity", from,
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(from + "/other");
  std::filesystem::create_directory(from + "/1_Pooling/deeper");
  folder_.write("model/other/notes.txt", "notes");
  folder_.write("model/model.safetensors.index.json", "{}");
  output_of("export_onnx " + from + " " + out + " --opset 18");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(from)) {
    const std::string name = std::filesystem::relative(entry.path(), from).string();
    const bool is_weights = name.ends_with(".safetensors") && name.find('/') == std::string::npos;
    const bool stays =
        is_weights || name.ends_with(".index.json") || name.starts_with("other") || name.ends_with("deeper");
    EXPECT_EQ(std::filesystem::exists(out + "/" + name), !stays) << name;
    if (stays || !entry.is_regular_file()) continue;
    EXPECT_TRUE(read_bytes(out + "/" + name) == read_bytes(entry.path())) << name;
  }
  const xgrad::onnx::Graph<float> graph(out + "/onnx/model.onnx");
  EXPECT_EQ(graph.outputs()[0].name, "last_hidden_state");
  EXPECT_EQ(error_of("export_onnx " + from + " " + out + " --opset 16", 2),
            "export_onnx: --opset: must be a number in [17, 23], got 16; --help lists the arguments\n");
}

TEST_F(OnnxProgramsTest, AFolderCanGetItsOwnModel) {
  const std::string folder = folder_.path("model");
  std::filesystem::copy(classifier, folder);
  const std::string before = read_bytes(folder + "/config.json");
  output_of("export_onnx " + folder + " " + folder);
  EXPECT_EQ(read_bytes(folder + "/config.json"), before);
  EXPECT_TRUE(std::filesystem::exists(folder + "/onnx/model.onnx"));
}

TEST_F(OnnxProgramsTest, AnExportDoesNotMixWithAnotherModel) {
  const std::string folder = folder_.path("model"), sentence = XGRAD_PRETRAINED_DIR "/bert_sentence";
  std::filesystem::copy(sentence, folder, std::filesystem::copy_options::recursive);
  const std::string before = read_bytes(folder + "/config.json");
  for (const char* name : {"model.safetensors", "modules.json", "sentence_bert_config.json"}) {
    EXPECT_EQ(
        error_of("export_onnx " + classifier + " " + folder),
        "export_onnx: " + folder + "/" + name +
            ": is of another model, and would stay beside the saved files and be read with them; remove "
            "it, or save to another folder\n");
    std::filesystem::remove(folder + "/" + name);
  }
  EXPECT_EQ(read_bytes(folder + "/config.json"), before);
  EXPECT_FALSE(std::filesystem::exists(folder + "/onnx"));
  EXPECT_EQ(output_of("export_onnx " + classifier + " " + folder), "");
}

TEST_F(OnnxProgramsTest, ExportRefusesWhatIsNoModel) {
  const std::string missing = folder_.path("missing"), out = folder_.path("out");
  EXPECT_EQ(error_of("export_onnx", 2), "export_onnx: model is required; --help lists the arguments\n");
  EXPECT_EQ(error_of("export_onnx " + missing + " " + out + ".onnx"),
            "export_onnx: " + missing + ": must be the folder of a model, got no such path\n");
  EXPECT_EQ(error_of("export_onnx " + classifier + "/model.safetensors " + out),
            "export_onnx: " + out + ": the file must end with .onnx\n");
  EXPECT_EQ(error_of("export_onnx " + classifier + "/model.safetensors " + out + ".onnx"),
            "export_onnx: " + classifier + "/model.safetensors: the metadata \"task\" must be there\n");
  xgrad::save_safetensors<float>({{"w", Array<float>{1}}}, folder_.path("other"), {{"task", "chess"}});
  EXPECT_EQ(error_of("export_onnx " + folder_.path("other") + " " + out + ".onnx"),
            "export_onnx: " + folder_.path("other") +
                ": the metadata \"task\" must be 'tags' or 'word classes', got 'chess'\n");
  const std::string gguf = folder_.write("model.gguf", "GGUF");
  EXPECT_EQ(error_of("export_onnx " + gguf + " " + out + ".onnx"),
            "export_onnx: " + gguf + ": is a GGUF file; encoders are exported, decoders are not\n");
  EXPECT_EQ(error_of("export_onnx " + std::string(XGRAD_PRETRAINED_DIR) + "/tokenizer " + out),
            "export_onnx: " XGRAD_PRETRAINED_DIR
            "/tokenizer/config.json: cannot be read: No such file or directory\n");
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(out + ".onnx"));
}

TEST_F(OnnxProgramsTest, RunRefusesWhatDoesNotFit) {
  const std::string run = "run_onnx " + small_graph(), x = npy("x.npy", Array<float>{{1, 2}});
  const std::string ids = npy("ids.npy", Ids{{1, 2}}), flat = npy("flat.npy", Array<float>{1, 2});
  EXPECT_EQ(error_of("run_onnx " + folder_.path("missing")),
            "run_onnx: " + folder_.path("missing") + ": cannot be read: No such file or directory\n");
  EXPECT_EQ(error_of("run_onnx " + x),
            "run_onnx: " + x +
                ": is not an ONNX file (byte 2 of a message: no field has wire type 3 and number 1250)\n");
  for (const auto& [begin, what] :
       {std::pair{"GGUF", "is a GGUF file, not an ONNX file"},
        {"PK\3\4", "is a zip archive, not an ONNX file"},
        {"text,label\n", "is not an ONNX file (byte 1 of a message: no field has wire type 4 and number 14)"},
        {"", "is not an ONNX file (there is no graph with nodes)"}}) {
    const std::string other = folder_.write("other", begin);
    EXPECT_EQ(error_of("run_onnx " + other), "run_onnx: " + other + ": " + what + "\n");
  }
  EXPECT_EQ(error_of(run), "run_onnx: input \"x\" is missing\n");
  EXPECT_EQ(error_of(run + " --input x", 2),
            "run_onnx: --input: must be NAME=FILE, got x; --help lists the arguments\n");
  EXPECT_EQ(error_of(run + " --input x=" + x + " --input z=" + x), "run_onnx: there is no input \"z\"\n");
  EXPECT_EQ(error_of(run + " --input x=" + x + " --input x=" + x),
            "run_onnx: there are two files for the input x\n");
  EXPECT_EQ(error_of(run + " --input x=" + ids), "run_onnx: input \"x\" must hold floats, got integers\n");
  EXPECT_EQ(error_of(run + " --input x=" + flat),
            "run_onnx: input \"x\" must have the shape (open, 2), got (2)\n");
  EXPECT_EQ(error_of(run + " --input x=" + x + " --output z=" + flat), "run_onnx: there is no output z\n");
}

}  // namespace programs_test
