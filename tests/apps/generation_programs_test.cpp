// generate and perplexity, with a model that train_gpt saved and with a pretrained decoder.

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/models/text_model.hpp"
#include "files.hpp"
#include "program.hpp"

namespace generation_programs_test {

using xgrad_tests::error_of, xgrad_tests::output_of, xgrad_tests::ProgramResult, xgrad_tests::run_program;

/// A model that has learned one sentence, with a context of 16 characters.
class GenerationPrograms : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<xgrad_tests::TemporaryFolder>();
    model_ = folder_->path("model");
    std::string text;
    for (int i = 0; i < 100; ++i) text += "the cat sat on the mat.\n";
    const std::string arguments =
        "train_gpt --text " + folder_->write("text", text) + " --save " + model_ +
        " --d-model 16 --heads 2 --d-ff 32 --layers 1 --context 16 --lr 0.02 --steps 200 --sample-length 0";
    ASSERT_EQ(run_program(arguments + " >/dev/null 2>&1").exit_code, 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static inline std::unique_ptr<xgrad_tests::TemporaryFolder> folder_;
  static inline std::string model_;
};

TEST_F(GenerationPrograms, TextsAreContinuedWithTheMostProbableTokens) {
  const std::string sentence = "the cat sat on the mat.\n";
  EXPECT_EQ(output_of("generate " + model_ + " 'the c' 'the m' --max-new-tokens 18"),
            "the cat sat on the mat.\nthe mat.\nthe cat sat on\n");
  const std::string longer = output_of("generate " + model_ + " 'the cat sat' --max-new-tokens 60");
  EXPECT_EQ(longer, sentence + sentence + sentence) << "beyond the context";
  EXPECT_EQ(output_of("generate " + model_ + " --max-new-tokens 5 <<'END'\nthe c\nsat\nEND"),
            "the cat sa\nsat on t\n");
}

TEST_F(GenerationPrograms, TextsEndBehindAStopString) {
  EXPECT_EQ(output_of("generate " + model_ + " 'the cat s' --stop-string 'the m' --stop-string 'dog'"),
            "the cat sat on the m\n");
  EXPECT_EQ(output_of("generate " + model_ + " 'the cat s' --stop-string 'sat'"), "the cat sat\n")
      << "which begins in the prompt";
  EXPECT_EQ(output_of("generate " + model_ + " 'the cat' --stop-string 'at' --max-new-tokens 5"),
            "the cat sat\n")
      << "one that the prompt ends with does not count";
  EXPECT_EQ(error_of("generate " + model_ + " 'the c' --stop-string ''"),
            "generate: generation: stop_strings must be texts with characters, got an empty one\n");
}

TEST_F(GenerationPrograms, DrawnTokensDependOnTheSeed) {
  const auto drawn = [&](const std::string& more) {
    return output_of("generate " + model_ + " t --max-new-tokens 80 --temperature 5 --do-sample " + more);
  };
  EXPECT_EQ(drawn("--seed 1"), drawn("--seed 1"));
  EXPECT_NE(drawn("--seed 1"), drawn("--seed 2"));
  EXPECT_EQ(drawn("--top-k 1"), output_of("generate " + model_ + " t --max-new-tokens 80"));
  EXPECT_EQ(drawn("--top-p 0.01"), output_of("generate " + model_ + " t --max-new-tokens 80"));
  EXPECT_EQ(drawn("--min-p 1"), output_of("generate " + model_ + " t --max-new-tokens 80"));
}

TEST_F(GenerationPrograms, RepetitionCanBePrevented) {
  const std::string text =
      output_of("generate " + model_ + " 'the cat' --max-new-tokens 60 --no-repeat-ngram-size 5");
  for (std::size_t i = 0; i + 5 < text.size(); ++i)
    EXPECT_EQ(text.find(text.substr(i, 5), i + 1), text.npos) << text.substr(i, 5);
  EXPECT_NE(output_of("generate " + model_ + " 'the cat' --max-new-tokens 60 --repetition-penalty 100"),
            output_of("generate " + model_ + " 'the cat' --max-new-tokens 60"));
}

TEST_F(GenerationPrograms, AnInterruptionKeepsWhatWasWritten) {
  const std::string fifo = folder_->path("fifo"), rest = folder_->path("rest");
  const ProgramResult result = xgrad_tests::run_command(
      "mkfifo " + fifo + "; " + XGRAD_PROGRAMS_DIR + "/generate " + model_ +
      " 'the c' --max-new-tokens 100000 >" + fifo + " & exec 3<" + fifo +
      "; read -r line <&3; kill -TERM $!; cat <&3 >" + rest + "; wait $!; echo \"$? $line\"");
  EXPECT_EQ(result.output, "143 the cat sat on the mat.\n");
  EXPECT_TRUE(xgrad_tests::read_bytes(rest).ends_with("\n")) << xgrad_tests::read_bytes(rest);
}

TEST_F(GenerationPrograms, GenerateRefusesWhatCannotBe) {
  EXPECT_EQ(error_of("generate " + model_ + " Xat"),
            "generate: the text that the model learns has no character \"X\"\n");
  const std::string text = folder_->path("text"), message = error_of("generate " + text + " t");
  EXPECT_TRUE(message.starts_with("generate: " + text + ": the header's length must be at most")) << message;
  EXPECT_TRUE(message.ends_with(
      " (a model is a folder, a GGUF file, or what train_gpt writes with --save or --checkpoint)\n"))
      << message;
  const std::string floats =
      ": --precision and --bfloat16-weights are for pretrained models; a model of "
      "train_gpt has float32 alone\n";
  EXPECT_EQ(error_of("generate " + model_ + " t --bfloat16-weights"), "generate: " + model_ + floats);
  EXPECT_EQ(error_of("perplexity " + model_ + " " + text + " --precision int8"),
            "perplexity: " + model_ + floats);
  const std::string help = "; --help lists the arguments\n";
  EXPECT_EQ(error_of("generate", 2), "generate: MODEL is required" + help);
  EXPECT_EQ(error_of("generate " + model_ + " ''"), "generate: a text must have tokens, got none\n");
  EXPECT_EQ(error_of("generate " + model_ + " t ''"),
            "generate: TEXT 2: a text must have tokens, got none\n");
  const auto of_lines = [&](const std::string& lines) {
    return xgrad_tests::run_command("printf '" + lines + "' | " XGRAD_PROGRAMS_DIR "/generate " + model_ +
                                    " --max-new-tokens 1 2>&1")
        .output;
  };
  EXPECT_EQ(of_lines("t\\n\\nt\\n"), "th\ngenerate: input:2: a text must have tokens, got none\n");
  EXPECT_EQ(of_lines("t\\nXat\\n"),
            "th\ngenerate: input:2: the text that the model learns has no character \"X\"\n");
  EXPECT_EQ(error_of("generate " + model_ + " t --top-p 1.5", 2),
            "generate: --top-p: must be a number in [0, 1], got 1.5" + help);
  EXPECT_EQ(error_of("generate " + model_ + " t --typical-p 0", 2),
            "generate: --typical-p: must be a number in [1e-06, 1], got 0" + help);
}

TEST_F(GenerationPrograms, OptionsOfDrawingWithoutDrawingAreTold) {
  const std::string program = "generate " + model_ + " t --max-new-tokens 1 ",
                    note = ": no effect, as the most probable token is taken; --do-sample draws tokens\n";
  EXPECT_EQ(error_of(program + "--seed 0 --top-k 3", 0), "--top-k, --seed" + note);
  EXPECT_EQ(error_of(program + "--greedy --temperature 2", 0), "--temperature" + note);
  EXPECT_EQ(error_of(program + "--do-sample --temperature 2 --seed 0", 0), "");
  EXPECT_EQ(error_of(program + "--repetition-penalty 2", 0), "");
}

TEST_F(GenerationPrograms, PerplexityIsThatOfWindowsWithAStride) {
  const std::string text = "the cat sat on the mat.\nthe mat sat on the cat.\n";
  const std::string path = folder_->write("rated", text);
  const apps::TextModel model = apps::TextModel::load(model_);
  const std::vector<std::int64_t> ids = model.tokens().ids(text);
  // The loss of each token given those before it in its window, as the page of Hugging Face adds them up.
  const auto expected = [&](std::size_t length, std::size_t stride) {
    double sum = 0, count = 0;
    std::size_t before = 0;
    for (std::size_t begin = 0; before < ids.size(); begin += stride) {
      const std::size_t end = std::min(begin + length, ids.size()), fresh = end - before;
      const xgrad::Ids window = xgrad::pad_sequence({{ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                                      ids.begin() + static_cast<std::ptrdiff_t>(end)}});
      const xgrad::Array<float> log_p = log_softmax(model.model().token_logits(window)).value();
      double losses = 0, terms = 0;
      for (std::size_t i = 1; i < end - begin; ++i) {
        if (begin + i < before) continue;
        losses -= static_cast<double>(log_p(0, i - 1, window(0, i)));
        ++terms;
      }
      if (fresh > 1) sum += losses / terms * static_cast<double>(fresh - 1);
      count += static_cast<double>(fresh - 1);
      before = end;
    }
    char line[100];
    std::snprintf(line, sizeof line, "perplexity %.4f, loss %.4f, 48 tokens\n", std::exp(sum / count),
                  sum / count);
    return std::string(line);
  };
  EXPECT_EQ(output_of("perplexity " + model_ + " " + path), expected(16, 8));
  EXPECT_EQ(output_of("perplexity " + model_ + " " + path + " --stride 16"), expected(16, 16));
  EXPECT_EQ(output_of("perplexity " + model_ + " " + path + " --max-length 6 --stride 5"), expected(6, 5));
  EXPECT_EQ(output_of("perplexity " + model_ + " " + path + " --stride 2"), expected(16, 2));
  EXPECT_NE(expected(16, 8), expected(16, 16));
  std::string with_cr;
  for (const char c : text) with_cr += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(output_of("perplexity " + model_ + " " + folder_->write("cr", with_cr)), expected(16, 8))
      << "train_gpt reads lines that end with CRLF as others";

  EXPECT_EQ(error_of("perplexity " + model_ + " " + path + " --max-length 17"),
            "perplexity: --max-length must be at most 16, as the model's, got 17\n");
  EXPECT_EQ(error_of("perplexity " + model_ + " " + path + " --stride 17"),
            "perplexity: --stride must be at most the 16 tokens of a window, got 17\n");
  const std::string other = folder_->write("other", "dog\n");
  EXPECT_EQ(error_of("perplexity " + model_ + " " + other),
            "perplexity: the text that the model learns has no character \"d\"\n");
}

// ---- pretrained decoders ----

/// A Llama that has learned a short text.
const std::string llama = XGRAD_TEST_DATA_DIR "/decoders/llama_text";

TEST(PretrainedGeneration, WritesTheTokensOfTransformers) {
  const auto text = [](const std::string& arguments) {
    return output_of("generate " + llama + " " + arguments);
  };
  EXPECT_EQ(text("'the cat sat' 'It'\\''s a good' --greedy --max-new-tokens 24"),
            "the cat sat on the mat. A small model learns the words of the t\n"
            "It's a good day: we'll read the book again! He said \"no\", s\n");
  EXPECT_EQ(text("'the cat sat' --greedy --stop-string 'he' --stop-string 'A smal'"), "the cat sat on the\n");
  EXPECT_EQ(text("'the house' --seed 7 --max-new-tokens 24"),
            "the house was a\t small model learns the words of the text, on\n")
      << "the folder says how tokens are drawn";
}

TEST(PretrainedGeneration, ShowsAnIncompleteCharacterAtTheEnd) {
  EXPECT_EQ(output_of("generate " + llama +
                      " the --do-sample --temperature 1000 --top-k 0 --top-p 1 --max-new-tokens 1 --seed 2"),
            "the\uFFFD\n");
}

TEST(PretrainedGeneration, OptionsOfTheFolderHold) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string copy = folder.path("model"), config = copy + "/generation_config.json";
  std::filesystem::copy(llama, copy);
  const auto text = [&](const std::string& json) {
    folder.write("model/generation_config.json", json);
    return output_of("generate " + copy + " 'the cat sat'");
  };
  EXPECT_EQ(text(R"({"max_new_tokens": 2})"), "the cat sat on the\n");
  EXPECT_EQ(text(R"({"stop_strings": "mat.", "num_return_sequences": 3})"), "the cat sat on the mat.\n");
  EXPECT_NE(text(R"({"do_sample": true, "temperature": 1000.0, "max_new_tokens": 2})"),
            "the cat sat on the\n");
  folder.write("model/generation_config.json", R"({"num_beams": 2})");
  const ProgramResult beams = run_program("generate " + copy + " 'the cat' 2>&1");
  EXPECT_EQ(beams.exit_code, 1);
  EXPECT_EQ(beams.output,
            "generate: " + config +
                ": num_beams must be 1, as a text is shown while it is written, got 2; --greedy "
                "takes 1\n");
  EXPECT_EQ(output_of("generate " + copy + " 'the cat sat' --greedy --max-new-tokens 2"),
            "the cat sat on the\n");
}

TEST(PretrainedGeneration, ATokenizerWithMoreTokensThanTheModelIsRefused) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string copy = folder.path("model");
  std::filesystem::copy(llama, copy);
  auto tokenizer = nlohmann::json::parse(xgrad_tests::read_bytes(copy + "/tokenizer.json"));
  tokenizer["model"]["vocab"]["zebra"] = 320;
  folder.write("model/tokenizer.json", tokenizer.dump());
  EXPECT_EQ(
      error_of("generate " + copy + " the"),
      "generate: " + copy + ": the tokenizer's ids must be below vocab_size in config.json, 320, got 320\n");
}

TEST(PretrainedGeneration, AFullContextIsAnErrorOrSlides) {
  const std::string model = XGRAD_TEST_DATA_DIR "/gguf/gpt2_q8_0.gguf", arguments = " a --max-new-tokens 100";
  const ProgramResult result = run_program("generate " + model + arguments + " 2>&1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("must have at most 48 tokens, as many as the model has positions, got 49"),
            std::string::npos)
      << result.output;
  EXPECT_GT(output_of("generate " + model + arguments + " --slide").size(), 48u);
}

TEST(PretrainedGeneration, PerplexityIsThatOfTheTokensInWindows) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string path = folder.write("text", "the cat sat on the mat. A small model learns the words");
  const std::string whole = output_of("perplexity " + llama + " " + path);
  EXPECT_TRUE(whole.starts_with("perplexity 1.")) << whole;
  EXPECT_TRUE(whole.ends_with(" tokens\n")) << whole;
  EXPECT_NE(output_of("perplexity " + llama + " " + path + " --max-length 8"), whole);
  const auto tokens = [&](const std::string& text) {
    const std::string line = output_of("perplexity " + llama + " " + folder.write("other", text));
    return std::stol(line.substr(line.rfind(", ") + 2));
  };
  for (const std::string text : {"the cat sat", "the cat sat\n", "the cat\r\nsat\r\n"}) {
    const std::string ids = output_of("tokenize " + llama + " --ids '" + text + "'");
    EXPECT_EQ(tokens(text), std::count(ids.begin(), ids.end(), ' ') + 1) << text;
  }
}

TEST(PretrainedGeneration, ALossThatIsNoNumberIsAnError) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string copy = folder.path("model"), weights = copy + "/model.safetensors";
  std::filesystem::copy(llama, copy);
  xgrad::StateDict<float> state = xgrad::load_safetensors<float>(weights);
  for (auto& [name, array] : state) {  // scores of the attention are infinite
    if (name.find("q_proj") != name.npos || name.find("k_proj") != name.npos) array *= 1e25F;
  }
  std::filesystem::remove(weights);
  xgrad::save_safetensors(state, weights);
  const ProgramResult result =
      run_program("perplexity " + copy + " " + folder.write("text", "the cat sat") + " 2>&1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.output, "perplexity: " + copy + ": the loss of the text must be a number, got nan\n");
}

}  // namespace generation_programs_test
