#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <xgrad/xgrad.hpp>

#include <xgrad/base/detail/system/parallel.hpp>
#include <xgrad/kernels/gemm/gemm.hpp>

#include "expect_error.hpp"
#include "keep_num_threads.hpp"

namespace threads_test {

using xgrad::Array, xgrad::Variable;
using xgrad_tests::message_of;

class NumThreadsTest : public testing::Test {
  xgrad_tests::KeepNumThreads keep_;
};

constexpr std::size_t thread_counts[] = {1, 2, 3, 8};

TEST_F(NumThreadsTest, TheNumberIsWhatWasSet) {
  xgrad::set_num_threads(3);
  EXPECT_EQ(xgrad::num_threads(), 3u);
  EXPECT_EQ(message_of<xgrad::ValueError>([] { xgrad::set_num_threads(0); }),
            "set_num_threads: the count must be from 1 to 1024, got 0");
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

TEST_F(NumThreadsTest, ALoopInsideOfALoopHasOneThread) {
  xgrad::set_num_threads(4);
  EXPECT_EQ(xgrad::kernels::available_threads(), 4u);
  std::atomic<int> begun{0}, alone{0};
  const auto count_alone = [&](std::size_t item, std::size_t) {
    ++begun;
    alone += xgrad::kernels::available_threads() == 1;
    if (item == 90) throw std::runtime_error("item 90");
  };
  EXPECT_EQ(message_of<std::runtime_error>([&] { xgrad::kernels::parallel_for(91, count_alone); }),
            "item 90");
  EXPECT_EQ(alone, begun);
  EXPECT_EQ(xgrad::kernels::available_threads(), 4u);
}

TEST_F(NumThreadsTest, ChunksAreAsLongAsAskedForAndTheLastIsUpToTwiceThat) {
  for (const std::size_t n : {20u, 21u, 29u, 30u, 105u}) {
    std::vector<std::size_t> length_at(n, 0);
    xgrad::kernels::parallel_chunks(
        n, 10, [&](std::size_t begin, std::size_t end, std::size_t) { length_at[begin] = end - begin; });
    for (std::size_t begin = 0; begin < n; ++begin) {
      const bool last = begin == (n / 10 - 1) * 10;
      EXPECT_EQ(length_at[begin], begin % 10 != 0 || begin > n - 10 ? 0 : last ? n - begin : 10) << n;
    }
  }
}

/// The items of a loop are begun by all threads before any of them is done with its first, which is returned
/// for each worker.
std::vector<std::size_t> first_items(std::size_t items, std::size_t threads) {
  std::vector<std::size_t> first(threads, items);
  std::atomic<std::size_t> begun{0};
  xgrad::kernels::parallel_for(items, [&](std::size_t item, std::size_t worker) {
    if (first[worker] != items) return;
    first[worker] = item;
    ++begun;
    while (begun < threads) std::this_thread::yield();
  });
  return first;
}

TEST_F(NumThreadsTest, EachThreadBeginsWithItsOwnPartOfTheItems) {
  for (const std::size_t threads : thread_counts) {
    xgrad::set_num_threads(threads);
    for (const std::size_t items : {threads, 3 * threads, 3 * threads + 2}) {
      const std::vector<std::size_t> first = first_items(items, threads);
      for (std::size_t worker = 0; worker < threads; ++worker)
        EXPECT_EQ(first[worker], worker * items / threads) << items << " items";
    }
  }
}

TEST_F(NumThreadsTest, WhoIsDoneComputesWhatOthersHaveNotBegun) {
  for (const std::size_t threads : {2u, 3u, 8u}) {
    xgrad::set_num_threads(threads);
    for (const std::size_t items : {threads, 50 * threads}) {
      std::vector<std::atomic<int>> computed(items);
      std::atomic<std::size_t> others{0};
      xgrad::kernels::parallel_for(items, [&](std::size_t item, std::size_t) {
        ++computed[item];
        if (item != 0) ++others;
        while (item == 0 && others < items - 1) std::this_thread::yield();
      });
      for (const auto& times : computed) EXPECT_EQ(times, 1);
    }
  }
}

/// What /proc tells of the threads of this process but for the calling one.
struct OtherThreads {
  std::size_t count = 0, awake = 0;
  long went_to_sleep = 0;  ///< how often, all together
};

OtherThreads other_threads() {
  OtherThreads others;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    ++others.count;
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      if (word == "State:") {
        status >> word;
        others.awake += word != "S";
      } else if (word == "voluntary_ctxt_switches:") {
        long times = 0;
        status >> times;
        others.went_to_sleep += times;
      }
    }
  }
  return others;
}

OtherThreads other_threads_asleep() {
  for (;;) {
    const OtherThreads others = other_threads();
    if (others.awake == 0) return others;
    std::this_thread::yield();
  }
}

TEST_F(NumThreadsTest, AJobWakesNoMoreThreadsThanItNeeds) {
  xgrad::set_num_threads(16);
  xgrad::kernels::parallel_for(100, [](std::size_t, std::size_t) {});
  const OtherThreads before = other_threads_asleep();
  ASSERT_GE(before.count, 15u);
  constexpr int jobs = 50;
  for (int job = 0; job < jobs; ++job) {
    xgrad::kernels::parallel_for(2, [](std::size_t, std::size_t) {});
    other_threads_asleep();
  }
  // one for each job, and room for those who happen to be woken for something else
  EXPECT_LE(other_threads().went_to_sleep - before.went_to_sleep, 3 * jobs);
}

TEST_F(NumThreadsTest, WorkForThoseWhoAreAwakeWakesNobody) {
  xgrad::set_num_threads(4);
  xgrad::kernels::parallel_for(100, [](std::size_t, std::size_t) {});
  const OtherThreads before = other_threads_asleep();
  std::size_t items = 0;
  const auto count_own = [&](std::size_t, std::size_t worker) { items += worker == 0; };
  for (int job = 0; job < 50; ++job)
    xgrad::kernels::parallel_for(10, count_own, 4, xgrad::kernels::Helpers::awake);
  EXPECT_EQ(items, 500u);
  EXPECT_EQ(other_threads().went_to_sleep, before.went_to_sleep);
}

TEST_F(NumThreadsTest, WorkForThoseWhoAreAwakeIsComputedOnce) {
  for (const std::size_t threads : thread_counts) {
    xgrad::set_num_threads(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> computed(20);
      const auto count = [&](std::size_t item, std::size_t) { ++computed[item]; };
      if (round % 10 == 0) xgrad::kernels::parallel_for(20, [](std::size_t, std::size_t) {});
      xgrad::kernels::parallel_for(20, count, threads, xgrad::kernels::Helpers::awake);
      for (const auto& times : computed) EXPECT_EQ(times, 1);
    }
  }
}

/// Runs alone in a process of the next test, too.
TEST(NumThreadsAtStartTest, AreTheProcessorsThatTheProcessMayRunOn) {
  if (std::getenv("OPENBLAS_NUM_THREADS") || std::getenv("OMP_NUM_THREADS"))
    GTEST_SKIP() << "bounded by a variable";
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(xgrad::num_threads(), static_cast<std::size_t>(CPU_COUNT(&allowed)));
}

/// Becomes a process that runs one test, whichever part of the tests this one runs.
[[noreturn]] void run_alone(const char* filter) {
  unsetenv("GTEST_TOTAL_SHARDS");
  unsetenv("GTEST_SHARD_INDEX");
  execl("/proc/self/exe", "xgrad_tests", filter, nullptr);
  _exit(127);
}

TEST(NumThreadsAtStartTest, AreOneInAProcessBoundToOneProcessor) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
    unsetenv("OPENBLAS_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
    run_alone("--gtest_filter=*AreTheProcessorsThatTheProcessMayRunOn");
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// Runs in processes of the next test.
TEST(NumThreadsAtStartTest, IsTheExpectedNumber) {
  const char* const expected = std::getenv("EXPECTED_THREADS");
  if (expected == nullptr) GTEST_SKIP() << "nothing is expected";
  EXPECT_EQ(std::to_string(xgrad::num_threads()), expected);
}

TEST(NumThreadsAtStartTest, AreTheFirstPositiveNumberOfTheVariables) {
  struct Sample {
    const char *openblas, *openmp, *expected;
  };
  for (const auto& [openblas, openmp, expected] :
       {Sample{"3", "5", "3"}, Sample{nullptr, "5", "5"}, Sample{"0", "5", "5"}, Sample{"-2", "5", "5"},
        Sample{"many", "5", "5"}, Sample{"5000", nullptr, "1024"}, Sample{"1", nullptr, "1"}}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto set = [](const char* name, const char* value) {
        if (value != nullptr) {
          setenv(name, value, 1);
        } else {
          unsetenv(name);
        }
      };
      set("OPENBLAS_NUM_THREADS", openblas);
      set("OMP_NUM_THREADS", openmp);
      set("EXPECTED_THREADS", expected);
      run_alone("--gtest_filter=*NumThreadsAtStartTest.IsTheExpectedNumber");
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << expected;
  }
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
    const bool trans_a = round % 2 == 1, trans_b = round % 4 > 1;
    const bool is_long = round % 8 == 1;  // a sum over the rows of both, such as the gradient of a weight
    const std::size_t m = is_long ? size(64, round % 16 == 1 ? 96 : 200) : size(90, 700);
    const std::size_t n = is_long ? size(64, 200) : size(1, 500);
    const std::size_t k = is_long ? size(400, 900) : size(1, 600);
    const Array<T> a = xgrad::uniform<T>({m * k}, -1, 1), b = xgrad::uniform<T>({k * n}, -1, 1);
    const Array<T> start = xgrad::uniform<T>({m, n}, -1, 1);
    std::vector<Array<T>> results;
    for (const std::size_t threads : thread_counts) {
      xgrad::set_num_threads(threads);
      results.push_back(start);
      xgrad::kernels::gemm<T>(1, {a.data(), m, k, trans_a ? m : k, trans_a},
                              {b.data(), k, n, trans_b ? k : n, trans_b}, round % 3 == 0,
                              {results.back().data(), m, n});
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

/// An op, and the shapes of its inputs, which are drawn from [0.25, 2].
template <class T>
struct LargeCase {
  std::string name;
  std::vector<xgrad::Shape> shapes;
  std::function<Variable<T>(const std::vector<Variable<T>>&)> op;
};

xgrad::Mask every_third(const xgrad::Shape& shape) {
  xgrad::Mask mask = xgrad::Mask::from_shape(shape);
  for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = i % 3 == 0;
  return mask;
}

/// Every kernel that walks over memory, on matrices of odd sizes, on few long rows and on many short ones.
template <class T>
std::vector<LargeCase<T>> large_cases() {
  using V = const std::vector<Variable<T>>&;
  using xgrad::Shape;
  std::vector<LargeCase<T>> cases;
  const auto add = [&](std::string name, std::vector<Shape> shapes, auto op) {
    cases.push_back({std::move(name), std::move(shapes), op});
  };
  const Shape plane{517, 403}, wide{3, 150001}, tall{70001, 3};

  const auto attend = [](V x) {
    return scaled_dot_product_attention(x[0], x[1], x[2], {}, {.is_causal = true, .num_heads = 3});
  };
  add("attention", {{2, 90, 48}, {2, 101, 48}, {2, 101, 48}}, attend);
  add("attention of long sequences", {{2, 701, 12}, {2, 811, 12}, {2, 811, 12}}, attend);
  add("attention of capped scores, in a window behind earlier keys",
      {{2, 90, 48}, {2, 701, 16}, {2, 701, 16}}, [](V x) {
        return scaled_dot_product_attention(x[0], x[1], x[2], {},
                                            {.is_causal = true,
                                             .num_heads = 3,
                                             .num_kv_heads = 1,
                                             .window_left = 400,
                                             .first_query = 550,
                                             .num_keys = 640,
                                             .softcap = 3});
      });
  add("qkv_attention", {{2, 190, 144}},
      [](V x) { return qkv_attention(x[0], {}, {.is_causal = true, .num_heads = 3}); });
  add("self_attention", {{5, 90, 50}, {48, 50}, {48, 50}, {48, 50}}, [](V x) {
    return self_attention(x[0], {x[1], {}}, {x[2], {}}, {x[3], {}}, {}, {.num_heads = 4});
  });
  const auto last_states = [](const auto& results) {
    return xgrad::cat({flatten(results.output), flatten(results.h)});
  };
  add("rnn", {{3, 517, 5}, {130, 5}, {130, 130}}, [=](V x) {
    return last_states(rnn(x[0], {}, {{x[1], x[2]}}));
  });
  add("gru", {{3, 97, 5}, {3 * 200, 5}, {3 * 200, 200}}, [=](V x) {
    return last_states(gru(x[0], {}, {{x[1], x[2]}}));
  });
  add("lstm", {{3, 97, 5}, {4 * 130, 5}, {4 * 130, 20}, {20, 130}}, [=](V x) {
    return last_states(lstm(x[0], {}, {}, {{x[1], x[2], {}, {}, x[3]}}));
  });
  const auto attend_with_dropout = [](V x) {
    xgrad::manual_seed(0);
    return scaled_dot_product_attention(x[0], x[1], x[2], x[3], {.dropout_p = 0.1, .num_heads = 3});
  };
  add("attention with dropout", {{2, 90, 48}, {2, 101, 48}, {2, 101, 48}, {90, 101}}, attend_with_dropout);
  add("attention of long sequences with dropout", {{2, 701, 12}, {2, 811, 12}, {2, 811, 12}, {811}},
      attend_with_dropout);
  add("linear_relu", {{517, 97}, {203, 97}, {203}}, [](V x) { return linear_relu(x[0], x[1], x[2]); });
  add("conv2d", {{3, 8, 61, 47}, {10, 8, 3, 3}, {10}},
      [](V x) { return conv2d(x[0], x[1], x[2], {.padding = 1}); });
  add("conv_transpose2d", {{3, 8, 61, 47}, {8, 10, 3, 3}, {10}},
      [](V x) { return conv_transpose2d(x[0], x[1], x[2], {.stride = 2}); });
  add("batch_norm", {{5, 70, 61, 47}, {70}, {70}},
      [](V x) { return batch_norm(x[0], {}, {}, x[1], x[2], {.training = true}); });
  add("max_pool2d", {{3, 8, 121, 97}}, [](V x) { return max_pool2d(x[0], 3).values; });
  add("avg_pool2d", {{3, 8, 121, 97}}, [](V x) { return avg_pool2d(x[0], 3, {.stride = 2}); });
  add("unfold", {{3, 8, 61, 47}}, [](V x) { return unfold(x[0], 3, {.padding = 1}); });
  add("layer_norm", {{517, 203}, {203}, {203}}, [](V x) { return layer_norm(x[0], 203, x[1], x[2]); });
  add("add_layer_norm", {{517, 203}, {517, 203}, {203}, {203}},
      [](V x) { return add_layer_norm(x[0], x[1], 203, x[2], x[3]); });
  add("scalars", {plane}, [](V x) { return 1.5 * x[0] + 2; });

  const std::vector<std::pair<Shape, Shape>> broadcasts = {{plane, plane},
                                                           {plane, {403}},
                                                           {plane, {517, 1}},
                                                           {wide, {3, 1}},
                                                           {wide, {150001}},
                                                           {tall, {70001, 1}},
                                                           {{}, plane},
                                                           {{2, 700, 131}, {2, 1, 131}},
                                                           {{300, 1, 7}, {101, 1}},
                                                           {{600, 5, 67}, {600, 1, 67}}};
  for (const auto& [a, b] : broadcasts) {
    const std::string shapes = xgrad::to_string(a) + " " + xgrad::to_string(b);
    add("add " + shapes, {a, b}, [](V x) { return x[0] + x[1]; });
    add("sub " + shapes, {b, a}, [](V x) { return x[0] - x[1]; });
    add("mul " + shapes, {a, b}, [](V x) { return x[0] * x[1]; });
    add("div " + shapes, {b, a}, [](V x) { return x[0] / x[1]; });
    add("pow " + shapes, {a, b}, [](V x) { return pow(x[0], x[1]); });
    add("logaddexp " + shapes, {a, b}, [](V x) { return logaddexp(x[0], x[1]); });
    add("hypot " + shapes, {a, b}, [](V x) { return hypot(x[0], x[1]); });
    add("maximum " + shapes, {a, b}, [](V x) { return maximum(x[0], x[1]); });
    add("minimum " + shapes, {a, b}, [](V x) { return minimum(x[0], x[1]); });
    add("mse_loss " + shapes, {a, b}, [](V x) { return xgrad::mse_loss(x[0] + x[1], x[1]); });
    add("where " + shapes, {a, b}, [](V x) { return where(every_third(x[0].shape()), x[0], x[1]); });
  }
  add("masked_fill", {plane}, [](V x) { return masked_fill(x[0], every_third({403}), T(-1)); });
  add("masked_fill wide", {wide}, [](V x) { return masked_fill(x[0], every_third({3, 1}), T(-1)); });

  for (const Shape& shape : {plane, wide, tall, Shape{5, 129, 331}, Shape{210001}, Shape{3, 5000, 7}}) {
    const std::string name = " " + xgrad::to_string(shape);
    add("sum" + name, {shape}, [](V x) { return sum(x[0]); });
    add("logsumexp" + name, {shape}, [](V x) { return logsumexp(x[0], {-1}); });
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const auto dim = static_cast<int>(axis);
      const std::string along = name + " along " + std::to_string(dim);
      add("mean" + along, {shape}, [dim](V x) { return mean(x[0], {dim}); });
      add("amax" + along, {shape}, [dim](V x) { return amax(x[0], {dim}); });
      add("amin" + along, {shape}, [dim](V x) { return amin(x[0], {dim}); });
      add("logcumsumexp" + along, {shape}, [dim](V x) { return logcumsumexp(x[0], dim); });
      add("cummax" + along, {shape}, [dim](V x) { return cummax(x[0], dim).values; });
      add("median" + along, {shape}, [dim](V x) { return median(x[0], dim).values; });
      add("softmax" + along, {shape}, [dim](V x) { return softmax(x[0], dim); });
      add("log_softmax" + along, {shape}, [dim](V x) { return log_softmax(x[0], dim); });
      add("transpose" + along, {shape}, [dim](V x) { return transpose(x[0], dim, -1); });
      add("slice" + along, {shape}, [dim](V x) { return slice(x[0], dim, 1); });
      add("slice by twos" + along, {shape}, [dim](V x) { return slice(x[0], dim, 1, -1, 2); });
      add("cat" + along, {shape, shape}, [dim](V x) { return xgrad::cat(x, dim); });
      const xgrad::Ids index = xgrad::randint(0, static_cast<std::int64_t>(shape[axis]), {shape[axis] + 7});
      add("index_select" + along, {shape}, [dim, index](V x) { return index_select(x[0], dim, index); });
      const xgrad::Ids at = xgrad::randint(0, static_cast<std::int64_t>(shape[axis]), shape);
      add("scatter_reduce" + along, {shape, shape},
          [dim, at](V x) { return scatter_reduce(x[0], dim, at, x[1], xgrad::ScatterReduction::amax); });
      add("gather" + along, {shape}, [dim, at](V x) { return gather(x[0], dim, at); });
    }
  }
  for (const Shape& shape : {plane, tall}) {
    const auto classes = static_cast<std::int64_t>(shape[1]);
    const xgrad::Ids labels = xgrad::randint(0, classes, {shape[0]});
    add("cross_entropy", {shape}, [labels](V x) { return cross_entropy(x[0], labels); });
    add("cross_entropy, smoothed", {shape},
        [labels](V x) { return cross_entropy(x[0], labels, {.ignore_index = 1, .label_smoothing = 0.1}); });
    add("linear_cross_entropy", {{shape[0], 33}, {shape[1], 33}, {shape[1]}}, [labels](V x) {
      return linear_cross_entropy(x[0], x[1], labels, {.linear_bias = x[2], .ignore_index = 1});
    });
    const xgrad::Ids ids = xgrad::randint(0, static_cast<std::int64_t>(shape[0]), {11, 191});
    add("embedding", {shape}, [ids](V x) { return embedding(ids, x[0]); });
  }
  add("cdist", {{517, 19}, {403, 19}}, [](V x) { return cdist(x[0], x[1] + 3); });
  add("permute", {{7, 60, 6, 67}}, [](V x) { return permute(x[0], {0, 2, 1, 3}); });
  add("permute, transposing", {{60, 7, 6, 67}}, [](V x) { return permute(x[0], {1, 3, 2, 0}); });
  add("matmul", {{37, 40, 33}, {37, 33, 45}}, [](V x) { return matmul(x[0], x[1]); });
  add("matmul of few rows", {{5, 701}, {701, 403}}, [](V x) { return matmul(x[0], x[1]); });
  add("linear of one row", {{1, 701}, {1403, 701}}, [](V x) { return xgrad::linear(x[0], x[1]); });
  const auto halves = xgrad::Weight<T>::bfloat16(xgrad::normal<float>({1403, 701}));
  for (const std::size_t rows : {3, 40})
    add("bfloat16_linear", {{rows, 701}}, [halves](V x) { return linear(x[0], halves); });
  add("matmul, broadcast", {{5, 1, 40, 33}, {9, 33, 45}}, [](V x) { return matmul(x[0], x[1]); });
  add("matmul, large", {{3, 200, 170}, {3, 170, 190}}, [](V x) { return matmul(x[0], x[1]); });
  return cases;
}

TYPED_TEST(NumThreadsBitsTest, LargeOpsHaveTheSameBits) {
  using T = TypeParam;
  xgrad::manual_seed(0);
  for (const LargeCase<T>& sample : large_cases<T>()) {
    std::vector<Variable<T>> x;
    for (const xgrad::Shape& shape : sample.shapes) x.emplace_back(xgrad::uniform<T>(shape, 0.25, 2), true);
    Array<T> seed;
    std::vector<std::vector<Array<T>>> results;
    for (const std::size_t threads : thread_counts) {
      xgrad::set_num_threads(threads);
      const Variable<T> y = sample.op(x);
      if (results.empty()) seed = xgrad::uniform<T>(y.shape(), -1, 1);
      std::vector<Array<T>> result{y.value()};
      for (const Variable<T>& dx : grad(y, x, {.seed = Variable<T>(seed)})) result.push_back(dx.value());
      results.push_back(std::move(result));
    }
    for (const auto& result : results) {
      for (std::size_t i = 0; i < result.size(); ++i)
        EXPECT_TRUE(same_bits(result[i], results[0][i])) << sample.name << ", result " << i;
    }
  }
}

TYPED_TEST(NumThreadsBitsTest, LargeStepsOfOptimizersHaveTheSameBits) {
  using T = TypeParam;
  xgrad::manual_seed(0);
  const std::vector<Array<T>> gradients = {xgrad::uniform<T>({403, 517}, -1, 1),
                                           xgrad::uniform<T>({403}, -1, 1)};
  const auto train = [&](auto make_optimizer) {
    std::vector<std::vector<Array<T>>> results;
    for (const std::size_t threads : thread_counts) {
      xgrad::set_num_threads(threads);
      xgrad::manual_seed(1);
      const xgrad::Linear<T> model(517, 403);
      const std::vector<Variable<T>> parameters = model.parameters();
      auto optimizer = make_optimizer(parameters);
      xgrad::ExponentialMovingAverage<T> average(model, 0.9);
      std::vector<Array<T>> result;
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          parameters[i].backward(Variable<T>(gradients[i]));
          (parameters[i] * parameters[i]).backward(Variable<T>(gradients[i]));  // accumulates
        }
        result.push_back(Array<T>{static_cast<T>(xgrad::clip_grad_norm(parameters, 1.0))});
        xgrad::clip_grad_value(parameters, 0.001);
        optimizer.step();
        average.update();
      }
      for (const Variable<T>& parameter : parameters) result.push_back(parameter.value());
      const auto applied = average.apply();
      for (const Variable<T>& parameter : parameters) result.push_back(parameter.value());
      results.push_back(std::move(result));
    }
    for (const auto& result : results) {
      for (std::size_t i = 0; i < result.size(); ++i)
        EXPECT_TRUE(same_bits(result[i], results[0][i])) << "result " << i;
    }
  };
  using Parameters = std::vector<Variable<T>>;
  train([](const Parameters& p) { return xgrad::SGD<T>(p, {.lr = 0.1}); });
  train([](const Parameters& p) { return xgrad::SGD<T>(p, {.lr = 0.1, .momentum = 0.9, .nesterov = true}); });
  train([](const Parameters& p) { return xgrad::Adam<T>(p, {.lr = 0.1, .weight_decay = 0.01}); });
  train([](const Parameters& p) { return xgrad::AdamW<T>(p, {.lr = 0.1}); });
}

}  // namespace threads_test
