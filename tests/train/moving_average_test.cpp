#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/models/layers/linear.hpp>
#include <xgrad/train/moving_average.hpp>

#include "expect_error.hpp"
#include "optim_cases.hpp"

namespace moving_average_test {

using nlohmann::json;
using xgrad::Array, xgrad::ExponentialMovingAverage, xgrad::Linear, xgrad::TrainingState;
using xgrad_tests::array_of, xgrad_tests::expect_near, xgrad_tests::message_of;

TEST(MovingAverageTest, IsPyTorchsAveragedModel) {
  xgrad::manual_seed(1);
  for (const json& test : xgrad_tests::optim_cases().at("averages")) {
    const Linear<double> model(3, 2), copy(3, 2);
    ExponentialMovingAverage<double> average(model, test.at("decay"));
    for (std::size_t i = 0; i < test.at("weights").size(); ++i) {
      const Array<double> weight = array_of<double>(test.at("weights")[i], {2, 3});
      model.weight().assign(weight);
      average.update();
      EXPECT_EQ(average.n_averaged(), i + 1);
      {
        const auto applied = average.apply();
        expect_near(model.weight().value(), test.at("averages")[i], 1e-15, test.at("decay").dump());
      }
      EXPECT_EQ(model.weight().value(), weight);
      average.copy_to(copy);
      expect_near(copy.weight().value(), test.at("averages")[i], 1e-15, test.at("decay").dump());
      // The average of equal numbers rounds, too.
      const Array<double>& bias = model.bias().value();
      expect_near(copy.bias().value(), json(std::vector<double>(bias.begin(), bias.end())), 1e-15, "bias");
    }
    const TrainingState state = average.state_dict();
    std::vector<std::string> names;
    for (const auto& [name, array] : state.doubles) names.push_back(name);
    for (const auto& [name, number] : state.numbers) names.push_back(name);
    EXPECT_EQ(json(names), test.at("names"));
  }
}

TEST(MovingAverageTest, AllParametersAreExchanged) {
  const Linear<double> model(3, 2);
  ExponentialMovingAverage<double> average(model, 0.5);
  const Array<double> weights[] = {Array<double>({2, 3}, 1.0), Array<double>({2, 3}, 5.0)};
  const Array<double> biases[] = {{1, 2}, {3, 6}};
  for (std::size_t i : {0, 1}) {
    model.weight().assign(weights[i]);
    model.bias().assign(biases[i]);
    average.update();
  }
  {
    const auto applied = average.apply();
    EXPECT_EQ(model.weight().value(), Array<double>({2, 3}, 3.0));
    EXPECT_EQ(model.bias().value(), (Array<double>{2, 4}));
  }
  EXPECT_EQ(model.weight().value(), weights[1]);
  EXPECT_EQ(model.bias().value(), biases[1]);
}

template <class T>
class MovingAverageStateTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MovingAverageStateTest, Types);

TYPED_TEST(MovingAverageStateTest, ALoadedOneGoesOnAsIfItHadNotStopped) {
  xgrad::manual_seed(3);
  const Linear<TypeParam> model(3, 2);
  ExponentialMovingAverage<TypeParam> whole(model, 0.7), stopped(model, 0.7), loaded(model, 0.7);
  const auto step = [&](auto&... averages) {
    model.weight().assign(xgrad::normal<TypeParam>({2, 3}, 0, 1));
    (averages.update(), ...);
  };
  step(whole, stopped);
  step(whole, stopped, loaded);
  loaded.load_state_dict(stopped.state_dict());
  step(whole, loaded);
  EXPECT_EQ(loaded.n_averaged(), 3u);
  EXPECT_EQ(loaded.state_dict(), whole.state_dict());
  EXPECT_NE(loaded.state_dict().template arrays<TypeParam>(),
            stopped.state_dict().template arrays<TypeParam>());
}

TEST(MovingAverageTest, RefusesAWrongState) {
  const Linear<float> model(3, 2);
  ExponentialMovingAverage<float> average(model);
  average.update();
  const TrainingState before = average.state_dict();
  TrainingState state = before;
  state.floats["module.weight"] = Array<float>({3, 2}, 1.0F);
  state.floats["weight"] = Array<float>({2, 3}, 1.0F);
  state.floats.erase("module.bias");
  state.numbers["n_averaged"] = 7;
  EXPECT_EQ(message_of([&] { average.load_state_dict(state); }),
            "load_state_dict: 'module.weight' must have shape (2, 3), got (3, 2); 'module.bias' is missing; "
            "'weight' is unexpected");
  EXPECT_EQ(average.state_dict(), before);
}

struct Named : xgrad::Module<float> {
  Named() : xgrad::Module<float>("Named") { this->child("linear", Linear<float>(3, 2)); }
};

TEST(MovingAverageTest, RefusesWhatHasNoMeaning) {
  const Linear<float> model(3, 2);
  const std::string name = "ExponentialMovingAverage: ";
  EXPECT_EQ(message_of([&] { ExponentialMovingAverage<float>(model, 1.5); }),
            name + "decay must be in [0, 1], got 1.5");
  EXPECT_EQ(message_of([&] { ExponentialMovingAverage<float>(model, std::nan("")); }),
            name + "decay must be in [0, 1], got nan");
  ExponentialMovingAverage<float> average(model);
  EXPECT_EQ(message_of([&] { average.copy_to(model); }), name + "copy_to needs an update first");
  EXPECT_EQ(message_of([&] { const auto applied = average.apply(); }), name + "apply needs an update first");
  average.update();
  EXPECT_EQ(
      message_of([&] { average.copy_to(Linear<float>(2, 3)); }),
      name + "copy_to needs a model with the same names and shapes of parameters and buffers, got Linear");
  EXPECT_EQ(
      message_of([&] { average.copy_to(Linear<float>(3, 2, false)); }),
      name + "copy_to needs a model with the same names and shapes of parameters and buffers, got Linear");
  EXPECT_EQ(
      message_of([&] { average.copy_to(Named()); }),
      name + "copy_to needs a model with the same names and shapes of parameters and buffers, got Named");
  const auto applied = average.apply();
  EXPECT_EQ(message_of([&] { average.update(); }),
            name + "update must not be called while the averages are applied");
  EXPECT_EQ(message_of([&] { const auto again = average.apply(); }),
            name + "apply must not be called while the averages are applied");
  EXPECT_EQ(message_of([&] { average.state_dict(); }),
            name + "state_dict must not be called while the averages are applied");
}

}  // namespace moving_average_test
