#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <xgrad/xgrad.hpp>

#include "data_folder.hpp"
#include "expect_error.hpp"

namespace recurrent_test {

using nlohmann::json;
using xgrad::Array, xgrad::Ids, xgrad::Module, xgrad::RNNOptions, xgrad::Shape, xgrad::ValueError,
    xgrad::Variable;
using xgrad_tests::message_of;

std::vector<std::string> parameters_of(const Module<float>& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters())
    names.push_back(name + " " + xgrad::to_string(parameter.shape()));
  return names;
}

TEST(RecurrentModulesTest, ParametersHavePyTorchsNamesAndShapes) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(parameters_of(xgrad::RNN<float>(3, 2)),
            (Names{"weight_ih_l0 (2, 3)", "weight_hh_l0 (2, 2)", "bias_ih_l0 (2)", "bias_hh_l0 (2)"}));
  EXPECT_EQ(
      parameters_of(xgrad::GRU<float>(3, 2, {.num_layers = 2, .bias = false})),
      (Names{"weight_ih_l0 (6, 3)", "weight_hh_l0 (6, 2)", "weight_ih_l1 (6, 2)", "weight_hh_l1 (6, 2)"}));
  EXPECT_EQ(
      parameters_of(
          xgrad::LSTM<float>(3, 4, {.num_layers = 2, .bias = false, .bidirectional = true, .proj_size = 2})),
      (Names{"weight_ih_l0 (16, 3)", "weight_hh_l0 (16, 2)", "weight_hr_l0 (2, 4)",
             "weight_ih_l0_reverse (16, 3)", "weight_hh_l0_reverse (16, 2)", "weight_hr_l0_reverse (2, 4)",
             "weight_ih_l1 (16, 4)", "weight_hh_l1 (16, 2)", "weight_hr_l1 (2, 4)",
             "weight_ih_l1_reverse (16, 4)", "weight_hh_l1_reverse (16, 2)", "weight_hr_l1_reverse (2, 4)"}));
}

TEST(RecurrentModulesTest, BadSizesAreRefused) {
  const auto refused = [](std::size_t in, std::size_t hidden, const RNNOptions& options = {}) {
    return message_of<ValueError>([&] { xgrad::LSTM<float>(in, hidden, options); });
  };
  EXPECT_EQ(refused(0, 2), "LSTM: input_size must be at least 1, got 0");
  EXPECT_EQ(refused(2, 0), "LSTM: hidden_size must be at least 1, got 0");
  EXPECT_EQ(refused(2, 2, {.num_layers = 0}), "LSTM: num_layers must be at least 1, got 0");
  EXPECT_EQ(refused(2, 2, {.dropout = 2}), "LSTM: dropout must be in [0, 1], got 2");
  EXPECT_EQ(refused(2, 2, {.proj_size = 2}), "LSTM: proj_size must be below hidden_size, got 2 and 2");
  EXPECT_EQ(refused(2, 2, {.nonlinearity = xgrad::Nonlinearity::relu}),
            "LSTM: nonlinearity is of an RNN only");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::GRU<float>(2, 2, {.proj_size = 1}); }),
            "GRU: proj_size is of an LSTM only, got 1");
  EXPECT_EQ(
      message_of<ValueError>([] { xgrad::GRU<float>(2, 2, {.nonlinearity = xgrad::Nonlinearity::relu}); }),
      "GRU: nonlinearity is of an RNN only");
  EXPECT_EQ(message_of<ValueError>([] { xgrad::RNN<float>(2, 2, {.proj_size = 1}); }),
            "RNN: proj_size is of an LSTM only, got 1");
}

TEST(RecurrentModulesTest, DropoutIsActiveInTrainingOnly) {
  xgrad::manual_seed(0);
  const xgrad::GRU<float> model(3, 4, {.num_layers = 2, .dropout = 0.5});
  const Variable<float> x(xgrad::normal<float>({5, 2, 3}));
  EXPECT_NE(model(x).output.value(), model(x).output.value());
  model.eval();
  EXPECT_EQ(model(x).output.value(), model(x).output.value());
}

TEST(RecurrentModulesTest, AStateGoesOnWithTheSequence) {
  xgrad::manual_seed(0);
  const xgrad::LSTM<double> model(3, 4, {.num_layers = 2, .batch_first = true, .proj_size = 2});
  const Variable<double> x(xgrad::normal<double>({2, 5, 3}));
  const auto [whole, h, c] = model(x);
  const auto [first, h3, c3] = model(narrow(x, 1, 0, 3));
  const auto [second, h5, c5] = model(narrow(x, 1, 3, 2), h3, c3);
  const auto difference = [](const Variable<double>& a, const Variable<double>& b) {
    return amax(abs(a - b)).item();
  };
  EXPECT_LT(difference(xgrad::cat({first, second}, 1), whole), 1e-15);
  EXPECT_LT(difference(h5, h), 1e-15);
  EXPECT_LT(difference(c5, c), 1e-15);
}

/// The models of make_cases.py.
template <class T, class Layer>
class Classifier : public Module<T> {
 public:
  explicit Classifier(const RNNOptions& options)
      : Module<T>("Classifier"),
        directions_(options.bidirectional ? 2 : 1),
        embedding_(this->child("embedding", xgrad::Embedding<T>(11, 3))),
        layers_(this->child("layers", Layer(3, 4, options))),
        head_(this->child(
            "head", xgrad::Linear<T>(directions_ * (options.proj_size > 0 ? options.proj_size : 4), 3))) {}

  Variable<T> operator()(const Ids& ids) const {
    const Ids lengths{6, 2, 5, 3};
    const Variable<T> h = last_states(layers_, embedding_(ids), lengths);
    return head_(directions_ == 1 ? select(h, 0, -1) : xgrad::cat({select(h, 0, -2), select(h, 0, -1)}, 1));
  }

 private:
  static Variable<T> last_states(const xgrad::LSTM<T>& lstm, const Variable<T>& x, const Ids& lengths) {
    return lstm(x, {}, {}, lengths).h;
  }
  template <class Other>
  static Variable<T> last_states(const Other& layers, const Variable<T>& x, const Ids& lengths) {
    return layers(x, {}, lengths).h;
  }

  std::size_t directions_;
  xgrad::Embedding<T> embedding_;
  Layer layers_;
  xgrad::Linear<T> head_;
};

Ids ids_of_step(std::int64_t step) {
  Ids ids = Ids::from_shape({4, 6});
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t t = 0; t < 6; ++t) ids(i, t) = (5 * i + 3 * t + i * t + 7 * step) % 11;
  return ids;
}

template <class T, class Layer>
void follow(const json& run, const RNNOptions& options, double tolerance) {
  xgrad::manual_seed(7);
  const Classifier<T, Layer> model(options);
  std::size_t weights = 0;
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (!name.starts_with("layers.")) continue;
    const auto expected = run.at("weights").at(name).template get<std::vector<T>>();
    EXPECT_TRUE(
        std::equal(expected.begin(), expected.end(), parameter.value().begin(), parameter.value().end()))
        << name;
    ++weights;
  }
  EXPECT_EQ(weights, run.at("weights").size());
  xgrad::SGD<T> optimizer(model.parameters(), {.lr = 0.5, .momentum = 0.5});
  std::int64_t step = 0;
  for (const json& expected : run.at("losses")) {
    const Ids ids = ids_of_step(step++);
    const Ids labels = xt::view(ids, xt::all(), 0) % 3;
    const Variable<T> loss = cross_entropy(model(ids), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    EXPECT_NEAR(loss.item(), expected.get<double>(), tolerance) << "step " << step;
  }
}

template <class T>
void follow(const json& run, double tolerance) {
  const auto layer = run.at("layer").get<std::string>();
  if (layer == "RNN") {
    follow<T, xgrad::RNN<T>>(
        run, {.nonlinearity = xgrad::Nonlinearity::relu, .bias = false, .batch_first = true}, tolerance);
  } else if (layer == "GRU") {
    follow<T, xgrad::GRU<T>>(run, {.num_layers = 2, .batch_first = true, .dropout = 0.3}, tolerance);
  } else {
    follow<T, xgrad::LSTM<T>>(
        run, {.num_layers = 2, .batch_first = true, .dropout = 0.2, .bidirectional = true, .proj_size = 3},
        tolerance);
  }
}

TEST(RecurrentModulesTest, TrainingRunsAreThoseOfPyTorch) {
  const json runs =
      json::parse(std::ifstream(xgrad_tests::data_folder("recurrent") + "cases.json")).at("cases");
  EXPECT_EQ(runs.size(), 6u);
  for (const json& run : runs) {
    SCOPED_TRACE(run.at("layer").get<std::string>() + " " + run.at("dtype").get<std::string>());
    if (run.at("dtype") == "float32")
      follow<float>(run, 2e-6);
    else
      follow<double>(run, 1e-12);
  }
}

}  // namespace recurrent_test
