// What objects save of themselves: the list of a class of one's own, strict loading, and evaluation mode.

#include <cmath>
#include <optional>
#include <stdexcept>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/models/eval_mode.hpp>
#include <xgrad/models/transformer/feed_forward.hpp>
#include <xgrad/train/data.hpp>
#include <xgrad/train/stateful.hpp>

#include "expect_error.hpp"

namespace stateful_test {

using xgrad::Array, xgrad::StateArchive, xgrad::StateDict, xgrad::TrainingState, xgrad::ValueError;
using xgrad_tests::message_of;

/// A class as a user would write it, with one of everything.
class Everything : public xgrad::Stateful {
 public:
  double rate = 0.1;
  std::optional<double> warmup = {};
  bool started = false;
  std::size_t steps = 0;
  Array<float> mean = {1, 2};
  std::optional<Array<double>> momentum = {};
  StateDict<float> best = {};
  xgrad::BatchSampler batches{10, {.batch_size = 2}};
  double doubled = 0.2;  // made from rate

 protected:
  void list_state(StateArchive& state) override {
    state.number("rate", rate);
    state.number("warmup", warmup);
    state.number("started", started);
    state.number("steps", steps, 100);
    state.array("mean", mean);
    state.array("momentum", momentum, {3});
    state.arrays("best", best);
    state.constant("width", 2);
    state.part("batches", batches);
    state.check([this] {
      if (rate < 0) throw ValueError("rate must not be negative");
    });
    if (state.loaded()) doubled = 2 * rate;
  }
};

Everything changed() {
  Everything object;
  object.rate = 0.25;
  object.warmup = 0.5;
  object.started = true;
  object.steps = 7;
  object.mean = Array<float>{3, 4};
  object.momentum = Array<double>{1, 2, 3};
  object.best = {{"w", Array<float>{5}}, {"a.b", Array<float>{6}}};
  xgrad::manual_seed(1);
  object.batches.next();
  return object;
}

TEST(StatefulTest, AnObjectIsLoadedFromWhatItListed) {
  const TrainingState state = changed().state_dict();
  EXPECT_EQ(state.numbers.at("rate"), 0.25);
  EXPECT_EQ(state.numbers.at("started"), 1);
  EXPECT_EQ(state.numbers.at("batches.position"), 1);
  EXPECT_EQ(state.floats.size(), 3u);
  EXPECT_EQ(state.floats.at("best.a.b"), Array<float>{6});
  EXPECT_EQ(state.doubles.at("momentum"), (Array<double>{1, 2, 3}));
  Everything loaded;
  loaded.load_state_dict(state);
  EXPECT_EQ(loaded.state_dict(), state);
  EXPECT_EQ(loaded.doubled, 0.5);
  EXPECT_EQ(loaded.batches.next().size(), 2u);
}

TEST(StatefulTest, WhatWasNotThereIsNotThereAfterLoading) {
  const TrainingState plain = Everything().state_dict();
  EXPECT_FALSE(plain.numbers.contains("warmup"));
  Everything object = changed();
  object.load_state_dict(plain);
  EXPECT_FALSE(object.warmup);
  EXPECT_FALSE(object.momentum);
  EXPECT_TRUE(object.best.empty());
  EXPECT_EQ(object.state_dict(), plain);
}

TEST(StatefulTest, NamesAllThatIsWrongAndChangesNothing) {
  Everything object = changed();
  const TrainingState before = object.state_dict();
  TrainingState state = Everything().state_dict();
  state.numbers.erase("rate");
  state.numbers["started"] = 2;
  state.numbers["steps"] = 101;
  state.floats["mean"] = Array<float>{1, 2, 3};
  state.floats["momentum"] = Array<float>{1, 2, 3};
  state.numbers["width"] = 3;
  state.numbers["batches.seed"] = -1;
  state.doubles["best.w"] = Array<double>{1};
  state.numbers["more"] = 1;
  EXPECT_EQ(
      message_of<ValueError>([&] { object.load_state_dict(state); }),
      "load_state_dict: 'rate' is missing; 'started' must be 0 or 1, got 2; 'steps' must be a whole number "
      "of "
      "at most 100, got 101; 'mean' must have shape (2), got (3); 'momentum' must be an array of double, got "
      "an array of float; 'width' must be 2, got 3; 'batches.seed' must be a whole number of at most "
      "4294967296, got -1; 'best.w' is unexpected; 'more' is unexpected");
  EXPECT_EQ(object.state_dict(), before);

  state = Everything().state_dict();
  state.numbers["rate"] = -1;
  EXPECT_EQ(message_of<ValueError>([&] { object.load_state_dict(state); }),
            "load_state_dict: rate must not be negative");
  EXPECT_EQ(object.state_dict(), before);
  EXPECT_EQ(object.doubled, 0.5) << "made again from what was there";
}

/// Lists a number that a test gives.
class OfNumber : public xgrad::Stateful {
 public:
  explicit OfNumber(std::size_t number, bool twice = false) : number_(number), twice_(twice) {}

 protected:
  void list_state(StateArchive& state) override {
    state.number("n", number_);
    if (twice_) state.number("n", number_);
  }

 private:
  std::size_t number_;
  bool twice_;
};

TEST(StatefulTest, RefusesToSaveWhatItCouldNotLoad) {
  constexpr std::size_t largest = std::size_t{1} << 53;
  EXPECT_EQ(OfNumber(largest).state_dict().numbers.at("n"), 0x1p53);
  EXPECT_EQ(message_of<ValueError>([] { OfNumber(largest + 1).state_dict(); }),
            "state_dict: 'n' must be at most 2^53, got 9007199254740993");
  EXPECT_EQ(message_of<ValueError>([] { OfNumber(1, true).state_dict(); }),
            "state_dict: 'n' must be listed once, is listed twice");
}

TEST(EvalModeTest, PutsEveryModeBack) {
  const xgrad::FeedForward<float> model(2, 4);
  struct Parent : xgrad::Module<float> {
    explicit Parent(const xgrad::FeedForward<float>& model) : Module("Parent") { child("model", model); }
  };
  const Parent parent(model);
  model.eval();
  {
    const xgrad::EvalMode guard(parent);
    EXPECT_FALSE(parent.training());
    const xgrad::EvalMode inner(parent);
  }
  EXPECT_TRUE(parent.training());
  EXPECT_FALSE(model.training()) << "it was in evaluation mode before";
  model.train();
  EXPECT_THROW(
      {
        const xgrad::EvalMode guard(parent);
        throw std::runtime_error("while it evaluates");
      },
      std::runtime_error);
  EXPECT_TRUE(parent.training());
  EXPECT_TRUE(model.training());
}

}  // namespace stateful_test
