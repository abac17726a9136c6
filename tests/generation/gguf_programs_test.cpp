// generate and perplexity with GGUF files.

#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include <xgrad/pretrained.hpp>
#include <xgrad/tokenizers.hpp>
#include <xgrad/xgrad.hpp>

#include "../data_folder.hpp"
#include "../program.hpp"
#include "../programs/json_file.hpp"
#include "../temporary_folder.hpp"

namespace gguf_programs_test {

using namespace xgrad::pretrained;
using xgrad_tests::error_of, xgrad_tests::output_of, xgrad_tests::TemporaryFolder;
using Tokens = std::vector<std::int64_t>;

std::string model(const std::string& name) { return xgrad_tests::data_folder("gguf") + name + ".gguf"; }

TEST(GgufProgramsTest, TextsAreContinuedWithTheTokensOfTransformers) {
  const nlohmann::json cases = xgrad_tests::read_json(xgrad_tests::data_folder("gguf") + "cases.json");
  for (const char* const name : {"llama_q8_0", "gpt2_q8_0", "qwen2_q8_0"}) {
    const auto tokenizer = load_tokenizer(model(name));
    Tokens all = cases.at(name).at("ids").at(0).get<Tokens>();
    for (const std::int64_t token : cases.at(name).at("greedy").at(0).get<Tokens>()) all.push_back(token);
    EXPECT_EQ(output_of("generate " + model(name) + " 'the cat sat' --max-new-tokens 12"),
              tokenizer.decode(all) + "\n")
        << name;
  }
}

TEST(GgufProgramsTest, PerplexityIsThatOfTheModel) {
  const TemporaryFolder folder;
  const std::string text = "It's 12 o'clock.\nwe'll read 345 lines\n";
  const Tokens ids = load_tokenizer(model("llama_q8_0")).encode(text).ids;
  const xgrad::Ids batch = xgrad::pad_sequence({{ids.begin(), ids.end()}});
  const auto loss = CausalLM<float>::from_folder(model("llama_q8_0")).loss({batch}, batch).item();
  char expected[100];
  std::snprintf(expected, sizeof expected, "perplexity %.4f, loss %.4f, %zu tokens\n",
                std::exp(static_cast<double>(loss)), static_cast<double>(loss), ids.size());
  EXPECT_EQ(output_of("perplexity " + model("llama_q8_0") + " " + folder.write("text", text)), expected);
}

TEST(GgufProgramsTest, BrokenFilesAreRefusedByName) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.gguf", "GGUF\3");
  EXPECT_EQ(error_of("generate " + path + " text").substr(0, 10 + path.size() + 2),
            "generate: " + path + ": ");
}

}  // namespace gguf_programs_test
