#include "../failing_memory.hpp"

#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/base/detail/text/number_text.hpp>
#include <xgrad/base/detail/text/parse.hpp>
#include <xgrad/base/pool.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/models/layers/channel_norms.hpp>
#include <xgrad/ops/pointwise/arithmetic.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/train/data.hpp>
#include <xgrad/train/moving_average.hpp>
#include <xgrad/train/optimizers/lbfgs.hpp>

#include "optimizer_kinds.hpp"

// Every allocation of a call fails in turn, once and from there on. The call throws std::bad_alloc and has
// changed nothing; the same call gives the same afterwards.

namespace failing_memory_test {

using xgrad::Array, xgrad::Optimizer, xgrad::TrainingState, xgrad::Variable;
using xgrad_tests::FailingMemory, xgrad_tests::OptimizerKind, xgrad_tests::optimizer_kinds;
using Parameters = std::vector<Variable<float>>;

/// What a call may change, as something that can be compared, and the call.
struct Case {
  std::function<TrainingState()> state;
  std::function<void()> call;
};

void expect_all_or_nothing(const std::function<Case()>& make) {
  xgrad::set_cache_limit(0);  // every allocation is the system's
  xgrad::empty_cache();
  const Case reference = make();
  reference.call();
  const TrainingState wanted = reference.state();
  for (const bool for_good : {false, true}) {
    bool failed = true;
    for (std::size_t n = 0; failed; ++n) {
      ASSERT_LT(n, 20000U);
      const Case tried = make();
      const TrainingState before = tried.state();
      bool thrown = false;
      {
        const FailingMemory memory(n, for_good);
        try {
          tried.call();
        } catch (const std::bad_alloc&) {
          thrown = true;
        }
        failed = memory.failed();
      }
      if (thrown) {
        ASSERT_TRUE(failed);
        ASSERT_EQ(tried.state(), before) << "allocation " << n << (for_good ? " and all after it" : "");
        tried.call();
      }
      ASSERT_EQ(tried.state(), wanted) << "allocation " << n << (for_good ? " and all after it" : "");
    }
    EXPECT_FALSE(failed);
  }
  xgrad::set_cache_limit(std::size_t{1} << 30);
}

Parameters parameters() {
  return {Variable<float>(Array<float>{{1, -2, 3}, {0.5f, 4, 1}}, true),
          Variable<float>(Array<float>{{2, 1}, {-1, 3}}, true),
          Variable<float>(Array<float>{{1, 2}, {3, 4}, {-5, 6}}, true)};
}

Variable<float> loss_of(const Parameters& all) {
  Variable<float> loss(0.0f);
  for (const Variable<float>& one : all) loss = loss + sum(one * one * one);
  return loss;
}

void differentiate(const Parameters& all) {
  for (const Variable<float>& one : all) one.zero_grad();
  loss_of(all).backward();
}

TrainingState state_of(const xgrad::Stateful& object, const Parameters& all) {
  TrainingState state = object.state_dict();
  for (std::size_t i = 0; i < all.size(); ++i)
    state.floats["parameter." + std::to_string(i)] = all[i].value();
  return state;
}

TEST(FailingMemoryTest, AStepOfAnyOptimizerIsWholeOrChangesNothing) {
  for (const OptimizerKind& kind : optimizer_kinds()) {
    for (const int steps_before : {0, 2}) {
      SCOPED_TRACE(std::string(kind.name) + " after " + std::to_string(steps_before));
      expect_all_or_nothing([&] {
        const Parameters all = parameters();
        const std::shared_ptr<Optimizer<float>> optimizer = kind.make(all);
        for (int i = 0; i < steps_before; ++i) {
          differentiate(all);
          optimizer->step();
        }
        differentiate(all);
        return Case{[=] { return state_of(*optimizer, all); }, [=] { optimizer->step(); }};
      });
    }
  }
}

TEST(FailingMemoryTest, AStepOfLBFGSIsWholeOrChangesNothing) {
  for (const xgrad::LineSearch search : {xgrad::LineSearch::none, xgrad::LineSearch::strong_wolfe}) {
    for (const int steps_before : {0, 1}) {
      expect_all_or_nothing([=] {
        const Parameters all = parameters();
        const auto optimizer = std::make_shared<xgrad::LBFGS<float>>(
            all, xgrad::LBFGSOptions{.lr = 0.1, .max_iter = 3, .history_size = 2, .line_search_fn = search});
        const auto step = [=] {
          optimizer->step([&] {
            for (const Variable<float>& one : all) one.zero_grad();
            Variable<float> loss(0.0f);
            for (const Variable<float>& one : all) loss = loss + sum(one * one);
            loss.backward();
            return loss;
          });
        };
        for (int i = 0; i < steps_before; ++i) step();
        return Case{[=] { return state_of(*optimizer, all); }, step};
      });
    }
  }
}

TEST(FailingMemoryTest, AStateIsLoadedWhollyOrNotAtAll) {
  for (const OptimizerKind& kind : optimizer_kinds()) {
    SCOPED_TRACE(kind.name);
    const auto trained = [&](int steps) {
      const Parameters all = parameters();
      const std::shared_ptr<Optimizer<float>> optimizer = kind.make(all);
      for (int i = 0; i < steps; ++i) {
        differentiate(all);
        optimizer->step();
      }
      return optimizer;
    };
    const TrainingState saved = trained(3)->state_dict();
    expect_all_or_nothing([&] {
      const std::shared_ptr<Optimizer<float>> optimizer = trained(1);
      return Case{[=] { return optimizer->state_dict(); }, [=] { optimizer->load_state_dict(saved); }};
    });
  }
}

TEST(FailingMemoryTest, ABatchIsDrawnOrTheGeneratorStays) {
  expect_all_or_nothing([] {
    xgrad::manual_seed(3);
    const auto sampler = std::make_shared<xgrad::BatchSampler>(std::vector<std::size_t>{3, 1, 2, 5, 4},
                                                               xgrad::BatchSamplerOptions{.batch_size = 2});
    return Case{[=] {
                  TrainingState state = sampler->state_dict();
                  xgrad::Generator next = xgrad::default_generator();
                  state.numbers["random"] = next.uniform<double>();
                  return state;
                },
                [=] { sampler->next(); }};
  });
}

TEST(FailingMemoryTest, RunningStatisticsChangeWithTheResultOnly) {
  expect_all_or_nothing([] {
    const auto norm = std::make_shared<xgrad::BatchNorm1d<float>>(2);
    const Variable<float> x(Array<float>{{1, 2}, {3, 5}, {-1, 4}}, true);
    return Case{[=] {
                  TrainingState state;
                  state.floats = norm->state_dict();
                  return state;
                },
                [=] { (*norm)(x); }};
  });
}

TEST(FailingMemoryTest, AnAverageIsUpdatedWhollyOrNotAtAll) {
  expect_all_or_nothing([] {
    const auto norm = std::make_shared<xgrad::BatchNorm1d<float>>(2);
    const auto average = std::make_shared<xgrad::ExponentialMovingAverage<float>>(*norm, 0.9);
    return Case{[=] { return average->state_dict(); }, [=] { average->update(); }};
  });
}

TEST(FailingMemoryTest, NumbersAreReadAndWrittenOrMemoryFails) {
  const std::string text(80, '7'), state = xgrad::Generator(3).get_state();
  xgrad::Generator generator;
  bool failed = true;
  for (std::size_t n = 0; failed; ++n) {
    bool thrown = false, is_read = false, is_written = false, is_restored = false;
    {
      const FailingMemory memory(n);
      try {
        is_read = xgrad::detail::parsed<double>(text).has_value();
        is_written = xgrad::detail::formatted(0.25, xgrad::detail::Notation::fixed, 60).size() == 62;
        generator.set_state(state);
        is_restored = true;
      } catch (const std::bad_alloc&) {
        thrown = true;
      } catch (const std::invalid_argument&) {  // of a state that is taken for another text
      }
      failed = memory.failed();
    }
    EXPECT_EQ(thrown, failed) << n;
    EXPECT_TRUE(thrown || (is_read && is_written && is_restored)) << n;
  }
}

}  // namespace failing_memory_test
