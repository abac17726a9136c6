// What ranks tell each other.

#include <xgrad/mpi/communicator.hpp>
#include <xgrad/mpi/fit.hpp>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include <xgrad/base/detail/bytes/checksum.hpp>
#include <xgrad/base/error.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/train/trainer.hpp>

#include "expect_error.hpp"
#include "files.hpp"
#include "ranks.hpp"

namespace communicator_test {

using xgrad::mpi::Communicator;
using xgrad_tests::message_of, xgrad_tests::Ranks;

TEST(CommunicatorTest, GathersInTheOrderOfTheRanks) {
  for (const std::size_t count : {1, 2, 5}) {
    Ranks::run(count, [&](Communicator& ranks) {
      const auto rank = static_cast<std::byte>(ranks.rank());
      const std::byte mine[] = {rank, std::byte{9}};
      std::vector<std::byte> expected;
      for (std::size_t r = 0; r < count; ++r) {
        expected.push_back(static_cast<std::byte>(r));
        expected.push_back(std::byte{9});
      }
      EXPECT_EQ(xgrad::mpi::all_gather(ranks, mine), expected);
      EXPECT_TRUE(xgrad::mpi::all_gather(ranks, {}).empty());
    });
  }
}

TEST(CommunicatorTest, BroadcastsWhatRankZeroHas) {
  for (const std::size_t count : {1, 2, 4}) {
    Ranks::run(count, [](Communicator& ranks) {
      const std::vector<std::byte> first{std::byte{1}, std::byte{2}, std::byte{3}};
      EXPECT_EQ(
          xgrad::mpi::broadcast(ranks, ranks.rank() == 0 ? first : std::vector<std::byte>(ranks.rank())),
          first);
      EXPECT_TRUE(xgrad::mpi::broadcast(ranks, {}).empty());
    });
  }
}

TEST(CommunicatorTest, AddsWholeNumbers) {
  Ranks::run(3, [](Communicator& ranks) {
    const std::uint64_t big = std::uint64_t{1} << 60;
    EXPECT_EQ(xgrad::mpi::all_sum(ranks, {ranks.rank(), big + 1}),
              (std::vector<std::uint64_t>{3, 3 * big + 3}));
    EXPECT_TRUE(xgrad::mpi::all_sum(ranks, {}).empty());
  });
}

/// What check_agreement says on all ranks.
std::string disagreement(const std::vector<xgrad::mpi::Agreement>& agreements) {
  std::set<std::string> texts;
  std::mutex mutex;
  Ranks::run(agreements.size(), [&](Communicator& ranks) {
    const std::string text =
        message_of<xgrad::ValueError>([&] { check_agreement(ranks, agreements[ranks.rank()]); });
    const std::lock_guard lock(mutex);
    texts.insert(text);
  });
  EXPECT_EQ(texts.size(), 1u);
  return *texts.begin();
}

TEST(CommunicatorTest, NamesTheRankThatDiffersAndInWhat) {
  EXPECT_EQ(disagreement({{{"a", "1"}, {"b", ""}}, {{"a", "1"}, {"b", ""}}}), "no exception");
  EXPECT_EQ(disagreement({{}, {}}), "no exception");
  EXPECT_EQ(disagreement({{{"a", "1"}, {"b", "x"}}, {{"a", "1"}, {"b", "x"}}, {{"a", "2"}, {"b", "yy"}}}),
            "rank 2 differs from rank 0: a is '2', not '1'; b is 'yy', not 'x'");
  EXPECT_EQ(disagreement({{{"a", "1"}}, {{"b", "2"}}}),
            "rank 1 differs from rank 0: a is missing; b is '2', and is missing there");
}

TEST(CommunicatorTest, ChecksumsAreThoseOfFnv1a) {
  const auto of = [](const std::string& text) {
    return xgrad::detail::checksum(std::as_bytes(std::span(text)));
  };
  EXPECT_EQ(of(""), 0xcbf29ce484222325U);
  EXPECT_EQ(of("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(of("foobar"), 0x85944171f73967e8U);
  const std::string half = "bar";
  EXPECT_EQ(xgrad::detail::checksum(std::as_bytes(std::span(half)), of("foo")), of("foobar"));
}

// ---- fit ----

/// Calls fit on each of so many ranks; make() may change its options.
template <class Make>
void fit_on(std::size_t count, std::size_t steps, const std::function<xgrad::StepResult(std::size_t)>& step,
            const Make& make) {
  Ranks::run(count, [&](Communicator& ranks) {
    xgrad::Generator generator(1);
    const xgrad::UseGenerator use(generator);
    xgrad::FitOptions options{.progress = false};
    make(ranks.rank(), options);
    const xgrad::TrainingLog log = xgrad::mpi::fit(ranks, steps, step, options);
    EXPECT_LE(log.steps, steps);
  });
}

xgrad::StepResult no_step(std::size_t) { return {.loss = 1}; }

TEST(FitOnRanksTest, RankZeroSavesAndWritesTheMetrics) {
  const xgrad_tests::TemporaryFolder folder;
  std::atomic<int> saves = 0, evaluations = 0;
  fit_on(3, 4, no_step, [&](std::size_t rank, xgrad::FitOptions& options) {
    options.metrics = folder.path("rank" + std::to_string(rank));
    options.save_every = 2;
    options.save = [&, rank](std::size_t) {
      EXPECT_EQ(rank, 0u);
      ++saves;
    };
    options.evaluate_every = 1;
    options.evaluate = [&](std::size_t) {
      ++evaluations;
      return true;
    };
  });
  EXPECT_EQ(saves, 2);
  EXPECT_EQ(evaluations, 12);
  EXPECT_TRUE(std::filesystem::exists(folder.path("rank0")));
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(FitOnRanksTest, AllStopAfterTheSameStep) {
  std::atomic<int> steps = 0;
  const auto counted = [&](std::size_t step) {
    ++steps;
    return no_step(step);
  };
  fit_on(3, 100, counted, [&](std::size_t rank, xgrad::FitOptions& options) {
    options.evaluate_every = 1;
    options.evaluate = [rank](std::size_t done) { return rank != 2 || done != 5; };
  });
  EXPECT_EQ(steps, 15);
}

TEST(FitOnRanksTest, AnExceptionAbortsTheRunWithItsReason) {
  struct Watched : Communicator {
    explicit Watched(Communicator& to) : ranks(to) {}
    std::size_t rank() const override { return ranks.rank(); }
    std::size_t size() const override { return ranks.size(); }
    std::unique_ptr<Transfer> start(int channel, std::span<const Outgoing> out,
                                    std::span<const Incoming> in) override {
      return ranks.start(channel, out, in);
    }
    void wait_until(const std::function<bool()>& done) override { ranks.wait_until(done); }
    void abort(const std::string& reason) override {
      why = reason;
      ranks.abort(reason);
    }
    Communicator& ranks;
    std::string why;
  };
  Ranks::run(2, [](Communicator& ranks) {
    xgrad::Generator generator(1);
    const xgrad::UseGenerator use(generator);
    Watched watched(ranks);
    const auto step = [&](std::size_t) -> xgrad::StepResult {
      if (watched.rank() == 1) throw std::runtime_error("no step");
      return {.loss = 1};
    };
    const auto fit = [&] { xgrad::mpi::fit(watched, 9, step, {.progress = false}); };
    if (watched.rank() == 0) return fit();
    EXPECT_THROW(fit(), std::runtime_error);
    EXPECT_EQ(watched.why, "no step");
  });
}

TEST(FitOnRanksTest, AnExceptionOnOneRankEndsAll) {
  for (const std::size_t bad : {0, 2}) {
    EXPECT_EQ(message_of<std::runtime_error>([&] {
                fit_on(3, 100, no_step, [&](std::size_t rank, xgrad::FitOptions& options) {
                  options.evaluate_every = 3;
                  options.evaluate = [=](std::size_t) -> bool {
                    if (rank == bad) throw std::runtime_error("no disk");
                    return true;
                  };
                });
              }),
              "no disk");
  }
}

TEST(FitOnRanksTest, RanksHaveToAgreeBeforeTheFirstStep) {
  EXPECT_EQ(message_of<xgrad::ValueError>([] {
              fit_on(2, 9, no_step,
                     [](std::size_t rank, xgrad::FitOptions& options) { options.first_step = rank; });
            }),
            "rank 1 differs from rank 0: the first step is '1', not '0'");
  EXPECT_EQ(message_of<xgrad::ValueError>([] {
              fit_on(2, 9, no_step, [](std::size_t rank, xgrad::FitOptions&) { xgrad::manual_seed(rank); });
            }).substr(0, 77),
            "rank 1 differs from rank 0: the checksum of the default generator's state is ");
}

}  // namespace communicator_test
