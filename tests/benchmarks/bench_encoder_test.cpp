// What bench_encoder prints, and what it makes of a process that does not answer. Never how fast anything is.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../benchmarks/encoder/process.hpp"
#include "expect_error.hpp"
#include "files.hpp"
#include "program.hpp"

namespace bench_encoder_test {

using bench::Process;
using nlohmann::json;
using xgrad_tests::message_of, xgrad_tests::ProgramResult, xgrad_tests::run_command, xgrad_tests::run_program;

ProgramResult run_bench(const std::string& arguments) {
  return run_command(XGRAD_PROGRAMS_DIR "/bench_encoder " + arguments + " 2>&1");
}

TEST(BenchEncoderTest, EachConfigIsALineOfJson) {
  const ProgramResult result = run_bench("--config toy --config small --json --seconds 0.001");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  std::istringstream lines(result.output);
  for (const auto& [name, params, gflop] :
       {std::tuple("toy", 222, 3e-6), std::tuple("small", 107530, 0.0524)}) {
    std::string text;
    std::getline(lines, text);
    const json line = json::parse(text);
    EXPECT_EQ(line.at("config"), name);
    EXPECT_EQ(line.at("threads"), 1);
    EXPECT_EQ(line.at("params"), params);
    EXPECT_TRUE(line.at("core").is_string());
    for (const char* key : {"step_ms", "fwd_ms", "step_cpu", "fwd_cpu", "rss_mb", "loss0", "sgemm_gflops"}) {
      EXPECT_GT(line.at(key), 0) << key;
    }
    EXPECT_NEAR(line.at("fwd_gflops").get<double>() * line.at("fwd_cpu").get<double>() / 1e3, gflop,
                0.03 * gflop);
  }
  EXPECT_EQ(lines.peek(), EOF) << result.output;
}

struct Peer {
  const char *name, *needs;
  double tolerance = 1e-6;
  bool trains = true;

  friend void PrintTo(const Peer& peer, std::ostream* out) { *out << peer.name; }
};

constexpr const char* libtorch =
    "LibTorch, which was not there when this was built (libtorch-dev or pip's torch, and g++)";
constexpr const char* pytorch = "PyTorch 2, which python3 does not find (pip install torch)";
constexpr const char* onnxruntime =
    "ONNX Runtime, which python3 does not find (pip install onnx onnxruntime)";

class BenchPeerTest : public testing::TestWithParam<Peer> {};

TEST_P(BenchPeerTest, HasTheSameLossOrIsMissing) {
  const auto& [name, needs, tolerance, trains] = GetParam();
  const ProgramResult result =
      run_program("bench_encoder --config toy --vs " + std::string(name) + " --json --seconds 0.001");
  if (result.exit_code == 2) {
    const ProgramResult refused = run_bench("--vs " + std::string(name));
    EXPECT_EQ(refused.output, "bench_encoder: --vs: " + std::string(name) + " needs " + needs +
                                  "; --help lists the arguments\n");
    GTEST_SKIP() << refused.output;
  }
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const json line = json::parse(result.output), peer = line.at("peers").at(name);
  EXPECT_NEAR(peer.at("loss0"), line.at("loss0").get<double>(), tolerance);
  std::vector<const char*> keys{"fwd_ms", "fwd_cpu"};
  if (trains) keys.insert(keys.end(), {"step_ms", "step_cpu", "rss_mb"});
  EXPECT_EQ(peer.at("ratios").size(), keys.size());
  for (const char* key : keys) {
    EXPECT_DOUBLE_EQ(peer.at("ratios").at(key), peer.at(key).get<double>() / line.at(key).get<double>())
        << key;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BenchPeerTest,
                         testing::Values(Peer{"libtorch", libtorch},
                                         Peer{"libtorch-autocast", libtorch, 1e-2}, Peer{"pytorch", pytorch},
                                         Peer{"pytorch-autocast", pytorch, 1e-2},
                                         Peer{"onnxruntime", onnxruntime, 1e-6, false},
                                         Peer{"onnxruntime-int8", onnxruntime, 2e-2, false}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(BenchEncoderTest, WithoutJsonATableIsPrinted) {
  const ProgramResult result = run_bench("--config toy --seconds 0.001");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.output.starts_with("\ntoy: 222 parameters, 1 x 8 tokens, 1 thread; OpenBLAS core "))
      << result.output;
}

TEST(BenchEncoderTest, ArgumentsThatCannotBeAreOneLineAndExitCode2) {
  const ProgramResult result = run_bench("--config tiny");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output,
            "bench_encoder: --config: tiny not in {toy,small,medium,large,longseq,minilm,bert-base}; "
            "--help lists the "
            "arguments\n");
}

/// The loss before a step, and the parameters after it.
std::pair<double, std::string> loss_and_step(double dropout) {
  const xgrad_tests::TemporaryFolder folder;
  Process worker("xgrad", {XGRAD_PROGRAMS_DIR "/../benchmarks/bench_encoder_xgrad"});
  const json size{{"vocab", 6}, {"seq", 8},    {"batch", 2},   {"d_model", 8},      {"heads", 2},
                  {"d_ff", 8},  {"layers", 1}, {"classes", 2}, {"dropout", dropout}};
  const json started =
      worker.ask<json>({{"do", "start"}, {"threads", 1}, {"precision", "highest"}, {"size", size}});
  worker.ask<json>({{"do", "step"}, {"calls", 1}, {"batches", 1}, {"warm_up", 0}});
  worker.ask<json>({{"do", "save"}, {"path", folder.path("weights")}});
  return {started.at("loss"), xgrad_tests::read_bytes(folder.path("weights"))};
}

TEST(BenchEncoderTest, DropoutIsOfStepsAlone) {
  const auto [loss, parameters] = loss_and_step(0);
  const auto [same_loss, other_parameters] = loss_and_step(0.5);
  EXPECT_EQ(loss, same_loss);
  EXPECT_EQ(parameters.size(), other_parameters.size());
  EXPECT_NE(parameters, other_parameters);
  EXPECT_EQ(parameters, loss_and_step(0).second);
}

TEST(BenchWorkerTest, AnswersInPythonAsInCpp) {
  if (run_command("python3 --version 2>&1").exit_code != 0) GTEST_SKIP() << "python3 is not installed";
  const std::string script =
      "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); "
      "from worker import serve; "
      "serve(lambda request: ({'got': request['x']}, {'step': lambda: print('hello')}))";
  Process worker("peer", {"python3", "-c", script, XGRAD_SOURCE_DIR "/benchmarks/encoder"});
  const json step{{"do", "step"}, {"calls", 2}, {"batches", 3}, {"warm_up", 0}};
  const auto error_of = [&](const json& request) {
    return message_of<std::runtime_error>([&] { worker.ask<json>(request); });
  };
  EXPECT_EQ(error_of(step), "peer: ValueError: cannot do 'step' now");
  EXPECT_EQ(error_of({{"do", "start"}}), "peer: KeyError: 'x'");
  EXPECT_EQ(worker.ask<json>({{"do", "start"}, {"x", 1.5}}), (json{{"got", 1.5}}));
  const json times = worker.ask<json>(step);
  EXPECT_EQ(times.at("wall").size(), 3);
  EXPECT_EQ(times.at("cpu").size(), 3);
}

/// A process of the shell that is asked something.
class BenchProcessTest : public testing::Test {
 protected:
  BenchProcessTest() { signal(SIGPIPE, SIG_IGN); }

  static json ask(const std::string& script, std::chrono::milliseconds patience = std::chrono::minutes(1)) {
    Process process("peer", {"sh", "-c", script}, {{"A_VARIABLE", "a value"}}, patience);
    return process.ask<json>({{"do", "step"}});
  }
};

TEST_F(BenchProcessTest, AnswersWithAnObjectALine) {
  EXPECT_EQ(ask(R"(read -r request; echo "{\"asked\": $request}")"), (json{{"asked", {{"do", "step"}}}}));
  EXPECT_EQ(ask(R"(read -r request; echo "{\"it\": \"$A_VARIABLE\"}")"), (json{{"it", "a value"}}));
}

TEST_F(BenchProcessTest, WhatDoesNotAnswerIsAnError) {
  const auto expect = [](const std::string& script, const std::string& error) {
    EXPECT_EQ(message_of<std::runtime_error>([&] { ask(script); }), "peer: " + error);
  };
  expect("exit 3", "ended with exit code 3");
  expect("kill -9 $$", "ended by signal 9");
  expect("exec sleep 60 >&-", "closed its output");
  expect("echo hello; exec sleep 60", "answered what is no JSON object: hello");
  expect("echo '[1]'; exec sleep 60", "answered what is no JSON object: [1]");
  expect(R"(echo '{"error": "cannot step"}'; exec sleep 60)", "cannot step");
}

TEST_F(BenchProcessTest, SilenceEnds) {
  const auto silence = [] { ask("exec sleep 60", std::chrono::milliseconds(50)); };
  EXPECT_EQ(message_of<std::runtime_error>(silence), "peer: no answer in 50 ms");
}

TEST_F(BenchProcessTest, AnAnswerOfAnotherTypeIsAnError) {
  Process process("peer", {"sh", "-c", "read -r request; echo '{}'"});
  const std::string error = message_of<std::runtime_error>([&] { process.ask<double>(json::object()); });
  EXPECT_TRUE(error.starts_with("peer: answered {}: ")) << error;
}

TEST_F(BenchProcessTest, WhatCannotBeRunIsAnError) {
#ifdef XGRAD_EMULATED
  GTEST_SKIP() << "under qemu's emulation posix_spawn does not report errors of the child";
#endif
  const auto start = [] { Process("peer", {"/no/such/program"}); };
  EXPECT_EQ(message_of<std::runtime_error>(start),
            "peer: cannot run '/no/such/program': No such file or directory");
}

}  // namespace bench_encoder_test
