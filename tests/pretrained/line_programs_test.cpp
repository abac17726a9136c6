// embed, search and rerank on lines: in pipes, in files, and when something goes wrong.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>

#include "../program.hpp"
#include "folder.hpp"
#include "running_program.hpp"

namespace line_programs_test {

using namespace xgrad::pretrained;
using nlohmann::json;
using xgrad::Array;
using xgrad_tests::FolderCopy, xgrad_tests::model_folder, xgrad_tests::output_of, xgrad_tests::ProgramResult,
    xgrad_tests::read_bytes, xgrad_tests::run_program, xgrad_tests::RunningProgram,
    xgrad_tests::TemporaryFolder;

std::string numbered(std::size_t count) {
  std::string lines;
  for (std::size_t i = 0; i < count; ++i)
    lines += "the " + std::string(i % 7 + 1, 'a') + std::to_string(i) + "\n";
  return lines;
}

class EmbedLinesTest : public testing::Test {
 protected:
  /// What embed says on stderr for the file "lines" of the folder, with what it prints in "out".
  std::string errors(const std::string& options, int exit_code = 1) const {
    const ProgramResult result = run_program("embed " + model_ + " " + options + " <" +
                                             folder_.path("lines") + " 2>&1 >" + folder_.path("out"));
    EXPECT_EQ(result.exit_code, exit_code) << options;
    return result.output;
  }
  Array<float> vectors(const std::string& name) const { return xgrad::load_npy<float>(folder_.path(name)); }
  std::size_t printed_lines() const {
    const std::string out = read_bytes(folder_.path("out"));
    return static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n'));
  }

  const TemporaryFolder folder_;
  const std::string model_ = model_folder("bert_sentence"), npy_ = folder_.path("v.npy");
};

TEST_F(EmbedLinesTest, AnswersEachLineBeforeTheNext) {
  RunningProgram embed({"embed", model_});
  std::vector<std::string> answers;
  for (const char* line : {"my shoes\n", "big feet\n", "my shoes\n"}) {
    embed.write(line);
    answers.push_back(embed.line());
    EXPECT_FALSE(embed.has_output());
  }
  EXPECT_NE(answers[0], "");
  EXPECT_NE(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
}

TEST_F(EmbedLinesTest, EveryProgramAnswersEachLine) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"tokenize", model_}, {"classify", model_folder("bert_classifier")}}) {
    RunningProgram program(arguments);
    for (int i = 0; i < 2; ++i) {
      program.write("my shoes\n");
      EXPECT_NE(program.line(), "") << arguments[0];
    }
  }
}

TEST_F(EmbedLinesTest, ManyLinesComeInTheirOrder) {
  folder_.write("lines", numbered(5000));
  EXPECT_EQ(errors("--npy " + npy_, 0), "");
  EXPECT_EQ(errors("", 0), "");
  EXPECT_EQ(printed_lines(), 5000U);
  const Array<float> all = vectors("v.npy");
  ASSERT_EQ(xgrad::to_string(all.shape()), "(5000, 32)");
  std::istringstream printed(read_bytes(folder_.path("out")));
  for (const float number : all) {
    float other = 0;
    ASSERT_TRUE(printed >> other);
    ASSERT_EQ(number, other);
  }
  const auto embedder = SentenceEmbedder<float>::from_folder(model_);
  std::istringstream lines(numbered(5000));
  std::vector<std::string> some;
  for (std::string line; std::getline(lines, line);) some.push_back(line);
  const Array<float> last = embedder(std::vector<std::string>{some[2047], some[2048], some[4999]});
  for (std::size_t k = 0; k < 32; ++k) {
    EXPECT_NEAR(all(2047, k), last(0, k), 1e-5);
    EXPECT_NEAR(all(2048, k), last(1, k), 1e-5);
    EXPECT_NEAR(all(4999, k), last(2, k), 1e-5);
  }
}

TEST_F(EmbedLinesTest, AnEmptyInputIsAFileOfNoVectors) {
  folder_.write("lines", "");
  EXPECT_EQ(errors("--npy " + npy_, 0), "");
  EXPECT_EQ(xgrad::to_string(vectors("v.npy").shape()), "(0, 32)");
  EXPECT_EQ(errors("--truncate-dim 3 --npy " + npy_, 0), "");
  EXPECT_EQ(xgrad::to_string(vectors("v.npy").shape()), "(0, 3)");
}

TEST_F(EmbedLinesTest, ALineThatIsNotUtf8LosesNothing) {
  folder_.write("lines", numbered(3000) + "caf\xe9\nmy shoes\n");
  const std::string error = "input:3001: a line must be UTF-8, got an invalid byte at 3";
  EXPECT_EQ(errors(""), "embed: " + error + "\n");
  EXPECT_EQ(printed_lines(), 3000U);
  const std::string part = npy_ + ".partial";
  EXPECT_EQ(errors("--npy " + npy_),
            part + ": has the vectors of 3000 texts, up to text or line 3000\nembed: " + error + "\n");
  EXPECT_EQ(xgrad::to_string(vectors("v.npy.partial").shape()), "(3000, 32)");
  EXPECT_FALSE(std::filesystem::exists(npy_));
  EXPECT_EQ(errors("--skip-invalid --npy " + npy_, 0), error + "; it is left out\n");
  EXPECT_EQ(xgrad::to_string(vectors("v.npy").shape()), "(3001, 32)");
  EXPECT_EQ(folder_.file_count(), 4U) << "nothing else is left";

  folder_.write("lines", "\xff\nmy shoes\n\xff\n\xff\n\xff\n\xff\n\xff\n");
  const std::string told = errors("--skip-invalid", 0);
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 6);
  EXPECT_TRUE(told.ends_with("input: 6 lines are left out\n")) << told;
  EXPECT_EQ(printed_lines(), 1U);
  EXPECT_EQ(errors("--npy " + npy_), npy_ +
                                         ".partial: is not written, as no vector was complete\n"
                                         "embed: input:1: a line must be UTF-8, got an invalid byte at 0\n");
  EXPECT_EQ(xgrad::to_string(vectors("v.npy").shape()), "(3001, 32)") << "the old file stays";
}

TEST_F(EmbedLinesTest, AFullDiskLosesNothing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer writes a file before main()";
#endif
  folder_.write("lines", numbered(5000));
  const std::string embed =
      std::string(XGRAD_PROGRAMS_DIR) + "/embed " + model_ + " <" + folder_.path("lines");
  const ProgramResult limited = xgrad_tests::run_command("ulimit -f 600; " + embed + " --npy " + npy_ +
                                                         " 2>&1");  // 600 times 512 bytes
  EXPECT_EQ(limited.exit_code, 1);
  EXPECT_EQ(limited.output,
            npy_ + ".partial: has the vectors of 2368 texts, up to text or line 2368\nembed: " + npy_ +
                ": cannot be written: File too large\n");
  EXPECT_EQ(xgrad::to_string(vectors("v.npy.partial").shape()), "(2368, 32)");
  EXPECT_EQ(folder_.file_count(), 2U);
  const ProgramResult full = xgrad_tests::run_command(embed + " 2>&1 >/dev/full");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_EQ(full.output, "embed: cannot write the output: No space left on device\n");
  const ProgramResult head = xgrad_tests::run_command("(" + embed + " | head -n 1 | wc -l) 2>&1");
  EXPECT_EQ(head.output, "1\n") << "a closed pipe is no error";
}

TEST_F(EmbedLinesTest, ASignalLosesNothing) {
  for (const auto& [signal, exit_code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    RunningProgram printing({"embed", model_});
    printing.write("my shoes\n");
    EXPECT_NE(printing.line(), "");
    printing.send(signal);  // while it waits
    EXPECT_EQ(printing.wait(), exit_code);
    EXPECT_EQ(printing.line(), "");
  }
  const std::string part = npy_ + ".partial";
  RunningProgram saving({"embed", model_, "--npy", npy_});
  saving.write(numbered(10) + "\n");
  const auto written = [&] {
    std::uintmax_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path(""))) bytes += file.file_size();
    return bytes;
  };
  const auto begin = std::chrono::steady_clock::now();
  while (written() < 128 + 11 * 32 * 4 && std::chrono::steady_clock::now() - begin < std::chrono::minutes(1))
    std::this_thread::yield();
  saving.send(SIGINT);
  EXPECT_EQ(saving.wait(), 130);
  EXPECT_EQ(xgrad::to_string(vectors("v.npy.partial").shape()), "(11, 32)");
  EXPECT_EQ(folder_.file_count(), 1U);
}

TEST_F(EmbedLinesTest, PrintsJson) {
  std::istringstream lines(output_of("embed " + model_ + " --json 'my \"shoes\"' 'Café'"));
  const auto embedder = SentenceEmbedder<float>::from_folder(model_);
  const std::vector<std::string> texts{"my \"shoes\"", "Café"};
  const Array<float> expected = embedder(texts);
  std::string line;
  for (std::size_t i = 0; std::getline(lines, line); ++i) {
    const json object = json::parse(line);
    EXPECT_EQ(object.size(), 2U);
    EXPECT_EQ(object.at("text"), texts.at(i));
    const auto vector = object.at("vector").get<std::vector<float>>();
    ASSERT_EQ(vector.size(), 32U);
    // OpenBLAS may add in another order for another number of texts
    for (std::size_t k = 0; k < 32; ++k) EXPECT_NEAR(vector[k], expected(i, k), 2e-7);
  }
}

TEST_F(EmbedLinesTest, TruncatesThenNormalizes) {
  std::istringstream numbers(
      output_of("embed " + model_ + " --truncate-dim 3 --normalize 'my shoes' | tr ' ' '\\n'"));
  double squares = 0, number = 0;
  std::size_t count = 0;
  for (; numbers >> number; ++count) squares += number * number;
  EXPECT_EQ(count, 3U);
  EXPECT_NEAR(squares, 1, 1e-6);
  EXPECT_EQ(xgrad_tests::error_of("embed " + model_ + " --truncate-dim 33 my"),
            "embed: SentenceEmbedder: truncate_dim must be from 1 to 32, got 33\n");
}

TEST_F(EmbedLinesTest, ComparesOnlySoManyTexts) {
  folder_.write("lines", numbered(1001));
  EXPECT_EQ(errors("--similar"), "embed: --similar compares at most 1000 texts, got more\n");
  EXPECT_EQ(printed_lines(), 0U);
}

TEST_F(EmbedLinesTest, AnEndlessLineIsRefused) {
  const ProgramResult result = xgrad_tests::run_command(
      "head -c 20000000 /dev/zero | " XGRAD_PROGRAMS_DIR "/embed " + model_ + " 2>&1");
  EXPECT_EQ(result.output, "embed: input:1: a line must have at most 16777216 bytes\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(xgrad_tests::error_of("embed " + model_ + " <" + model_),
            "embed: the input cannot be read: Is a directory\n");
}

class SearchProgramTest : public testing::Test {
 protected:
  std::string search(const std::string& arguments) const {
    return output_of("search " + copy_.path() + " " + texts_ + " " + arguments + " 2>/dev/null");
  }

  const TemporaryFolder folder_;
  const FolderCopy copy_{"bert_sentence"};
  const std::string texts_ = folder_.write("texts", "the old house\n\nmy shoes\nbig feet\n");
};

TEST_F(SearchProgramTest, PrintsTheNearestLines) {
  const std::string two = search("--top 2 'my shoes'");
  EXPECT_TRUE(two.starts_with("1\t1.000000\t3\tmy shoes\n2\t0.")) << two;
  EXPECT_EQ(std::count(two.begin(), two.end(), '\n'), 2);
  const auto said = [&] { return xgrad_tests::error_of("search " + copy_.path() + " " + texts_ + " my", 0); };
  EXPECT_EQ(said(), "") << "the index is there";
  EXPECT_TRUE(std::filesystem::exists(texts_ + ".index"));
  EXPECT_EQ(search("--top 1 'my shoes' 'the old house'"),
            "1\t1.000000\t3\tmy shoes\n\n1\t1.000000\t1\tthe old house\n");
  EXPECT_EQ(search("--top 1 </dev/null"), "");
  folder_.write("texts", "big feet\n");
  EXPECT_EQ(said(), texts_ + ".index: is made again, for another corpus\n");
  EXPECT_EQ(search("'big feet'"), "1\t1.000000\t1\tbig feet\n");
  EXPECT_EQ(search("--index " + folder_.path("other") + " 'big feet'"), "1\t1.000000\t1\tbig feet\n");
  EXPECT_TRUE(std::filesystem::exists(folder_.path("other")));
}

TEST_F(SearchProgramTest, PrintsJsonAndAnswersEachLine) {
  search("--top 1 my");
  RunningProgram program({"search", copy_.path(), texts_, "--json", "--top", "2"});
  for (const char* query : {"my shoes", "big feet"}) {
    program.write(query + std::string("\n"));
    const json answer = json::parse(program.line());
    EXPECT_EQ(answer.at("query"), query);
    ASSERT_EQ(answer.at("hits").size(), 2U);
    const json& first = answer.at("hits")[0];
    EXPECT_EQ(first.at("rank"), 1);
    EXPECT_NEAR(first.at("score").get<double>(), 1, 1e-6);
    EXPECT_EQ(first.at("line"), query == std::string("my shoes") ? 3 : 4);
    EXPECT_EQ(first.at("text"), query);
  }
}

TEST_F(SearchProgramTest, UsesTheFoldersPromptsAndSimilarity) {
  copy_.write("config_sentence_transformers.json",
              R"({"prompts": {"query": "big ", "document": "big "}, "similarity_fn_name": "dot"})");
  const auto embedder = SentenceEmbedder<float>::from_folder(copy_.path());
  const auto score = [&](const std::string& arguments) {
    return std::stod(search("--top 1 " + arguments).substr(2));
  };
  EXPECT_NEAR(score("'my shoes'"), 1, 1e-5) << "of the same text";
  EXPECT_NEAR(score("'my shoes' --document-prompt ''  --prompt ''"), 1, 1e-5);
  EXPECT_LT(score("'my shoes' --prompt ''"), 0.99999);
  EXPECT_NEAR(score("'my shoes' --prompt-name document --document-prompt-name query"), 1, 1e-5);

  copy_.write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                                  {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  const auto longer = SentenceEmbedder<float>::from_folder(copy_.path());
  const Array<float> vector = longer(std::vector<std::string>{"feet"}, {.prompt = "big "});
  double squares = 0;
  for (const float number : vector) squares += double{number} * double{number};
  EXPECT_GT(std::abs(squares - 1), 0.01);
  const std::string line = search("--top 5 feet | grep 'big feet'");
  const Array<float> text = longer(std::vector<std::string>{"big feet"}, {.prompt = "big "});
  double product = 0;
  for (std::size_t k = 0; k < 32; ++k) product += double{vector(0, k)} * double{text(0, k)};
  EXPECT_NEAR(std::stod(line.substr(2)), product, 1e-4);

  copy_.write("config_sentence_transformers.json", R"({"similarity_fn_name": "euclidean"})");
  EXPECT_TRUE(xgrad_tests::error_of("search " + copy_.path() + " " + texts_ + " my")
                  .ends_with("search: semantic_search: similarity must be cosine or dot, got euclidean\n"));
}

TEST_F(SearchProgramTest, WhatFailsLeavesNoIndex) {
  folder_.write("texts", "my shoes\ncaf\xe9\n");
  const std::string command = "search " + copy_.path() + " " + texts_;
  EXPECT_EQ(xgrad_tests::error_of(command + " my"),
            "search: " + texts_ + ":2: a line must be UTF-8, got an invalid byte at 3\n");
  EXPECT_EQ(folder_.file_count(), 1U);
  EXPECT_EQ(output_of(command + " --skip-invalid 'my shoes' 2>/dev/null"), "1\t1.000000\t1\tmy shoes\n");
#ifndef __SANITIZE_THREAD__  // which writes a file before main()
  folder_.write("texts", numbered(5000));
  const ProgramResult limited =
      xgrad_tests::run_command("ulimit -f 600; " XGRAD_PROGRAMS_DIR "/" + command + " my 2>&1");
  EXPECT_EQ(limited.exit_code, 1);
  EXPECT_TRUE(
      limited.output.find(texts_ + ".index: cannot be written: File too large; the index is not kept") !=
      std::string::npos)
      << limited.output;
  EXPECT_EQ(folder_.file_count(), 2U) << "the old index";
#endif
}

TEST_F(SearchProgramTest, TextsWithAZeroByteArePrintedWhole) {
  const std::string line("my\0shoes", 8);
  folder_.write("texts", line + "\n");
  const std::string hit = search("--top 1 'my shoes'");
  EXPECT_TRUE(hit.starts_with("1\t") && hit.ends_with("\t1\t" + line + "\n")) << hit;
  const json answer = json::parse(search("--top 1 --json 'my shoes'"));
  EXPECT_EQ(answer.at("hits")[0].at("text"), line);
}

TEST_F(SearchProgramTest, ASignalEndsItWithALine) {
  const std::string errors = folder_.path("errors");
  search("--top 1 my");
  for (const auto& [signal, exit_code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    RunningProgram waiting({"search", copy_.path(), texts_, "--top", "1"}, errors);
    waiting.write("my shoes\n");
    EXPECT_EQ(waiting.line(), "1\t1.000000\t3\tmy shoes\n");
    waiting.send(signal);
    EXPECT_EQ(waiting.wait(), exit_code);
    EXPECT_EQ(waiting.line(), "");
    EXPECT_EQ(read_bytes(errors), "search: interrupted\n");
    std::filesystem::remove(errors);
  }

  const std::string before = read_bytes(texts_ + ".index"),
                    said = texts_ + ".index: is made again, for another corpus\n";
  folder_.write("texts", numbered(200'000));
  RunningProgram making({"search", copy_.path(), texts_, "my"}, errors);
  const auto begin = std::chrono::steady_clock::now();
  while ((!std::filesystem::exists(errors) || read_bytes(errors) != said) &&
         std::chrono::steady_clock::now() - begin < std::chrono::minutes(1))
    std::this_thread::yield();
  making.send(SIGINT);
  EXPECT_EQ(making.wait(), 130);
  EXPECT_EQ(read_bytes(errors), said + "search: interrupted; the index was not complete, and is not kept\n");
  EXPECT_EQ(read_bytes(texts_ + ".index"), before);
  EXPECT_EQ(folder_.file_count(), 3U) << "nothing else is left";
}

TEST_F(SearchProgramTest, ATextWhoseIndexCannotBeWrittenIsSearched) {
  const std::string name(250, 't');  // with ".index" it is too long, for root, too
  const std::string texts = folder_.write(name, "the old house\nmy shoes\n"),
                    command = "search " + copy_.path() + " " + texts + " --top 1 'my shoes'";
  const ProgramResult found = xgrad_tests::run_program(command + " 2>&1");
  EXPECT_EQ(found.exit_code, 0);
  EXPECT_EQ(found.output, texts +
                              ".index: cannot be written: File name too long; the index is not kept, which "
                              "--index FILE does elsewhere\n1\t1.000000\t2\tmy shoes\n");
  const std::string index = folder_.path("missing/index");
  EXPECT_EQ(xgrad_tests::error_of(command + " --index " + index),
            "search: " + index + ": cannot be written: No such file or directory\n");
}

TEST_F(SearchProgramTest, AFileWithoutTextsIsToldOf) {
  folder_.write("texts", "\n \n");
  const ProgramResult result = xgrad_tests::run_program("search " + copy_.path() + " " + texts_ + " my 2>&1");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, texts_ + ".index: is made\n" + texts_ + ": has no lines with a text\n");
}

class RerankLinesTest : public testing::Test {
 protected:
  RerankLinesTest() {
    const auto model = SequenceClassifier<float>::from_folder(
        copy_.path(), {.labels = std::vector<std::string>{"score"}, .note = [](const std::string&) {}});
    save_folder(model, copy_.path());
  }

  const TemporaryFolder folder_;
  const FolderCopy copy_{"bert_classifier"};
  const std::string model_ = copy_.path();
};

TEST_F(RerankLinesTest, SortsLinesAndKeepsTheBest) {
  std::string lines;
  for (int i = 0; i < 2500; ++i) lines += i % 2 == 0 ? "big feet\n" : "the old house\n";
  folder_.write("lines", lines);
  const std::string command = "rerank " + model_ + " shoes <" + folder_.path("lines");
  std::istringstream all(output_of(command));
  std::vector<std::string> sorted;
  for (std::string line; std::getline(all, line);) sorted.push_back(line);
  ASSERT_EQ(sorted.size(), 2500U);
  const auto text_of = [](const std::string& line) { return line.substr(line.find('\t') + 1); };
  for (std::size_t i = 1; i < 2500; ++i) EXPECT_EQ(text_of(sorted[i]) == text_of(sorted[0]), i < 1250) << i;
  EXPECT_EQ(output_of(command + " --top 2"), sorted[0] + "\n" + sorted[1] + "\n");

  const json answer = json::parse(output_of(command + " --top 1300 --json"));
  EXPECT_EQ(answer.at("query"), "shoes");
  const json& hits = answer.at("hits");
  ASSERT_EQ(hits.size(), 1300U);
  for (std::size_t i = 0; i < 1300; ++i) {
    EXPECT_EQ(hits[i].at("rank"), i + 1);
    EXPECT_EQ(hits[i].at("text"), hits[i].at("line").get<int>() % 2 == 1 ? "big feet" : "the old house");
    EXPECT_EQ(hits[i].at("text") == hits[0].at("text"), i < 1250);
    if (i == 0) continue;
    const double before = hits[i - 1].at("score"), score = hits[i].at("score");
    EXPECT_TRUE(before > score || (before == score && hits[i - 1].at("line") < hits[i].at("line")));
  }
  EXPECT_NEAR(hits[0].at("score").get<double>(), std::stod(sorted[0]), 1e-6);
  EXPECT_NEAR(hits[1299].at("score").get<double>(), std::stod(sorted[1299]), 1e-6);
}

TEST_F(RerankLinesTest, TextsWithAZeroByteArePrintedWhole) {
  const std::string line("my\0shoes", 8);
  folder_.write("lines", line + "\n");
  const std::string command = "rerank " + model_ + " shoes <" + folder_.path("lines");
  const std::string printed = output_of(command);
  EXPECT_TRUE(printed.ends_with("\t" + line + "\n")) << printed;
  EXPECT_EQ(json::parse(output_of(command + " --json")).at("hits")[0].at("text"), line);
}

TEST_F(RerankLinesTest, LinesThatAreNotUtf8AreAnErrorOrLeftOut) {
  folder_.write("lines", "my shoes\ncaf\xe9\nbig feet\n");
  const std::string command = "rerank " + model_ + " shoes <" + folder_.path("lines");
  const std::string error = "input:2: a line must be UTF-8, got an invalid byte at 3";
  EXPECT_EQ(xgrad_tests::error_of(command), "rerank: " + error + "\n");
  const json hits = json::parse(output_of(command + " --skip-invalid --json 2>/dev/null")).at("hits");
  ASSERT_EQ(hits.size(), 2U);
  EXPECT_EQ(hits[0].at("line").get<int>() + hits[1].at("line").get<int>(), 4);
}

}  // namespace line_programs_test
