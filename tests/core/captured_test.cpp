// Captured steps: the bits of recorded ones, and what is not captured.

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include <xgrad/xgrad.hpp>

#include "expect_error.hpp"
#include "keep_num_threads.hpp"
#include "pool.hpp"

namespace {

using xgrad::Array, xgrad::captured, xgrad::each_time, xgrad::Ids, xgrad::Mask, xgrad::Shape, xgrad::Variable;
using xgrad_tests::KeepNumThreads, xgrad_tests::message_of;

/// What a training leaves behind at every step: the loss, the gradients and the weights.
template <class T>
using Trace = std::vector<T>;

template <class T>
void append(Trace<T>& trace, const Array<T>& array) {
  trace.insert(trace.end(), array.begin(), array.end());
}

template <class T>
void append_state(Trace<T>& trace, const std::vector<Variable<T>>& parameters) {
  for (const Variable<T>& parameter : parameters) {
    trace.push_back(parameter.has_grad() ? 1 : 0);
    if (parameter.has_grad()) append(trace, parameter.grad().value());
    append(trace, parameter.value());
  }
}

/// Batches of ids (2 to 4, 5) with padding, and a class for each.
struct Batch {
  Ids ids, labels;
};

Batch batch_of(std::size_t number, std::size_t rows) {
  xgrad::Generator generator(number + 100);
  Batch batch{xgrad::randint(1, 11, {rows, 5}, generator), xgrad::randint(0, 3, {rows}, generator)};
  for (std::size_t row = 0; row < rows; ++row)
    batch.ids(row, 4) = (number + row) % 3 == 0 ? 0 : batch.ids(row, 4);
  return batch;
}

xgrad::ToyEncoderConfig config_of(double dropout) {
  return {.vocab_size = 11,
          .max_len = 6,
          .classes = 3,
          .encoder = {.d_model = 8, .heads = 2, .d_ff = 16, .layers = 2, .dropout = dropout},
          .pad_id = 0};
}

/// The training of a toy encoder.
template <class T, class Optimizer = xgrad::AdamW<T>, class Options = xgrad::AdamWOptions>
struct Training {
  explicit Training(double dropout = 0, const Options& options = {.lr = 1e-2})
      : model(seeded(dropout)), optimizer(model.parameters(), options) {}

  Variable<T> step(const Ids& ids, const Ids& labels) {
    optimizer.zero_grad();
    const Variable<T> loss = cross_entropy(model.class_logits(ids), labels);
    loss.backward();
    optimizer.step();
    return loss;
  }

  static xgrad::ToyEncoder<T> seeded(double dropout) {
    xgrad::manual_seed(3);
    return xgrad::ToyEncoder<T>(config_of(dropout));
  }

  xgrad::ToyEncoder<T> model;
  Optimizer optimizer;
};

/// Makes steps of a new training, captured or not, with `change` before each.
template <class Train>
using Change = std::function<void(std::size_t, Train&)>;

struct Steps {
  std::size_t count = 12;
  std::function<std::size_t(std::size_t)> rows = [](std::size_t) { return std::size_t{3}; };
};

template <class T, class Train>
std::pair<Trace<T>, std::size_t> trace_of(bool is_captured, double dropout, const Steps& steps,
                                          const Change<Train>& change, std::string* why_not = nullptr) {
  Train training(dropout);
  auto step = captured([&](const Ids& ids, const Ids& labels) { return training.step(ids, labels); });
  Trace<T> trace;
  for (std::size_t i = 0; i < steps.count; ++i) {
    if (change) change(i, training);
    const Batch batch = batch_of(i, steps.rows(i));
    const Variable<T> loss =
        is_captured ? step(batch.ids, batch.labels) : training.step(batch.ids, batch.labels).detach();
    trace.push_back(loss.item());
    append_state(trace, training.model.parameters());
  }
  if (why_not != nullptr) *why_not = step.why_not();
  return {trace, step.replays()};
}

/// Whether a captured training has the bits of a recorded one; returns the number of replays.
template <class T, class Train = Training<T>>
std::size_t expect_same_bits(double dropout = 0, const Steps& steps = {}, const Change<Train>& change = {}) {
  const auto [recorded, none] = trace_of<T, Train>(false, dropout, steps, change);
  std::string why_not;
  const auto [replayed, replays] = trace_of<T, Train>(true, dropout, steps, change, &why_not);
  EXPECT_EQ(none, 0u);
  EXPECT_EQ(recorded.size(), replayed.size());
  const auto difference = std::mismatch(recorded.begin(), recorded.end(), replayed.begin(), replayed.end());
  EXPECT_TRUE(difference.first == recorded.end())
      << "number " << difference.first - recorded.begin() << " of " << recorded.size() << "; " << why_not;
  return replays;
}

TEST(CapturedTest, HasTheBitsOfRecordedSteps) {
  EXPECT_EQ(expect_same_bits<float>(), 9u);
  EXPECT_EQ(expect_same_bits<double>(), 9u);
}

TEST(CapturedTest, DrawsTheDropoutOfRecordedSteps) {
  EXPECT_EQ(expect_same_bits<float>(0.3), 9u);
  EXPECT_EQ(expect_same_bits<double>(0.3), 9u);
}

TEST(CapturedTest, IsCheckedAgainNowAndThen) {
  // the first two steps, the first check, and those after 16 and 16 + 64 replays are none
  EXPECT_EQ(expect_same_bits<float>(0.1, {.count = 90}), 85u);
}

TEST(CapturedTest, FollowsRatesThatAreSetBetweenSteps) {
  const Change<Training<float>> change = [](std::size_t i, auto& training) {
    training.optimizer.set_lr(1e-2 / static_cast<double>(i + 1));
  };
  EXPECT_EQ(expect_same_bits<float>(0.1, {}, change), 9u);
}

/// With momentum, clipped gradients, and a scheduler and an average in the step.
template <class T>
struct FullTraining : Training<T, xgrad::SGD<T>, xgrad::SGDOptions> {
  explicit FullTraining(double dropout)
      : Training<T, xgrad::SGD<T>, xgrad::SGDOptions>(dropout, {.lr = 0.1, .momentum = 0.9}),
        scheduler(this->optimizer, 2, 0.5),
        average(this->model) {}

  Variable<T> step(const Ids& ids, const Ids& labels) {
    this->optimizer.zero_grad();
    const Variable<T> loss =
        mean(cross_entropy(this->model.class_logits(ids), labels, {.reduction = xgrad::Reduction::none}));
    loss.backward();
    each_time([this] { norms.push_back(clip_grad_norm(this->optimizer.parameters(), 0.5)); });
    this->optimizer.step();
    scheduler.step();
    average.update();
    return loss;
  }

  xgrad::StepLR<T> scheduler;
  xgrad::ExponentialMovingAverage<T> average;
  std::vector<double> norms;
};

TEST(CapturedTest, CallsOptimizersSchedulersAndAveragesEachTime) {
  const auto norms_of = [](bool is_captured) {
    FullTraining<float> training(0.2);
    auto step = captured([&](const Ids& ids, const Ids& labels) { return training.step(ids, labels); });
    for (std::size_t i = 0; i < 12; ++i) {
      const auto [ids, labels] = batch_of(i, 3);
      if (is_captured) {
        step(ids, labels);
      } else {
        training.step(ids, labels);
      }
    }
    EXPECT_EQ(step.replays(), is_captured ? 9u : 0u) << step.why_not();
    std::vector<double> numbers = training.norms;
    numbers.push_back(training.optimizer.lr());
    const auto averaged = training.average.apply();
    for (const Variable<float>& parameter : training.model.parameters())
      numbers.insert(numbers.end(), parameter.value().begin(), parameter.value().end());
    return numbers;
  };
  EXPECT_EQ(norms_of(false), norms_of(true));
  EXPECT_EQ((expect_same_bits<float, FullTraining<float>>(0.2)), 9u);
  EXPECT_EQ((expect_same_bits<double, FullTraining<double>>(0.2)), 9u);
}

TEST(CapturedTest, CapturesEachShapeOfItsArguments) {
  const Steps steps{.count = 18, .rows = [](std::size_t i) { return 2 + i % 3; }};
  EXPECT_EQ(expect_same_bits<float>(0.1, steps), 9u);
}

TEST(CapturedTest, RecordsMoreShapesThanItMayCapture) {
  Training<float> training;
  auto step = captured([&](const Ids& ids, const Ids& labels) { return training.step(ids, labels); },
                       {.most_shapes = 1});
  for (std::size_t i = 0; i < 10; ++i) {
    const auto [ids, labels] = batch_of(i, 2 + i % 2);
    step(ids, labels);
    if (i % 2 == 1) {
      EXPECT_EQ(step.why_not(), "steps are captured for other shapes of the arguments, and for no more");
    }
  }
  EXPECT_EQ(step.replays(), 2u);
}

TEST(CapturedTest, NoticesModulesThatChangeTheirMode) {
  const Change<Training<float>> change = [](std::size_t i, auto& training) {
    if (i == 5) {
      const xgrad::EvalMode guard(training.model);  // as an evaluation does, which changes nothing
    }
    if (i == 8) training.model.eval();
    if (i == 14) training.model.train();
  };
  EXPECT_GT(expect_same_bits<float>(0.3, {.count = 24}, change), 8u);
}

TEST(CapturedTest, ReadsWeightsThatWereLoaded) {
  const Change<Training<float>> change = [](std::size_t i, auto& training) {
    if (i != 6) return;
    const xgrad::ToyEncoder<float> other(config_of(0.1));
    training.model.load_state_dict(other.state_dict());
    training.optimizer.set_lr(1e-3);
  };
  EXPECT_EQ(expect_same_bits<float>(0.1, {}, change), 9u);
}

TEST(CapturedTest, FollowsAnOptimizerThatStartsAgain) {
  const Change<Training<float>> change = [](std::size_t i, auto& training) {
    if (i == 7) training.optimizer = xgrad::AdamW<float>(training.model.parameters(), {.lr = 5e-3});
  };
  EXPECT_GT(expect_same_bits<float>(0, {.count = 16}, change), 6u);
}

TEST(CapturedTest, ThrowsForIdsOutOfRangeAsARecordedStepDoes) {
  const auto states = [](bool is_captured) {
    Training<float> training(0.2);
    auto step = captured([&](const Ids& ids, const Ids& labels) { return training.step(ids, labels); });
    Trace<float> trace;
    for (std::size_t i = 0; i < 14; ++i) {
      Batch batch = batch_of(i, 3);
      if (i == 6 || i == 9) batch.ids(1, 2) = 11;
      if (i == 8) batch.labels(2) = -7;
      const auto make = [&] {
        trace.push_back(is_captured ? step(batch.ids, batch.labels).item()
                                    : training.step(batch.ids, batch.labels).item());
      };
      if (i == 6 || i == 9) {
        EXPECT_EQ(message_of<xgrad::IndexError>(make),
                  "embedding: ids must be in [0, 11), got 11 (vocabulary size 11)");
      } else if (i == 8) {
        EXPECT_EQ(message_of<xgrad::IndexError>(make),
                  "cross_entropy: target must be in [0, 3), got -7 (3 classes)");
      } else {
        make();
      }
      append_state(trace, training.model.parameters());
    }
    EXPECT_EQ(step.replays(), is_captured ? 8u : 0u) << step.why_not();
    return trace;
  };
  EXPECT_EQ(states(false), states(true));
}

TEST(CapturedTest, GivesTheBitsOfOneThreadOnTwo) {
  const KeepNumThreads keep;
  const auto losses = [](bool is_captured, std::size_t threads) {
    xgrad::set_num_threads(threads);
    xgrad::manual_seed(1);
    const xgrad::Encoder<float> model({.d_model = 64, .heads = 4, .d_ff = 256, .layers = 1, .dropout = 0.1});
    xgrad::Adam<float> optimizer(model.parameters(), {.lr = 1e-3});
    auto step = captured([&](const Variable<float>& x) {
      optimizer.zero_grad();
      const Variable<float> loss = mean(square(model(x)));
      loss.backward();
      optimizer.step();
      return loss;
    });
    std::vector<float> all;
    for (std::size_t i = 0; i < 7; ++i) {
      xgrad::Generator generator(i);
      const Variable<float> x(xgrad::normal<float>({8, 64, 64}, 0, 1, generator));
      if (is_captured && i == 5) xgrad::set_num_threads(3 - threads);
      all.push_back(is_captured ? step(x).item() : [&] {
        optimizer.zero_grad();
        const Variable<float> loss = mean(square(model(x)));
        loss.backward();
        optimizer.step();
        return loss.item();
      }());
    }
    EXPECT_EQ(step.replays(), is_captured ? 4u : 0u) << step.why_not();
    append_state(all, model.parameters());
    return all;
  };
  const std::vector<float> recorded = losses(false, 1);
  EXPECT_EQ(recorded, losses(true, 1));
  EXPECT_EQ(recorded, losses(true, 2));
}

TEST(CapturedTest, WorksInSeveralThreadsAtOnce) {
  const auto train = [](std::vector<float>& losses, std::uint64_t seed) {
    xgrad::Generator generator(seed);
    const xgrad::UseGenerator use(generator);
    const xgrad::Linear<float> model(4, 3);
    xgrad::Adam<float> optimizer(model.parameters(), {.lr = 1e-2});
    auto regression = captured([&](const Variable<float>& x) {
      optimizer.zero_grad();
      const Variable<float> loss = sum(square(dropout(model(x), 0.5, true)));
      loss.backward();
      optimizer.step();
      return loss;
    });
    for (std::size_t i = 0; i < 30; ++i) {
      xgrad::Generator own(i);
      losses.push_back(regression(Variable<float>(xgrad::normal<float>({5, 4}, 0, 1, own))).item());
    }
    EXPECT_GT(regression.replays(), 20u) << regression.why_not();
  };
  std::vector<float> alone, first, second;
  train(alone, 1);
  std::thread one([&] { train(first, 1); }), two([&] { train(second, 2); });
  one.join();
  two.join();
  EXPECT_EQ(alone, first);
  EXPECT_NE(first, second);
}

/// Makes so many steps of a regression, and tells why they are recorded.
template <class F>
std::string reason_against(F loss_of, std::size_t steps = 4) {
  xgrad::manual_seed(0);
  const xgrad::Linear<double> model(3, 2);
  xgrad::SGD<double> optimizer(model.parameters(), {.lr = 1e-3});
  auto step = captured([&](const Variable<double>& x) {
    optimizer.zero_grad();
    const Variable<double> loss = loss_of(model(x), x);
    loss.backward();
    optimizer.step();
    return loss;
  });
  for (std::size_t i = 0; i < steps; ++i) {
    xgrad::Generator generator(i);
    step(Variable<double>(xgrad::normal<double>({4, 3}, 0, 1, generator)));
  }
  EXPECT_EQ(step.replays(), step.why_not().empty() ? 1u : 0u);
  return step.why_not();
}

TEST(CapturedTest, TellsWhatItCannotCapture) {
  using V = Variable<double>;
  EXPECT_EQ(reason_against([](const V& y, const V&) { return sum(y * y); }), "");
  EXPECT_EQ(reason_against([](const V& y, const V&) { return sum(cumsum(y, 0)); }),
            "the op 'cumsum' is none of those that can be captured");
  EXPECT_EQ(reason_against([](const V& y, const V& x) {
              return sum(y * V(Array<double>(xt::view(x.value(), xt::all(), xt::range(0, 2)))));
            }),
            "mul reads an array whose elements no op of xgrad has computed");
  EXPECT_EQ(reason_against([](const V& y, const V&) { return sum(y) * (sum(y).item() > 0 ? 1.0 : 2.0); }),
            "item() is called in the step");
  EXPECT_EQ(reason_against([](const V& y, const V&) { return sum(y * V(xgrad::uniform<double>({2}))); }),
            "uniform() is called in the step");
  const Mask outside{{true, false}};
  EXPECT_EQ(reason_against([&](const V& y, const V&) { return sum(masked_fill(y, outside, 0)); }),
            "where reads an array that is neither an argument of the step nor a Variable's");
  EXPECT_EQ(reason_against([](const V& y, const V&) {
              const xgrad::DetectAnomaly guard;
              return sum(y);
            }),
            "it is watched from inside of the step");
  std::vector<V> kept;
  EXPECT_EQ(reason_against([&](const V& y, const V&) {
              kept.push_back(y);
              return sum(y);
            }).substr(0, 40),
            "the step keeps an array that it made, of");
}

TEST(CapturedTest, DrawsFromTheDefaultGeneratorAlone) {
  using V = Variable<double>;
  const auto drop = [](const V& y) { return sum(xgrad::dropout(y, 0.5)); };
  EXPECT_EQ(reason_against([&](const V& y, const V&) { return drop(y); }), "");
  const char* const other = "random numbers are drawn from another generator than the default one";
  xgrad::Generator generator(1);
  EXPECT_EQ(reason_against([&](const V& y, const V&) {
              const xgrad::UseGenerator use(generator);
              return drop(y);
            }),
            other);
  EXPECT_EQ(reason_against([&](const V& y, const V&) {
              xgrad::Generator own(42);
              return sum(y * V(xgrad::bernoulli<double>(y.shape(), 0.5, own)));
            }),
            other);
  EXPECT_EQ(reason_against([&](const V& y, const V&) {
              xgrad::manual_seed(7);
              return drop(y);
            }),
            "manual_seed() is called in the step");
  const std::string state = xgrad::get_rng_state();
  EXPECT_EQ(reason_against([&](const V& y, const V&) {
              xgrad::set_rng_state(state);
              return drop(y);
            }),
            "set_rng_state() is called in the step");
}

TEST(CapturedTest, ReadsWeightsOfClasses) {
  using V = Variable<double>;
  const V weight(Array<double>{1, 3});
  const V w(xgrad::normal<double>({2, 2}), true);
  auto step = captured([&](const Ids& labels) {
    w.zero_grad();
    const V loss = cross_entropy(w * 1.5, labels, {.weight = weight});
    loss.backward();
    return loss;
  });
  for (int i = 0; i < 6; ++i) {
    const Ids labels{i % 2, 1};
    const double loss = step(labels).item();
    EXPECT_EQ(loss, cross_entropy(w.detach() * 1.5, labels, {.weight = weight}).item());
  }
  EXPECT_EQ(step.replays(), 3u) << step.why_not();
}

/// For whom steps are recorded.
struct Watching : xgrad::Watcher {};

/// The last gradients are there until the step forgets them, whatever it computes before.
TEST(CapturedTest, KeepsGradientsUntilTheyAreForgotten) {
  const auto states = [](bool is_captured) {
    Training<float> training(0.1);
    double norm = 0;
    auto step = captured([&](const Ids& ids, const Ids& labels) {
      const Variable<float> loss = cross_entropy(training.model.class_logits(ids), labels);
      each_time(
          [&] { norm = xgrad::clip_grad_norm(training.model.parameters(), 0.5); });  // of the step before
      training.optimizer.zero_grad();
      loss.backward();
      training.optimizer.step();
      return loss;
    });
    const auto [first_ids, first_labels] = batch_of(20, 3);
    cross_entropy(training.model.class_logits(first_ids), first_labels).backward();
    Trace<float> trace;
    for (std::size_t i = 0; i < 12; ++i) {
      Batch batch = batch_of(i, 3);
      if (i == 7) batch.labels(2) = -7;
      std::optional<Watching> watching;
      if (!is_captured) watching.emplace();
      const auto make = [&] { trace.push_back(step(batch.ids, batch.labels).item()); };
      if (i == 7) {
        EXPECT_THROW(make(), xgrad::IndexError);
      } else {
        make();
      }
      trace.push_back(static_cast<float>(norm));
      append_state(trace, training.model.parameters());
    }
    EXPECT_EQ(step.replays(), is_captured ? 8u : 0u) << step.why_not();
    return trace;
  };
  EXPECT_EQ(states(false), states(true));
}

/// An optimizer that may be replaced by one in another place.
struct PointedOptimizer {
  PointedOptimizer(const std::vector<Variable<float>>& parameters, const xgrad::AdamWOptions& options)
      : adam(std::make_unique<xgrad::AdamW<float>>(parameters, options)) {}

  void zero_grad() const { adam->zero_grad(); }
  void step() const { adam->step(); }

  std::unique_ptr<xgrad::AdamW<float>> adam;
};

TEST(CapturedTest, CallsNoOptimizerThatIsGone) {
  using PointedTraining = Training<float, PointedOptimizer>;
  const Change<PointedTraining> change = [](std::size_t i, auto& training) {
    if (i == 7 || i == 13) training.optimizer = {training.model.parameters(), {.lr = i == 7 ? 5e-3 : 2e-2}};
  };
  EXPECT_GT((expect_same_bits<float, PointedTraining>(0, {.count = 18}, change)), 8u);
}

TEST(CapturedTest, ComparesWithTheNextStepWhatItHasCaptured) {
  using V = Variable<double>;
  std::size_t calls = 0;
  EXPECT_EQ(reason_against([&](const V& y, const V&) { return sum(y) * static_cast<double>(++calls); }),
            "a gradient differs when it is computed from the captured calls");
  EXPECT_EQ(reason_against([&](const V& y, const V&) {
              return ++calls % 2 == 0 ? sum(y) : sum(square(y));
            }).substr(0, 40),
            "square comes where sum_middle was captur");
}

TEST(CapturedTest, ThrowsWhenALaterCheckFails) {
  double factor = 1;
  const Variable<double> w(3.0, true);
  auto step = captured([&](const Variable<double>& x) {
    w.zero_grad();
    const Variable<double> y = w * x * factor;
    y.backward();
    return y;
  });
  const Variable<double> x(2.0);
  for (int i = 0; i < 19; ++i) EXPECT_EQ(step(x).item(), 6);
  factor = 2;
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { step(x); }).substr(0, 60),
            "captured: the step is no longer what was captured, although ");
  EXPECT_EQ(step(x).item(), 12);
  EXPECT_FALSE(step.why_not().empty());
}

TEST(CapturedTest, RefusesGradientsThatAddUp) {
  const Variable<double> w(3.0, true);
  auto step = captured([&](const Variable<double>& x) {
    const Variable<double> y = w * x;
    y.backward();
    return y;
  });
  const Variable<double> x(2.0);
  for (int i = 1; i < 6; ++i) {
    step(x);
    EXPECT_EQ(w.grad().item(), 2 * i);
  }
  EXPECT_EQ(step.why_not(), "backward() adds to a gradient that is there");
}

TEST(CapturedTest, GivesGradientsThatAreForgottenBetweenSteps) {
  const Variable<double> w(3.0, true);
  auto step = captured([&](const Variable<double>& x) {
    const Variable<double> y = w * x;
    y.backward();
    return y;
  });
  for (int i = 1; i < 9; ++i) {
    if (i != 6) w.zero_grad();
    step(Variable<double>(static_cast<double>(i)));
    EXPECT_EQ(w.grad().item(), i == 6 ? 11 : i);
  }
  EXPECT_EQ(step.replays(), 4u);
}

TEST(CapturedTest, LeavesGradientsThatOthersHoldAlone) {
  const Variable<double> w(3.0, true);
  auto step = captured([&](const Variable<double>& x) {
    w.zero_grad();
    const Variable<double> y = w * x;
    y.backward();
    return y;
  });
  Variable<double> held;
  for (int i = 1; i < 9; ++i) {
    const Variable<double> y = step(Variable<double>(static_cast<double>(i)));
    if (i == 5) held = w.grad();
    EXPECT_EQ(w.grad().item(), i);
    EXPECT_EQ(y.item(), 3 * i);
    EXPECT_FALSE(y.requires_grad());
    EXPECT_EQ(i >= 5 ? held.item() : 5, 5);
  }
  EXPECT_EQ(step.replays(), 2u) << step.why_not();
}

TEST(CapturedTest, NoticesAVariableThatIsReplaced) {
  Variable<double> factor(2.0);
  const Variable<double> w(3.0, true);
  auto step = captured([&](const Variable<double>& x) {
    w.zero_grad();
    const Variable<double> y = w * factor * x;
    y.backward();
    return y;
  });
  const Variable<double> x(1.0);
  for (int i = 0; i < 16; ++i) {
    if (i == 6) factor = Variable<double>(5.0);
    EXPECT_EQ(step(x).item(), i < 6 ? 6 : 15);
  }
  EXPECT_GT(step.replays(), 8u);
  EXPECT_EQ(step.why_not(), "");
}

TEST(CapturedTest, IsRecordedForThoseWhoWatchAndWithoutGradients) {
  struct Counter : xgrad::Watcher {
    void on_op(const xgrad::OpEvent<float>&) override { ++ops; }
    std::size_t ops = 0;
  };
  Training<float> training;
  auto step = captured([&](const Ids& ids, const Ids& labels) { return training.step(ids, labels); });
  const auto [ids, labels] = batch_of(0, 3);
  for (int i = 0; i < 5; ++i) step(ids, labels);
  EXPECT_EQ(step.replays(), 2u);
  {
    const Counter counter;
    step(ids, labels);
    EXPECT_GT(counter.ops, 20u);
  }
  EXPECT_EQ(step.replays(), 2u);
  {
    const xgrad::NoGrad guard;
    EXPECT_THROW(step(ids, labels), xgrad::GraphError);
  }
  step(ids, labels);
  EXPECT_EQ(step.replays(), 3u);
}

TEST(CapturedTest, CapturesAnewForAnotherPrecisionOfProducts) {
  Training<float> training;
  auto step = captured([&](const Ids& ids, const Ids& labels) { return training.step(ids, labels); });
  const auto [ids, labels] = batch_of(0, 3);
  for (int i = 0; i < 5; ++i) step(ids, labels);
  const xgrad::MatmulPrecisionGuard guard(xgrad::MatmulPrecision::medium);
  step(ids, labels);
  EXPECT_EQ(step.replays(), 2u);
  EXPECT_EQ(step.why_not(), "the step has been captured, but not yet been compared");
  for (int i = 0; i < 3; ++i) step(ids, labels);
  EXPECT_EQ(step.replays(), 4u);
}

TEST(CapturedTest, OutlivesWhatItTrainsAndIsOutlived) {
  std::optional<Training<float>> training(std::in_place);
  const auto make = [&](const Ids& ids, const Ids& labels) { return training->step(ids, labels); };
  std::optional step(captured(make));
  const auto [ids, labels] = batch_of(0, 3);
  for (int i = 0; i < 5; ++i) (*step)(ids, labels);
  EXPECT_EQ(step->replays(), 2u);
  const Array<float> gradient = training->model.parameters()[0].grad().value();
  step.reset();
  for (int i = 0; i < 10; ++i) xgrad::normal<float>(gradient.shape());  // would overwrite what is not held
  EXPECT_EQ(gradient, training->model.parameters()[0].grad().value());
  training->step(ids, labels);

  step.emplace(captured(make));
  for (int i = 0; i < 5; ++i) (*step)(ids, labels);
  training.reset();
}

TEST(CapturedTest, ReplaysWithoutNewMemoryAndGivesItBack) {
  Training<float> training;
  const auto [ids, labels] = batch_of(0, 3);
  training.step(ids, labels);
  training.optimizer.zero_grad();
  const std::ptrdiff_t before = [] {
    xgrad::empty_cache();
    return xgrad::memory_stats().live_blocks;
  }();
  {
    auto step = captured([&](const Ids& i, const Ids& l) { return training.step(i, l); });
    for (int i = 0; i < 6; ++i) step(ids, labels);
    const bool reuses = xgrad_tests::pool_keeps_memory();
    const std::size_t allocations = xgrad::memory_stats().system_allocations;
    const std::ptrdiff_t live = xgrad::memory_stats().live_blocks;
    for (int i = 0; i < 5; ++i) step(ids, labels);
    EXPECT_EQ(step.replays(), 8u);
    if (reuses) {
      EXPECT_EQ(xgrad::memory_stats().system_allocations, allocations);
    }
    EXPECT_EQ(xgrad::memory_stats().live_blocks, live);
    EXPECT_GT(live, before);
    training.optimizer.zero_grad();
  }
  xgrad::empty_cache();
  EXPECT_EQ(xgrad::memory_stats().live_blocks, before);
}

TEST(CapturedTest, MayReturnNothing) {
  const Variable<double> w(3.0, true);
  auto step = captured([&](const Array<double>& x) {
    w.zero_grad();
    (w * Variable<double>(2.0)).backward();
    EXPECT_EQ(x.size(), 1u);
  });
  for (int i = 0; i < 6; ++i) step(Array<double>{1.0});
  EXPECT_EQ(step.replays(), 3u) << step.why_not();
  EXPECT_EQ(w.grad().item(), 2);
}

TEST(CapturedTest, RecordsArgumentsThatRequireGradients) {
  auto step = captured([](const Variable<double>& x) {
    x.zero_grad();
    const Variable<double> y = x * x;
    y.backward();
    return y;
  });
  const Variable<double> x(3.0, true);
  for (int i = 0; i < 5; ++i) {
    step(x);
    EXPECT_EQ(x.grad().item(), 6);
  }
  EXPECT_EQ(step.why_not(), "an argument requires a gradient");
}

TEST(CapturedTest, TrainsInFit) {
  const auto losses = [](bool is_captured) {
    Training<float> training(0.1);
    auto step = captured([&](const Ids& ids, const Ids& labels) { return training.step(ids, labels); });
    const auto log =
        xgrad::fit(15,
                   [&](std::size_t number) -> xgrad::StepResult {
                     const auto [ids, labels] = batch_of(number, 3);
                     return {.loss = (is_captured ? step(ids, labels) : training.step(ids, labels)).item()};
                   },
                   {.progress = false,
                    .evaluate =
                        [&](std::size_t) {
                          const xgrad::EvalMode guard(training.model);
                          const xgrad::NoGrad no_grad;
                          training.model.class_logits(batch_of(0, 3).ids);
                          return true;
                        },
                    .evaluate_every = 6});
    EXPECT_EQ(step.replays(), is_captured ? 12u : 0u) << step.why_not();
    return log.losses;
  };
  EXPECT_EQ(losses(false), losses(true));
}

}  // namespace
