#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <xgrad/xgrad.hpp>

#include <xgrad/ops/kernels/gemm.hpp>
#include <xgrad/ops/kernels/parallel.hpp>

#include "expect_error.hpp"

namespace {

using xgrad::Array, xgrad::Variable;
using xgrad_tests::message_of;

/// Sets the number of threads back when a test ends.
class NumThreadsTest : public testing::Test {
 protected:
  ~NumThreadsTest() override { xgrad::set_num_threads(before_); }

 private:
  std::size_t before_ = xgrad::num_threads();
};

constexpr std::size_t thread_counts[] = {1, 2, 3, 8};

TEST_F(NumThreadsTest, TheNumberIsWhatWasSet) {
  xgrad::set_num_threads(3);
  EXPECT_EQ(xgrad::num_threads(), 3u);
  EXPECT_EQ(message_of<xgrad::ValueError>([] { xgrad::set_num_threads(0); }),
            "set_num_threads: the count must be at least 1, got 0");
  EXPECT_EQ(xgrad::num_threads(), 3u);
}

TEST_F(NumThreadsTest, EveryItemIsComputedOnceByAWorkerInRange) {
  for (const std::size_t threads : thread_counts) {
    xgrad::set_num_threads(threads);
    for (const std::size_t count : {0u, 1u, 2u, 3u, 1000u}) {
      std::vector<std::atomic<int>> computed(count);
      std::atomic<std::size_t> last_worker{0};
      xgrad::kernels::parallel_for(count, [&](std::size_t item, std::size_t worker) {
        ++computed[item];
        if (worker > last_worker) last_worker = worker;
      });
      for (const auto& times : computed) EXPECT_EQ(times, 1);
      EXPECT_LT(last_worker, threads);
    }
  }
}

TEST_F(NumThreadsTest, ChunksCoverTheRangeAndDoNotDependOnTheNumberOfThreads) {
  for (const std::size_t n : {0u, 1u, 19u, 20u, 21u, 105u}) {
    std::vector<std::vector<std::size_t>> ends;
    for (const std::size_t threads : thread_counts) {
      xgrad::set_num_threads(threads);
      std::vector<std::size_t> end_of(n + 1, 0);
      xgrad::kernels::parallel_chunks(
          n, 10, [&](std::size_t begin, std::size_t end, std::size_t) { end_of[begin] = end; });
      std::size_t covered = 0;
      while (covered < n && end_of[covered] > covered) covered = end_of[covered];
      EXPECT_EQ(covered, n);
      ends.push_back(end_of);
    }
    for (const auto& other : ends) EXPECT_EQ(other, ends[0]);
  }
}

TEST_F(NumThreadsTest, AnExceptionComesOutAndThePoolGoesOn) {
  for (const std::size_t threads : thread_counts) {
    xgrad::set_num_threads(threads);
    for (int round = 0; round < 100; ++round) {
      const auto fail_at_7 = [](std::size_t item, std::size_t) {
        if (item == 7) throw std::runtime_error("item 7");
      };
      EXPECT_EQ(message_of<std::runtime_error>([&] { xgrad::kernels::parallel_for(20, fail_at_7); }),
                "item 7");
      std::atomic<int> items{0};
      xgrad::kernels::parallel_for(20, [&](std::size_t, std::size_t) { ++items; });
      EXPECT_EQ(items, 20);
    }
  }
}

TEST_F(NumThreadsTest, LoopsInsideLoopsAndOfSeveralThreadsAtOnce) {
  xgrad::set_num_threads(4);
  std::atomic<int> items{0};
  const auto nested = [&] {
    for (int round = 0; round < 200; ++round) {
      xgrad::kernels::parallel_for(8, [&](std::size_t, std::size_t) {
        xgrad::kernels::parallel_for(5, [&](std::size_t, std::size_t) { ++items; });
      });
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back(nested);
  nested();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(items, 4 * 200 * 8 * 5);
}

TEST_F(NumThreadsTest, AForkedChildComputesAlone) {
  xgrad::set_num_threads(4);
  std::atomic<int> items{0};
  const auto count = [&](std::size_t, std::size_t) { ++items; };
  xgrad::kernels::parallel_for(100, count);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    xgrad::kernels::parallel_for(100, count);
    _exit(items == 200 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

template <class T>
class NumThreadsBitsTest : public NumThreadsTest {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(NumThreadsBitsTest, Types, );

template <class T>
bool same_bits(const Array<T>& a, const Array<T>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TYPED_TEST(NumThreadsBitsTest, ProductsHaveTheSameBits) {
  using T = TypeParam;
  xgrad::manual_seed(0);
  for (int round = 0; round < 24; ++round) {
    const auto size = [](std::int64_t low, std::int64_t high) {
      return static_cast<std::size_t>(xgrad::randint(low, high, {1})(0));
    };
    const std::size_t m = size(90, 700), n = size(1, 500), k = size(1, 600);
    const bool trans_a = round % 2 == 1, trans_b = round % 4 > 1;
    const Array<T> a = xgrad::uniform<T>({m * k}, -1, 1), b = xgrad::uniform<T>({k * n}, -1, 1);
    const Array<T> start = xgrad::uniform<T>({m, n}, -1, 1);
    std::vector<Array<T>> results;
    for (const std::size_t threads : thread_counts) {
      xgrad::set_num_threads(threads);
      results.push_back(start);
      xgrad::kernels::gemm<T>(trans_a, trans_b, m, n, k, 1, a.data(), trans_a ? m : k, b.data(),
                              trans_b ? k : n, round % 3 == 0, results.back().data(), n);
    }
    for (const Array<T>& result : results)
      EXPECT_TRUE(same_bits(result, results[0])) << m << " " << n << " " << k;
  }
}

TYPED_TEST(NumThreadsBitsTest, TrainingStepsHaveTheSameBits) {
  using T = TypeParam;
  std::vector<xgrad::StateDict<T>> trained;
  for (const std::size_t threads : thread_counts) {
    xgrad::set_num_threads(threads);
    xgrad::manual_seed(0);
    const xgrad::ToyEncoder<T> model({.vocab_size = 50,
                                      .max_len = 80,
                                      .classes = 3,
                                      .encoder = {.d_model = 96, .heads = 3, .d_ff = 200, .layers = 1},
                                      .pad_id = 0});
    xgrad::Adam<T> optimizer(model.parameters(), {.lr = 1e-2});
    const xgrad::Ids ids = xgrad::randint(0, 50, {7, 80}), labels = xgrad::randint(0, 3, {7});
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      cross_entropy(model.class_logits(ids), labels).backward();
      optimizer.step();
    }
    trained.push_back(model.state_dict());
  }
  for (const auto& other : trained) {
    for (const auto& [name, value] : other) EXPECT_TRUE(same_bits(value, trained[0].at(name))) << name;
  }
}

}  // namespace
