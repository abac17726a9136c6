// What the graph keeps, for how long, and which threads may share it.

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/base/threads.hpp>
#include <xgrad/graph/record.hpp>
#include <xgrad/models/toy_encoder.hpp>
#include <xgrad/ops/index/embedding.hpp>
#include <xgrad/ops/loss/cross_entropy.hpp>
#include <xgrad/ops/loss/linear_cross_entropy.hpp>
#include <xgrad/ops/norm/layer_norm.hpp>
#include <xgrad/ops/norm/softmax.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/product/linear.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "expect_error.hpp"
#include "keep_num_threads.hpp"
#include "pool.hpp"

namespace memory_test {

constexpr xgrad::Op throwing_op("throwing", {"x"});

using xgrad::Array, xgrad::empty_cache, xgrad::Grads, xgrad::memory_stats, xgrad::Needs, xgrad::Shape,
    xgrad::Variable, xgrad_tests::pool_keeps_memory;
using V = Variable<float>;

V ramp(const Shape& shape, float step, bool requires_grad = true) {
  Array<float> x = Array<float>::from_shape(shape);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = step * static_cast<float>(i % 11) - 3 * step;
  return V(x, requires_grad);
}

/// The blocks that are in use, not counting what waits for reuse.
std::ptrdiff_t live_blocks() {
  empty_cache();
  return memory_stats().live_blocks;
}

/// A two-layer classifier, its data and its gradients.
struct Classifier {
  V w1 = ramp({5, 3}, 0.1f), b1 = ramp({5}, 0.2f), scale = ramp({5}, 0.3f), shift = ramp({5}, 0.1f),
    w2 = ramp({4, 5}, -0.1f);
  V x = ramp({7, 3}, 0.25f, false);
  xgrad::Ids target{0, 1, 2, 3, 0, 1, 2};

  std::vector<V> parameters() const { return {w1, b1, scale, shift, w2}; }
  V logits() const { return linear(layer_norm(gelu(linear(x, w1, b1)), 5, scale, shift), w2); }
  V loss() const { return cross_entropy(logits(), target) + sum(softmax(logits()) * 0.1); }

  float step() const {
    const V y = loss();
    y.backward();
    for (const V& parameter : parameters()) {
      parameter.assign(Array<float>(parameter.value() - 0.01f * parameter.grad().value()));
      parameter.zero_grad();
    }
    return y.item();
  }
};

// Chains

constexpr int many = 250000;  // a frame of the stack for each would take more than its 8 MiB

/// A chain in which no op saves anything.
V long_sum(const V& x) {
  V y = x;
  for (int i = 0; i < many; ++i) y = y + 1.0;
  return y;
}

/// A chain held together by what its ops saved, too.
V long_product(const V& x, const V& one) {
  V y = x;
  for (int i = 0; i < many; ++i) y = y * one;
  return y;
}

void run_long_chains() {
  const V x(2.0f, true), one(1.0f, true);
  long_sum(x).backward();
  EXPECT_EQ(x.grad().item(), 1);
  x.zero_grad();
  long_product(x, one).backward();
  EXPECT_EQ(x.grad().item(), 1);
  EXPECT_EQ(one.grad().item(), 2.0f * many);
}

TEST(LongChainTest, IsBuiltDifferentiatedAndFreed) {
  const std::ptrdiff_t before = live_blocks();
  run_long_chains();
  EXPECT_EQ(live_blocks(), before);
}

TEST(LongChainTest, IsFreedWithItsLastHandle) {
  const std::ptrdiff_t before = live_blocks();
  {
    const V x(2.0f, true), one(1.0f, true);
    V y = long_product(x, one);
    EXPECT_GT(memory_stats().live_blocks - before, many);
    y = {};
    EXPECT_LT(live_blocks() - before, 10);
    y = long_sum(x);
  }
  EXPECT_EQ(live_blocks(), before);
}

TEST(LongChainTest, NeedsNoStack) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  const auto run = [](void*) -> void* {
    run_long_chains();
    const V x(2.0f, true), one(1.0f, true);
    long_product(x, one);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, nullptr), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// What is kept

TEST(MemoryTest, AStepLeavesNothingBehind) {
  const Classifier model;
  model.step();
  const std::ptrdiff_t before = live_blocks();
  model.step();
  EXPECT_EQ(live_blocks(), before);
}

TEST(MemoryTest, AGraphThatIsNeverDifferentiatedIsFreed) {
  const Classifier model;
  const std::ptrdiff_t before = live_blocks();
  model.loss();
  exp(tanh(sqrt(model.scale * model.scale + 1.0) / (model.scale + 9.0)));
  EXPECT_EQ(live_blocks(), before);
}

TEST(MemoryTest, GradientsOfGradientsAreFreed) {
  const Classifier model;
  const std::ptrdiff_t before = live_blocks();
  {
    const std::vector<V> first = grad(model.loss(), model.parameters(), {.create_graph = true});
    V total(0.0f);
    for (const V& one : first) total = total + sum(one * one);
    total.backward();
    for (const V& parameter : model.parameters()) parameter.zero_grad();
  }
  EXPECT_EQ(live_blocks(), before);
}

TEST(MemoryTest, SavedValuesDieInBackwardThoughTheResultLives) {
  const V x = ramp({100}, 0.1f);
  V y = x;
  for (int i = 0; i < 50; ++i) y = y * y;
  y = sum(y);
  const std::ptrdiff_t before = live_blocks();
  y.backward();
  EXPECT_LT(live_blocks() - before, -50);
}

TEST(MemoryTest, IntermediatesThatNobodySavedDieBeforeBackward) {
  const V x = ramp({100}, 0.1f);
  const std::ptrdiff_t before = live_blocks();
  V y = x;
  for (int i = 0; i < 50; ++i) y = y + 1.0;
  EXPECT_LE(live_blocks() - before, 50 + 2) << "a node for each, and the last value and its elements";
}

TEST(MemoryTest, TheGradientOfATableIsThereOnceForAllOfItsUses) {
  if (!pool_keeps_memory()) GTEST_SKIP() << "the pool keeps nothing in this build";
  const V table(Array<float>(Shape{50000, 16}, 0.5f), true);
  const std::size_t bytes = table.size() * sizeof(float);
  const V rows = embedding(xgrad::Ids{7, 1, 7}, table);
  const V y = linear_cross_entropy(rows, table, xgrad::Ids{3, 8, 3});
  empty_cache();
  y.backward();
  EXPECT_LT(memory_stats().cached_bytes, bytes);
}

TEST(MemoryTest, NothingIsKeptUnderNoGrad) {
  const V x = ramp({100}, 0.1f);
  const xgrad::NoGrad guard;
  const std::ptrdiff_t before = live_blocks();
  V y = x;
  for (int i = 0; i < 50; ++i) y = y * x;
  EXPECT_LE(live_blocks() - before, 2);
}

TEST(MemoryTest, ExceptionsLeaveNothingBehind) {
  const V x = ramp({3}, 0.1f);
  const std::ptrdiff_t before = live_blocks();
  const auto throwing = [](const V& input) {
    return xgrad::record<float>(
        throwing_op, input.detach() * 1.0, xgrad::Inputs(input), xgrad::Saved(input),
        [](V, Needs, V) -> Grads<float, 1> { throw std::runtime_error("out of luck"); });
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(xgrad_tests::message_of<std::runtime_error>([&] { sum(throwing(x * x) * exp(x)).backward(); }),
              "out of luck");
    EXPECT_NE(xgrad_tests::message_of<xgrad::ShapeError>([&] { exp(x * x) + ramp({4}, 1); }), "no exception");
  }
  EXPECT_EQ(live_blocks(), before);
}

TEST(MemoryTest, TenThousandStepsStayWhereTheFirstHundredEnded) {
  const Classifier model;
  float first = model.step(), last = 0;
  model.step();
  const std::size_t allocations = memory_stats().system_allocations;
  for (int step = 2; step < 100; ++step) model.step();
  const xgrad::MemoryStats early = memory_stats();
  for (int step = 100; step < 10000; ++step) last = model.step();
  EXPECT_LT(last, first);
  EXPECT_EQ(memory_stats().live_blocks, early.live_blocks);
  EXPECT_EQ(memory_stats().cached_bytes, early.cached_bytes);
  if (pool_keeps_memory()) {
    EXPECT_EQ(memory_stats().system_allocations, allocations);
  }
}

TEST(PoolTest, HandsOutWhatItGotBack) {
  if (!pool_keeps_memory()) GTEST_SKIP() << "nothing is reused in this build";
  for (const std::size_t bytes : {0u, 1u, 64u, 65u, 1000u, 1024u, 1025u, 100000u, 5000000u}) {
    void* block = xgrad::detail::pool_allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0u);
    xgrad::detail::pool_release(block, bytes);
    void* again = xgrad::detail::pool_allocate(bytes);
    EXPECT_EQ(again, block) << bytes;
    xgrad::detail::pool_release(again, bytes);
  }
  empty_cache();
  EXPECT_EQ(memory_stats().cached_bytes, 0u);
}

#ifdef __GLIBC__
TEST(PoolTest, AnEmptiedCacheIsTheSystemsAgain) {
  if (!pool_keeps_memory()) GTEST_SKIP() << "the pool keeps nothing in this build";
  const auto resident_mib = [] {
    std::size_t size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) >> 20;
  };
  empty_cache();
  const std::size_t before = resident_mib();
  {
    std::vector<V> small;
    for (int i = 0; i < 100000; ++i) small.push_back(ramp({64}, 0.1f));
    ASSERT_GT(resident_mib(), before + 30);
  }
  empty_cache();
  EXPECT_LT(resident_mib(), before + 10);
}
#endif

/// Recycled memory is asked for by shape: another shape, with no element or of another rank, must not get it.
TEST(PoolTest, ShapesDoNotGetEachOthersMemory) {
  std::vector<xgrad::Shape> shapes{{}};
  for (std::size_t rank = 1; rank <= 5; ++rank) {
    for (std::size_t bits = 0; bits < std::size_t{1} << (2 * rank); ++bits) {
      xgrad::Shape shape;
      for (std::size_t axis = 0; axis < rank; ++axis) shape.push_back(bits >> (2 * axis) & 3);
      shapes.push_back(shape);
    }
  }
  for (const xgrad::Shape& first : shapes) {
    { const Variable<float> freed = xgrad::detail::empty<float>(first); }
    EXPECT_EQ(xgrad::detail::empty<float>(first).shape(), first);
  }
  for (const xgrad::Shape& shape : shapes) {
    const Variable<float> fresh = xgrad::detail::empty<float>(shape);
    EXPECT_EQ(fresh.shape(), shape);
    EXPECT_EQ(fresh.size(), xgrad::element_count(shape));
  }
}

/// The bytes that are cached after each release of three blocks. The memory is never touched, and so costs
/// nothing.
std::vector<std::size_t> cached_after_releases(std::size_t bytes) {
  empty_cache();
  std::vector<void*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(xgrad::detail::pool_allocate(bytes));
  std::vector<std::size_t> cached;
  for (void* block : blocks) {
    xgrad::detail::pool_release(block, bytes);
    cached.push_back(memory_stats().cached_bytes);
  }
  empty_cache();
  EXPECT_EQ(memory_stats().cached_bytes, 0u);
  return cached;
}

TEST(PoolTest, KeepsAtMostTheLimit) {
  if (!pool_keeps_memory()) GTEST_SKIP() << "nothing is kept in this build";
  constexpr std::size_t gibibyte = std::size_t{1} << 30, half = gibibyte / 2, block = 1024;
  EXPECT_EQ(cached_after_releases(half), (std::vector<std::size_t>{half, 2 * half, 2 * half}));
  xgrad::set_cache_limit(block);
  EXPECT_EQ(cached_after_releases(block), (std::vector<std::size_t>{block, block, block}));
  xgrad::set_cache_limit(0);
  EXPECT_EQ(cached_after_releases(block), (std::vector<std::size_t>{0, 0, 0}));
  xgrad::set_cache_limit(gibibyte);
}

TEST(PoolTest, WhatItKeepsIsAtMostAnEighthMoreThanWasAskedFor) {
  if (!pool_keeps_memory()) GTEST_SKIP() << "nothing is kept in this build";
  for (std::size_t bytes = 1; bytes < 300000; bytes += 1 + bytes / 37) {
    empty_cache();
    xgrad::detail::pool_release(xgrad::detail::pool_allocate(bytes), bytes);
    const std::size_t cached = memory_stats().cached_bytes;
    EXPECT_GE(cached, bytes);
    EXPECT_LE(cached, bytes + std::max<std::size_t>(bytes / 8, 64));
  }
}

TEST(PoolTest, EmptyCacheGivesTheRecycledValuesBack) {
  const std::ptrdiff_t before = live_blocks();
  { const V x = ramp({3, 5}, 1), y = ramp({}, 1); }
  { const Variable<double> x(Array<double>{1, 2}); }
  empty_cache();
  EXPECT_EQ(memory_stats().live_blocks, before);
}

TEST(PoolTest, SmallValuesWaitForReuse) {
  if (!pool_keeps_memory()) GTEST_SKIP() << "nothing is reused in this build";
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3, 1, 2}}) {
    const V x(Array<float>(shape, 1.0f));
    const std::ptrdiff_t before = live_blocks();
    for (int i = 0; i < 100; ++i) xgrad::exp(x);
    EXPECT_GT(memory_stats().live_blocks, before) << xgrad::to_string(shape);
    EXPECT_EQ(live_blocks(), before) << xgrad::to_string(shape);
  }
}

TEST(PoolTest, RefusesWhatNoMachineHas) {
  if (!pool_keeps_memory()) GTEST_SKIP() << "a sanitizer's allocator aborts";
  EXPECT_THROW(xgrad::detail::pool_allocate(static_cast<std::size_t>(-1) / 2), std::bad_alloc);
  EXPECT_THROW(xgrad::PoolAllocator<double>().allocate(static_cast<std::size_t>(-1)), std::bad_alloc);
}

// Threads

TEST(ThreadsTest, VariablesMayBeFreedByAnotherThread) {
  const std::ptrdiff_t before = live_blocks();
  V y;
  std::thread([&y] {
    const V x = ramp({10}, 0.1f);
    y = sum(exp(x) * x);
  }).join();
  EXPECT_EQ(live_blocks(), before);
  y.backward();
  y = {};
  EXPECT_LT(live_blocks(), before) << "what another thread allocated";
  V mine = ramp({10}, 0.1f);
  mine = mine * mine;
  std::thread([moved = std::move(mine)]() mutable { moved = {}; }).join();
}

TEST(ThreadsTest, VariablesMayOutliveTheirThreadsPool) {
  std::thread([] {
    thread_local std::optional<V> kept;
    kept.emplace();  // registered before the pool, and so destroyed after it
    const V x = ramp({10}, 0.1f);
    kept = exp(x * x);
  }).join();
}

std::vector<float> train(int steps) {
  const Classifier model;
  std::vector<float> trace;
  for (int step = 0; step < steps; ++step) trace.push_back(model.step());
  for (const V& parameter : model.parameters())
    trace.insert(trace.end(), parameter.value().storage().begin(), parameter.value().storage().end());
  return trace;
}

TEST(ThreadsTest, EightGraphsAtOnceGiveTheBitsOfOne) {
  const std::vector<float> expected = train(200);
  std::vector<std::future<std::vector<float>>> runs;
  for (int i = 0; i < 8; ++i) runs.push_back(std::async(std::launch::async, train, 200));
  for (auto& run : runs) EXPECT_EQ(run.get(), expected);
}

TEST(ThreadsTest, OneModelMayServeTwoThreads) {
  const Classifier model;
  const Array<float> expected = model.logits().value();
  const auto serve = [&model, &expected] {
    const xgrad::NoGrad guard;
    int right = 0;
    for (int i = 0; i < 500; ++i) right += model.logits().value() == expected;
    return right;
  };
  auto other = std::async(std::launch::async, serve);
  EXPECT_EQ(serve(), 500);
  EXPECT_EQ(other.get(), 500);
  EXPECT_TRUE(xgrad::grad_enabled());
}

/// Sentences of other lengths in each thread, some padded; the last is large enough to be divided among the
/// pool.
TEST(ThreadsTest, OneEncoderMayServeFourThreads) {
  const xgrad_tests::KeepNumThreads keep;
  xgrad::set_num_threads(2);
  xgrad::manual_seed(5);
  xgrad::ToyEncoder<float> model({.vocab_size = 50,
                                  .max_len = 64,
                                  .classes = 3,
                                  .encoder = {.d_model = 32, .heads = 4, .d_ff = 64, .layers = 2},
                                  .pad_id = 0});
  model.eval();
  const auto answers = [&model](std::size_t thread) {
    const xgrad::NoGrad guard;
    const std::size_t length = std::array{3, 17, 40, 64}[thread], batch = thread == 3 ? 32 : 2;
    xgrad::Ids ids = xgrad::Ids::from_shape({batch, length});
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids.data()[i] = static_cast<std::int64_t>(i % length < length - thread ? 1 + (7 * i + thread) % 49 : 0);
    return std::pair(model.class_logits(ids).value(), model.with_weights(ids).weights.back().value());
  };
  std::vector<std::pair<Array<float>, Array<float>>> expected;
  for (std::size_t thread = 0; thread < 4; ++thread) expected.push_back(answers(thread));
  std::vector<std::future<int>> served;
  for (std::size_t thread = 0; thread < 4; ++thread) {
    served.push_back(std::async(std::launch::async, [&, thread] {
      int right = 0;
      for (int i = 0; i < 20; ++i) right += answers(thread) == expected[thread];
      return right;
    }));
  }
  for (std::future<int>& right : served) EXPECT_EQ(right.get(), 20);
}

TEST(ThreadsTest, GradModeIsEachThreadsOwn) {
  const xgrad::NoGrad guard;
  bool enabled = false;
  std::thread([&enabled] { enabled = xgrad::grad_enabled(); }).join();
  EXPECT_TRUE(enabled);
}

TEST(ThreadsTest, AGraphMayBeBuiltHereAndDifferentiatedThere) {
  const V x = ramp({10}, 0.25f);
  V y = sum(x * x);
  std::thread([&y] { y = y * 2.0; }).join();
  y = y + sum(x);
  y.backward();
  EXPECT_EQ(x.grad().value(), Array<float>(4 * x.value() + 1));
}

/// Another thread, which has made no node yet, adds to an old graph: its nodes are newer than all they use,
/// whichever of their inputs is the old one. Else the pass would come to one too early.
TEST(ThreadsTest, AGraphMayBeContinuedThere) {
  using Step = V (*)(const V& old, const V& fresh);
  for (const Step step :
       {Step([](const V&old, const V&fresh) { return old * fresh; }),
        Step([](const V&old, const V&fresh) { return fresh * old; }), Step([](const V&old, const V&fresh) {
          return sum(xgrad::stack<float>({old, fresh, fresh})) - fresh * 2.0f;
        }),
        Step([](const V&old, const V&fresh) {
          return sum(xgrad::stack<float>({fresh, fresh, old})) - fresh * 2.0f;
        })}) {
    const V x(3.0f, true);
    V square = x * x;
    for (int i = 0; i < 20; ++i) square = square + 1.0;
    V continued;
    std::thread([&] { continued = step(square, V(1.0f, true)); }).join();
    EXPECT_EQ(continued.item(), 29);
    (continued + square * 10.0).backward();
    EXPECT_EQ(x.grad().item(), 66);
  }
}

}  // namespace memory_test
