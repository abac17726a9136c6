// Ranks that are processes: mpirun starts ranks_of_mpi and the training programs.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../files.hpp"
#include "../program.hpp"

namespace world_test {

using xgrad_tests::ProgramResult, xgrad_tests::read_bytes;

// MPICH's ranks spin while they wait: more than there are processors take long.
#ifdef XGRAD_OPEN_MPI
const std::vector<std::size_t> counts{2, 3, 4};
#else
const std::vector<std::size_t> counts{2};
#endif

ProgramResult on_ranks(std::size_t count, const std::string& command) {
  return xgrad_tests::run_command(XGRAD_MPIEXEC " -n " + std::to_string(count) + " " + command +
                                  " </dev/null");
}

ProgramResult try_on(std::size_t count, const std::string& what) {
  return on_ranks(count, XGRAD_RANKS_OF_MPI " " + what + " 2>&1");
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WorldTest, IsOneRankWithoutMpirun) {
  const ProgramResult result = xgrad_tests::run_command(XGRAD_RANKS_OF_MPI " size");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "rank 0 of 1\ndone\n");
}

TEST(WorldTest, IsTheRanksOfMpirun) {
  for (const std::size_t count : counts) {
    const ProgramResult result = try_on(count, "size");
    EXPECT_EQ(result.exit_code, 0);
    for (std::size_t rank = 0; rank < count; ++rank)
      EXPECT_TRUE(
          contains(result.output, "rank " + std::to_string(rank) + " of " + std::to_string(count) + "\n"))
          << result.output;
  }
}

TEST(WorldTest, MessagesArriveWholeAndInOrder) {
  for (const std::size_t count : counts) {
    for (const std::string what : {"messages", "channels"}) {
      const ProgramResult result = try_on(count, what);
      EXPECT_EQ(result.exit_code, 0) << result.output;
      EXPECT_EQ(result.output, "done\n");
    }
  }
}

TEST(WorldTest, ATrainingHasTheBitsOfOneProcess) {
  for (const std::size_t count : counts) {
    const ProgramResult result = try_on(count, "training");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(result.output, "done\n");
  }
}

TEST(WorldTest, RefusesTheMpirunOfAnotherMpi) {
#ifdef XGRAD_OPEN_MPI
  const std::string others_variable = "PMI_SIZE";
#else
  const std::string others_variable = "OMPI_COMM_WORLD_SIZE";
#endif
  const ProgramResult result =
      xgrad_tests::run_command(others_variable + "=3 " XGRAD_RANKS_OF_MPI " size 2>&1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(
      result.output,
      "error: mpi: mpirun has started 3 processes, but this one sees 1: it was started by another MPI's "
      "mpirun\n");
}

/// The run must end, not succeed, and say this.
void expect_end(std::size_t count, const std::string& what, const std::string& said) {
  const ProgramResult result = try_on(count, what);
  EXPECT_NE(result.exit_code, 0) << what;
  EXPECT_TRUE(contains(result.output, said)) << what << ": " << result.output;
}

TEST(WorldFailureTest, AMessageOfAnotherLengthEndsTheRun) {
  expect_end(2, "shorter", "rank 0: mpi: a message from rank 1 must have 9 bytes, got 8\n");
  expect_end(2, "longer", "rank 0: mpi: a message from rank 1 must have 7 bytes, got more\n");
}

TEST(WorldFailureTest, AnExceptionOnOneRankEndsTheRun) {
  expect_end(counts.back(), "exception", "rank 1: no disk\n");
  expect_end(counts.back(), "exception_outside_of_fit", "rank 1: ended by an exception\n");
}

TEST(WorldFailureTest, ARankThatIsLostEndsTheRun) {
  for (const std::string what : {"exit", "kill"}) {
    const ProgramResult result = try_on(counts.back(), what);
    EXPECT_NE(result.exit_code, 0) << what;
    EXPECT_FALSE(contains(result.output, "done\n")) << what;
    EXPECT_FALSE(contains(result.output, "waiting")) << "mpirun ends the others before they have waited long";
  }
}

TEST(WorldFailureTest, ARankThatHangsIsWaitedForAWhile) {
  expect_end(2, "hang", "rank 0: waiting for rank 1\n");
  expect_end(2, "hang", "rank 0: waited 2");
  expect_end(2, "hang_at_end", "rank 0: waited 2");
}

TEST(WorldTest, WarnsOfProcessorsWithOtherInstructions) {
#if !defined(__x86_64__) || !defined(XGRAD_OPENBLAS)
  GTEST_SKIP() << "OpenBLAS's kernels for another processor do not run on this one, or this is another BLAS";
#endif
  const std::string command =
      "sh -c '[ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 0 ] || export OPENBLAS_CORETYPE=Nehalem; "
      "exec " XGRAD_PROGRAMS_DIR "/train_toy_encoder --steps 2' 2>&1 >/dev/null";
  const ProgramResult result = on_ranks(2, command);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.output,
                       "warning: rank 1 differs from rank 0: OpenBLAS's processor is 'Nehalem', not '"))
      << result.output;
}

TEST(WorldFailureTest, ASignalToOneRankEndsTheRunOfAllInOrder) {
  const ProgramResult result = try_on(counts.back(), "signal");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (std::size_t rank = 0; rank < counts.back(); ++rank) {
    EXPECT_TRUE(contains(result.output, "rank " + std::to_string(rank) + ": 4 steps, interrupted\n"))
        << result.output;
  }
}

TEST(WorldFailureTest, OneRankThrowsAsWithoutRanks) {
  for (const ProgramResult& result :
       {try_on(1, "caught"), xgrad_tests::run_command(XGRAD_RANKS_OF_MPI " caught")}) {
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_TRUE(result.output.starts_with("caught: fit: the loss of step 0 is nan")) << result.output;
  }
}

TEST(ResumedOnRanksTest, AKilledRunGoesOnWithAnyNumberOfRanksAndHasTheBitsOfAWholeOne) {
  const xgrad_tests::TemporaryFolder folder;
  const auto run = [&](std::size_t count, const char* file, int kill_at, std::size_t victim) {
    const std::string what =
        "run " + folder.path(file) + " " + std::to_string(kill_at) + " " + std::to_string(victim);
    return count == 1 ? xgrad_tests::run_command(XGRAD_RANKS_OF_MPI " " + what) : try_on(count, what);
  };
  const auto bits = [](const ProgramResult& result) {
    const std::size_t found = result.output.find("bits ");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return found == std::string::npos ? "none" : result.output.substr(found);
  };
  const ProgramResult whole = run(1, "whole", 99, 0);
  const int stride = std::getenv("XGRAD_KILL_IN_EVERY_STEP") != nullptr ? 1 : 7;
  int kill_at = 1;
  for (std::size_t i = 0; kill_at < 20; ++i, kill_at += stride) {
    const std::size_t count = counts[i % counts.size()];
    EXPECT_NE(run(count, "killed", kill_at, i % count).exit_code, 0);
  }
  EXPECT_EQ(bits(run(counts.back(), "killed", 99, 0)), bits(whole));
  EXPECT_TRUE(read_bytes(folder.path("killed")) == read_bytes(folder.path("whole")));
}

/// A training program with any number of ranks writes what it writes alone: output, checkpoint and, with
/// --save, model.
void expect_as_alone(const std::string& program, bool saves) {
  const xgrad_tests::TemporaryFolder folder;
  const auto without_seconds = [](std::string text) {
    const std::size_t begin = text.find(" steps, "), end = text.find(';', begin);
    return begin == std::string::npos ? text : text.erase(begin, end - begin);
  };
  const auto trained = [&](std::size_t count) {
    const std::string name = std::to_string(count), checkpoint = folder.path(name),
                      model = checkpoint + ".model";
    const std::string command = XGRAD_PROGRAMS_DIR "/" + program + " --shards 8 --checkpoint " + checkpoint +
                                (saves ? " --save " + model : "") + " 2>/dev/null";
    const ProgramResult result = count == 1 ? xgrad_tests::run_command(command) : on_ranks(count, command);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return std::array{without_seconds(result.output), read_bytes(checkpoint),
                      saves ? read_bytes(model) : std::string()};
  };
  const auto alone = trained(1);
  for (const std::size_t count : counts) {
    const auto together = trained(count);
    EXPECT_EQ(together[0], alone[0]) << count;
    EXPECT_TRUE(together[1] == alone[1]) << "checkpoint of " << count;
    EXPECT_TRUE(together[2] == alone[2]) << "model of " << count;
  }
}

TEST(ProgramsOnRanksTest, CheckpointsAndOutputAreThoseOfOneProcess) {
  expect_as_alone("train_toy_encoder --steps 40", false);
}

TEST(ProgramsOnRanksTest, AGptWithDropoutAndSamplesIsThatOfOneProcess) {
  const xgrad_tests::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "the cat sat on the mat.\n";
  expect_as_alone(
      "train_gpt --text " + folder.write("text", text) +
          " --steps 40 --evaluate-every 10 --batch 12 --context 16 --d-model 16 --heads 2 --d-ff 32"
          " --layers 1 --dropout 0.1 --sample-length 20 --validation-windows 50",
      true);
}

TEST(ProgramsOnRanksTest, APretrainedModelIsThatOfOneProcess) {
  const xgrad_tests::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += i % 3 == 0 ? "The black cat sleeps.\n\n" : "A mouse eats cheese!\n\n";
  folder.write("text", text);
  const std::string from_text = folder.path("model") + " --text " + folder.path("text");
  xgrad_tests::output_of("tiny_bert " + from_text + " --hidden-size 8 --intermediate-size 8");
  const auto trained = [&](std::size_t count, const std::string& out) {
    const std::string program = XGRAD_PROGRAMS_DIR "/pretrain " + from_text +
                                " --steps 5 --shards 8 --save " + folder.path(out) + " --metrics " +
                                folder.path(out + ".json") + " 2>&1";
    const ProgramResult result = count == 1 ? xgrad_tests::run_command(program) : on_ranks(count, program);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    // What is before this name, in the order of the letters, is what it reached.
    const std::string metrics = read_bytes(folder.path(out + ".json"));
    return read_bytes(folder.path(out + "/model.safetensors")) +
           metrics.substr(0, metrics.find("\"before\""));
  };
  const std::string alone = trained(1, "alone");
  for (const std::size_t count : counts) EXPECT_TRUE(trained(count, std::to_string(count)) == alone) << count;
}

TEST(ProgramsOnRanksTest, TheTimesOfAllRanksAreTold) {
  const xgrad_tests::TemporaryFolder folder;
  const std::string metrics = folder.path("metrics.json");
  const ProgramResult result = on_ranks(
      2, XGRAD_PROGRAMS_DIR "/train_toy_encoder --steps 40 --metrics " + metrics + " 2>&1 >/dev/null");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(contains(result.output, "\n2 ranks computed ")) << result.output;
  const std::string text = read_bytes(metrics);
  std::size_t ranks = 0;
  for (std::size_t at = 0; (at = text.find("\"computing\"", at)) != std::string::npos; ++at) ++ranks;
  EXPECT_EQ(ranks, 2u) << text;
}

#ifdef XGRAD_BUILD_BENCHMARKS
TEST(ProgramsOnRanksTest, TheBenchmarkHasALineForEachWay) {
  const ProgramResult result =
      on_ranks(2, XGRAD_PROGRAMS_DIR "/bench_ranks --config small --seconds 0.001 2>&1");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const std::string line :
       {"1 rank ", "1 rank, 8 shards ", "2 ranks, MPI_Allreduce ", "2 ranks, 2 shards, sent at the end ",
        "2 ranks, 2 shards ", "2 ranks, 8 shards "})
    EXPECT_TRUE(contains(result.output, "\n" + line)) << line << result.output;
}
#endif

TEST(ProgramsOnRanksTest, TheExampleHasTheSameLossAndWeights) {
  std::string expected = xgrad_tests::output_of("data_parallel 2>/dev/null");
  EXPECT_TRUE(expected.starts_with("1 ranks, loss 0.0"));
  for (const std::size_t count : counts) {
    expected.replace(0, 1, std::to_string(count));
    EXPECT_EQ(on_ranks(count, XGRAD_PROGRAMS_DIR "/data_parallel 2>/dev/null").output, expected);
  }
}

TEST(ProgramsOnRanksTest, WhatIsWrongIsSaidOnce) {
  const std::string wrong =
      XGRAD_PROGRAMS_DIR "/train_toy_encoder --steps 5 --resume --checkpoint /nowhere/file 2>&1";
  EXPECT_TRUE(contains(on_ranks(1, wrong).output, "train_toy_encoder: /nowhere/file: cannot be written"));
  const ProgramResult result = on_ranks(2, wrong);
  const std::size_t found =
      result.output.find("rank 0: /nowhere/file: cannot be written: No such file or directory\n");
  EXPECT_NE(found, std::string::npos) << result.output;
  EXPECT_EQ(found, result.output.rfind("\nrank ") + 1) << result.output;
}

}  // namespace world_test
