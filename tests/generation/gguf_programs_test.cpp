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
  const auto decoder = CausalLM<float>::from_folder(model("llama_q8_0"));
  // Of the last `count` tokens of a window.
  const auto loss = [&](std::size_t begin, std::size_t end, std::size_t count) {
    const auto at = [&](std::size_t i) { return ids.begin() + static_cast<std::ptrdiff_t>(i); };
    const xgrad::Ids window = xgrad::pad_sequence({{at(begin), at(end)}});
    xgrad::Ids labels = window;
    for (std::size_t i = 0; i + count < labels.size(); ++i) labels(0, i) = -100;
    return static_cast<double>(decoder.loss({window}, labels).item());
  };
  const auto expected = [&](double mean) {
    char line[100];
    std::snprintf(line, sizeof line, "perplexity %.4f, loss %.4f, %zu tokens\n", std::exp(mean), mean,
                  ids.size());
    return std::string(line);
  };
  const std::string command = "perplexity " + model("llama_q8_0") + " " + folder.write("text", text);
  const std::size_t size = ids.size(), stride = size / 2;
  EXPECT_EQ(output_of(command), expected(loss(0, size, size - 1)));
  // The second window counts the tokens that the first did not have, and weighs by one less, as Hugging
  // Face's page.
  const std::size_t first = size - 4, rest = 4;
  const double sum = loss(0, first, first - 1) * static_cast<double>(first - 1) +
                     loss(stride, size, rest) * static_cast<double>(rest - 1);
  EXPECT_EQ(
      output_of(command + " --max-length " + std::to_string(first) + " --stride " + std::to_string(stride)),
      expected(sum / static_cast<double>(first + rest - 2)));
}

TEST(GgufProgramsTest, BrokenFilesAreRefusedByName) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.gguf", "GGUF\3");
  EXPECT_EQ(error_of("generate " + path + " text").substr(0, 10 + path.size() + 2),
            "generate: " + path + ": ");
}

}  // namespace gguf_programs_test
