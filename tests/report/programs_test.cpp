// --report of the training programs, and the program `report`.

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../files.hpp"
#include "../program.hpp"

namespace programs_test {

using nlohmann::json;
using xgrad_tests::error_of, xgrad_tests::output_of, xgrad_tests::read_bytes;

class ReportProgramsTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }

  /// The only run of a report's data.
  json run_of(const std::string& name) const {
    const json all = json::parse(read_bytes(path(name)));
    EXPECT_EQ(all.at("runs").size(), 1u);
    return all.at("runs").at(0);
  }

  xgrad_tests::TemporaryFolder folder_;
};

TEST_F(ReportProgramsTest, ARunIsTheSameWithAReport) {
  const auto train = [&](const std::string& checkpoint, const std::string& more) {
    return output_of("train_toy_encoder --steps 60 --checkpoint " + path(checkpoint) + more + " 2>/dev/null");
  };
  const std::string without = train("one", ""), with = train("two", " --report " + path("report.json"));
  EXPECT_EQ(read_bytes(path("one")), read_bytes(path("two")));
  const auto from = [](const std::string& text) { return text.substr(text.find("held-out accuracy")); };
  EXPECT_EQ(from(with), from(without));

  const json run = run_of("report.json");
  EXPECT_EQ(run.at("title"), "train_toy_encoder, seed 0");
  EXPECT_EQ(run.at("program"), "train_toy_encoder");
  EXPECT_EQ(run.at("options").at("--steps"), "60");
  EXPECT_EQ(run.at("steps"), (json{0, 1, 2, 5, 10, 20, 50, 60}));
  EXPECT_EQ(run.at("attention").size(), 1u);
  EXPECT_EQ(run.at("attention").at(0).at("heads"), 4);
  EXPECT_EQ(run.at("predictions").size(), 6u);
  EXPECT_EQ(run.at("curves").size(), 3u);
  EXPECT_FALSE(run.at("profile").at("modules").empty());
  const json& snapshots = run.at("parameters").at(0).at("snapshots");
  EXPECT_TRUE(snapshots.at(0).contains("update"));
  EXPECT_FALSE(snapshots.at(7).contains("update"));
}

TEST_F(ReportProgramsTest, TellsWhereThePageIs) {
  const std::string page = path("page.html");
  const std::string command = "train_toy_encoder --steps 2 --report " + page + " 2>&1 >/dev/null";
  const std::string here = "report: " + page + "\n";
  EXPECT_TRUE(xgrad_tests::run_command("env -u SSH_CONNECTION " XGRAD_PROGRAMS_DIR "/" + command)
                  .output.ends_with(here));
  EXPECT_TRUE(xgrad_tests::run_command(
                  "SSH_CONNECTION='10.0.0.1 5000 10.0.0.2 22' USER=me " XGRAD_PROGRAMS_DIR "/" + command)
                  .output.ends_with(here + "to view it on your machine: scp me@10.0.0.2:" + page + " .\n"));
  EXPECT_TRUE(xgrad_tests::run_command(
                  "SSH_CONNECTION='fe80::1 5000 fe80::2 22' USER=me " XGRAD_PROGRAMS_DIR "/" + command)
                  .output.ends_with("scp me@[fe80::2]:" + page + " .\n"));
  const std::string odd = path("it's a page.html");
  EXPECT_TRUE(xgrad_tests::run_command("SSH_CONNECTION='1 2 host 22' USER=me " XGRAD_PROGRAMS_DIR
                                       "/train_toy_encoder --steps 2 --report \"" +
                                       odd + "\" 2>&1 >/dev/null")
                  .output.ends_with("scp 'me@host:" + path("it'\\''s a page.html") + "' .\n"));
  const std::string nowhere = path("none/page.html");
  EXPECT_EQ(error_of("train_toy_encoder --report " + nowhere),
            "train_toy_encoder: " + nowhere + ": cannot be written: No such file or directory\n");
}

TEST_F(ReportProgramsTest, AReportThatCannotBeWrittenCostsNoModel) {
  const std::string model = path("model"), page = path("page.html");
  const xgrad_tests::ProgramResult result = xgrad_tests::run_command(
      "sh -c 'ulimit -f 200; exec " XGRAD_PROGRAMS_DIR "/train_syllables --steps 2 --save " + model +
      " --report " + page + "' 2>&1 >/dev/null");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(
      result.output.find("train_syllables: the report was not written: " + page + ": cannot be written"),
      std::string::npos)
      << result.output;
  EXPECT_TRUE(std::filesystem::exists(model));
  EXPECT_FALSE(std::filesystem::exists(page));
}

TEST_F(ReportProgramsTest, ARunThatFailsHasAReport) {
  error_of("train_toy_encoder --steps 30 --log /dev/full --report " + path("report.json") +
           " 2>&1 >/dev/null");
  const json run = run_of("report.json");
  EXPECT_EQ(run.at("steps"), (json{0, 1, 2, 5, 10, 20}));
  EXPECT_TRUE(run.at("notes").at(0).get<std::string>().starts_with("The run ended with an error: fit: "));
}

TEST_F(ReportProgramsTest, AResumedRunSaysSoAndAFinishedOneKeepsItsPage) {
  const std::string command =
      "train_toy_encoder --checkpoint " + path("run") + " --report " + path("report.json");
  output_of(command + " --steps 30 2>/dev/null");
  const std::string whole = read_bytes(path("report.json"));
  output_of(command + " --steps 30 --resume 2>/dev/null");
  EXPECT_EQ(read_bytes(path("report.json")), whole);
}

TEST_F(ReportProgramsTest, WordsAndTagsAreShown) {
  output_of("train_syllables --steps 3 --report " + path("syllables.json") + " 2>/dev/null");
  const json run = run_of("syllables.json");
  EXPECT_FALSE(run.at("attention").empty());
  EXPECT_FALSE(run.at("predictions").empty());
}

TEST_F(ReportProgramsTest, RunsAreCompared) {
  output_of("train_toy_encoder --steps 5 --log " + path("one.jsonl") + " --report " + path("one.json") +
            " 2>/dev/null");
  output_of("train_toy_encoder --steps 5 --seed 1 --report " + path("two.json") + " 2>/dev/null");
  const std::string runs = path("one.json") + " " + path("two.json") + " " + path("one.jsonl");
  EXPECT_EQ(error_of("report " + runs + " -o " + path("all.json"), 0), "report: " + path("all.json") + "\n");
  const json all = json::parse(read_bytes(path("all.json"))).at("runs");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.at(1).at("seed"), "1");
  EXPECT_EQ(all.at(2).at("title"), "one.jsonl");
  EXPECT_EQ(all.at(2).at("options"), all.at(0).at("options"));
  output_of("report " + runs + " -o " + path("all.html") + " 2>/dev/null");
  EXPECT_TRUE(read_bytes(path("all.html")).starts_with("<!DOCTYPE html>"));
}

TEST_F(ReportProgramsTest, RefusesWhatIsNoRun) {
  const std::string bad = folder_.write("bad.json", "{}"), out = path("out.html");
  EXPECT_EQ(error_of("report " + bad + " -o " + out),
            "report: " + bad + ": must be the data of a report, with \"format\": \"xgrad-report\"\n");
  const std::string lines = folder_.write("bad.jsonl", "1\n");
  EXPECT_EQ(error_of("report " + lines + " -o " + out),
            "report: " + lines + ":1: must be a line of a training run's metrics, got other JSON\n");
  EXPECT_EQ(error_of("report " + bad, 2), "report: --output is required; --help lists the arguments\n");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(ReportProgramsTest, NotebooksShowWhatTheyPrint) {
  const std::map<std::string, std::size_t> attention{
      {"notebook_000", 3},  // two heads and one, each by itself
      {"notebook_001", 2},
      {"notebook_002", 1},
      {"notebook_003", 2},  // sentences
      {"notebook_004", 1}};
  for (const auto& [name, count] : attention) {
    SCOPED_TRACE(name);
    const std::string file = name + ".json";
    EXPECT_EQ(output_of(name + " --report " + path(file) + " 2>/dev/null"), output_of(name));
    const json run = run_of(file);
    EXPECT_EQ(run.at("attention").size(), count);
    std::size_t with_gradient = 0;
    for (const json& tensor : run.at("tensors")) {
      EXPECT_FALSE(tensor.at("section").get<std::string>().empty());
      with_gradient += tensor.contains("gradient") ? 1 : 0;
    }
    EXPECT_GE(with_gradient, 6u);
  }
  EXPECT_EQ(run_of("notebook_003.json").at("attention").at(0).at("masked").at("shape"), (json{4, 4}));
  EXPECT_EQ(error_of("notebook_000 --what", 2),
            "notebook_000: there is no argument '--what'; --help lists the arguments\n");
}

TEST_F(ReportProgramsTest, PretrainedModelsHaveAttention) {
  std::string text, labels;
  for (int i = 0; i < 40; ++i) {
    text += "The black cat sees the white mouse.\n\n";
    labels += i % 2 == 0 ? "The cat\tcat\n" : "A mouse\tmouse\n";
  }
  folder_.write("text", text);
  folder_.write("labels", labels);
  const std::string model = path("model"), quietly = " 2>/dev/null";
  output_of("tiny_bert " + model + " --text " + path("text") +
            " --vocab-size 60 --hidden-size 8 --max-length 16" + quietly);
  output_of("pretrain " + model + " --text " + path("text") + " --steps 3 --save " + path("trained") +
            " --report " + path("pretrain.json") + quietly);
  output_of("fine_tune " + model + " " + path("labels") + " --save " + path("tuned") + " --report " +
            path("fine_tune.json") + quietly);
  for (const char* const name : {"pretrain.json", "fine_tune.json"}) {
    const json run = run_of(name);
    EXPECT_EQ(run.at("attention").size(), 2u) << name;  // layers
    EXPECT_EQ(run.at("attention").at(0).at("keys").at(0), "[CLS]") << name;
  }
  EXPECT_EQ(run_of("pretrain.json").at("predictions").at(0).at("snapshots").at(0).at("answers").size(), 5u);
  const json prediction = run_of("fine_tune.json").at("predictions").at(0);
  EXPECT_TRUE((std::set<std::string>{"cat", "mouse"}).contains(prediction.at("truth")));
  EXPECT_EQ(prediction.at("snapshots").at(0).at("answers").size(), 2u);
}

}  // namespace programs_test
