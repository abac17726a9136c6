// LBFGS: PyTorch's steps and calls of the closure, and a state that can be saved.

#include <xgrad/train/optimizers/lbfgs.hpp>

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/loss/losses.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/product/linear.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "expect_error.hpp"
#include "keep_num_threads.hpp"
#include "optim_cases.hpp"

namespace lbfgs_test {

using nlohmann::json;
using xgrad::Array, xgrad::LBFGS, xgrad::LBFGSOptions, xgrad::LineSearch, xgrad::Shape, xgrad::TrainingState,
    xgrad::Variable;
using xgrad_tests::message_of;

template <class T>
using List = std::vector<Variable<T>>;

template <class T>
Variable<T> rosenbrock(const Variable<T>& x) {
  const auto n = static_cast<std::ptrdiff_t>(x.size());
  const Variable<T> head = narrow(x, 0, 0, n - 1), tail = narrow(x, 0, 1, n - 1);
  return sum(100 * square(tail - square(head)) + square(1 - head));
}

/// The functions of make_cases.py, by name.
template <class T>
Variable<T> value_of(const std::string& function, const List<T>& p, const List<T>& data) {
  if (function == "rosenbrock") return rosenbrock(p[0]);
  if (function == "logistic") {
    return binary_cross_entropy_with_logits(matmul(data[0], p[0]) + p[1], data[1]) + 0.01 * sum(p[0] * p[0]);
  }
  if (function == "hills") return sum(data[0] * tanh(p[0] - data[1])) + 0.01 * sum(p[0] * p[0]);
  EXPECT_EQ(function, "network");
  return mse_loss(matmul(tanh(linear(data[0], p[0], p[1])), transpose(p[2], 0, 1)), data[1]);
}

template <class T>
List<T> variables_of(const json& arrays, bool requires_grad) {
  List<T> variables;
  for (const json& array : arrays) {
    const auto shape = array.at("shape").get<std::vector<std::size_t>>();
    const Array<T> values = xgrad_tests::array_of<T>(array.at("values"), Shape(shape.begin(), shape.end()));
    variables.emplace_back(values, requires_grad);
  }
  return variables;
}

LBFGSOptions options_of(const json& fields) {
  LBFGSOptions options;
  options.lr = fields.value("lr", options.lr);
  options.max_iter = fields.value("max_iter", options.max_iter);
  if (fields.contains("max_eval")) options.max_eval = fields.at("max_eval").get<std::size_t>();
  options.tolerance_grad = fields.value("tolerance_grad", options.tolerance_grad);
  options.tolerance_change = fields.value("tolerance_change", options.tolerance_change);
  options.history_size = fields.value("history_size", options.history_size);
  if (fields.contains("line_search_fn")) options.line_search_fn = LineSearch::strong_wolfe;
  return options;
}

/// A closure as users write it.
template <class T, class F>
typename LBFGS<T>::Closure closure_of(const LBFGS<T>& optimizer, F f) {
  return [&optimizer, f] {
    optimizer.zero_grad();
    const Variable<T> loss = f();
    loss.backward();
    return loss;
  };
}

template <class T>
void expect_state(const TrainingState& state, const json& want, double tolerance) {
  EXPECT_EQ(state.floats.size() + state.doubles.size() + state.numbers.size(), want.size());
  for (const auto& [name, value] : want.items()) {
    if (value.is_array()) {
      ASSERT_TRUE(state.arrays<T>().contains(name)) << name;
      xgrad_tests::expect_near(state.arrays<T>().at(name), value, tolerance, name);
    } else {
      ASSERT_TRUE(state.numbers.contains(name)) << name;
      xgrad_tests::expect_near(Array<double>{state.numbers.at(name)}, json::array({value}), tolerance, name);
    }
  }
}

template <class T>
void run_case(const json& test, double tolerance) {
  const List<T> parameters = variables_of<T>(test.at("start"), true);
  const List<T> data = variables_of<T>(test.at("data"), false);
  LBFGS<T> optimizer(parameters, options_of(test.at("options")));
  std::size_t calls = 0;
  const auto closure = closure_of(optimizer, [&] {
    ++calls;
    return value_of<T>(test.at("function"), parameters, data);
  });
  for (const json& step : test.at("steps")) {
    const T loss = optimizer.step(closure);
    xgrad_tests::expect_near(Array<T>{loss}, json::array({step.at("loss")}), tolerance, "loss");
    EXPECT_EQ(calls, step.at("calls").get<std::size_t>());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      xgrad_tests::expect_near(parameters[i].value(), step.at("parameters")[i], tolerance,
                               "parameter " + std::to_string(i));
    }
  }
  expect_state<T>(optimizer.state_dict(), test.at("state"), tolerance);
}

class LBFGSCaseTest : public testing::TestWithParam<std::size_t> {};

TEST_P(LBFGSCaseTest, TakesPyTorchsStepsWithAsManyCalls) {
  const json& test = xgrad_tests::optim_cases().at("lbfgs").at(GetParam());
  SCOPED_TRACE(test.at("function").get<std::string>() + " " + test.at("options").dump());
  if (test.at("dtype") == "float64") {
    run_case<double>(test, 1e-12);
  } else {
    run_case<float>(test, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, LBFGSCaseTest, testing::Range(std::size_t{0}, xgrad_tests::lbfgs_cases));

/// A fit of two parameters, of which the second comes last to its gradient.
template <class T>
struct Fit {
  List<T> parameters{Variable<T>(Array<T>{0.25, 0.5, 0.75, 1.25}, true),
                     Variable<T>(Array<T>{{0.25, -0.5}}, true)};
  LBFGS<T> optimizer;
  std::size_t calls = 0;

  explicit Fit(LBFGSOptions options) : optimizer(parameters, options) {}

  Variable<T> loss() const { return rosenbrock(parameters[0]) + sum(square(square(parameters[1]) - 0.5)); }

  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      optimizer.step(closure_of(optimizer, [this] {
        ++calls;
        return loss();
      }));
    }
  }

  void expect_equal(const Fit& other) const {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      EXPECT_EQ(parameters[i].value(), other.parameters[i].value());
    EXPECT_EQ(optimizer.state_dict(), other.optimizer.state_dict());
  }
};

template <class T>
class LBFGSStateTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LBFGSStateTest, Types, );

TYPED_TEST(LBFGSStateTest, ALoadedRunGoesOnAsIfItHadNotStopped) {
  for (const LBFGSOptions& options :
       {LBFGSOptions{
            .lr = 0.01, .max_iter = 3, .tolerance_grad = 0, .tolerance_change = 0, .history_size = 12},
        LBFGSOptions{.max_iter = 4, .max_eval = 4, .line_search_fn = LineSearch::strong_wolfe}}) {
    for (const int stop : {0, 1, 5}) {
      Fit<TypeParam> whole(options), stopped(options), loaded({.history_size = 1});
      whole.steps(8);
      stopped.steps(stop);
      loaded.steps(1);  // to be forgotten, the options too
      loaded.optimizer.load_state_dict(stopped.optimizer.state_dict());
      for (std::size_t i = 0; i < 2; ++i) loaded.parameters[i].assign(stopped.parameters[i].value());
      loaded.expect_equal(stopped);
      loaded.steps(8 - stop);
      loaded.expect_equal(whole);
      EXPECT_TRUE(whole.optimizer.state_dict().numbers.contains("state.0.ro.10") ||
                  options.history_size == 100);
    }
  }
}

TEST(LBFGSTest, RefusesAStateThatCannotBe) {
  Fit<double> fit({.max_iter = 4});
  fit.steps(1);
  const TrainingState before = fit.optimizer.state_dict();
  TrainingState state = before;
  state.doubles["state.0.old_dirs.1"] = Array<double>{1, 2};
  state.doubles.erase("state.0.old_stps.0");
  state.doubles["state.0.old_dirs.7"] = Array<double>{1, 2, 3, 4, 5, 6};
  state.numbers.erase("state.0.t");
  EXPECT_EQ(
      message_of<xgrad::ValueError>([&] { fit.optimizer.load_state_dict(state); }),
      "load_state_dict: 'state.0.t' is missing; 'state.0.old_stps.0' is missing; 'state.0.old_dirs.1' must "
      "have shape (6), got (2); 'state.0.old_dirs.7' is unexpected");
  state = before;
  state.numbers["param_groups.0.history_size"] = 0;
  EXPECT_NE(message_of<xgrad::ValueError>([&] { fit.optimizer.load_state_dict(state); }), "no exception");
  state = before;
  state.numbers["param_groups.0.history_size"] = 1;
  EXPECT_EQ(message_of<xgrad::ValueError>([&] {
              fit.optimizer.load_state_dict(state);
            }).find("load_state_dict: 'state.0.old_dirs.1' is unexpected; "),
            0U);
  EXPECT_EQ(fit.optimizer.state_dict(), before);
}

TEST(LBFGSTest, HasPyTorchsDefaults) {
  using Numbers = std::map<std::string, double>;
  const Variable<double> p(Array<double>{1}, true);
  EXPECT_EQ(LBFGS<double>({p}).state_dict().numbers, (Numbers{{"param_groups.0.lr", 1},
                                                              {"param_groups.0.max_iter", 20},
                                                              {"param_groups.0.max_eval", 25},
                                                              {"param_groups.0.tolerance_grad", 1e-7},
                                                              {"param_groups.0.tolerance_change", 1e-9},
                                                              {"param_groups.0.history_size", 100},
                                                              {"param_groups.0.line_search_fn", 0},
                                                              {"param_groups.0.params.0", 0}}));
}

TEST(LBFGSTest, FindsTheMinimumToTheLastDigits) {
  Fit<double> fit({.max_iter = 200,
                   .tolerance_grad = 1e-12,
                   .tolerance_change = 0,
                   .line_search_fn = LineSearch::strong_wolfe});
  fit.steps(1);
  for (const double x : fit.parameters[0].value()) EXPECT_NEAR(x, 1, 1e-10);
  for (const double x : fit.parameters[1].value()) EXPECT_NEAR(std::abs(x), std::sqrt(0.5), 1e-10);
  EXPECT_LT(fit.calls, 100U);
}

/// The parameters are as before the step, and the same step can be done again.
TEST(LBFGSTest, AClosureThatThrowsChangesNothing) {
  for (const LineSearch search : {LineSearch::none, LineSearch::strong_wolfe}) {
    const bool searches = search == LineSearch::strong_wolfe;
    const LBFGSOptions options{.lr = searches ? 1 : 1e-2, .max_iter = 100, .line_search_fn = search};
    Fit<double> fit(options);
    std::vector<Array<double>> seen;
    const auto step = [&](std::size_t calls) {
      fit.optimizer.step(closure_of(fit.optimizer, [&] {
        if (seen.size() == calls) throw std::runtime_error("no more");
        seen.push_back(fit.parameters[0].value());
        return fit.loss();
      }));
    };
    const double before = fit.loss().item();
    EXPECT_EQ(message_of<std::runtime_error>([&] { step(6); }), "no more");
    EXPECT_EQ(fit.loss().item(), before);
    EXPECT_EQ(fit.parameters[0].value(), seen[0]);
    step(1000);
    EXPECT_LT(fit.loss().item(), before / 10);
  }
}

TEST(LBFGSTest, ParametersWithoutAGradientStay) {
  const List<double> p{Variable<double>(Array<double>{3, 4}, true), Variable<double>(Array<double>{5}, true)};
  LBFGS<double> optimizer(p);
  optimizer.step(closure_of(optimizer, [&] { return sum(square(p[0])); }));
  EXPECT_EQ(p[1].value(), (Array<double>{5}));
  EXPECT_NEAR(p[0].value()(1), 0, 1e-7);
}

TEST(LBFGSTest, TheClosureIsRecordedUnderNoGrad) {
  const Variable<double> p(Array<double>{3, 4}, true);
  LBFGS<double> optimizer({p});
  const xgrad::NoGrad guard;
  EXPECT_EQ(optimizer.step(closure_of(optimizer, [&] { return sum(square(p)); })), 25);
  EXPECT_NEAR(p.value()(0), 0, 1e-7);
  EXPECT_FALSE(xgrad::grad_enabled());
}

TEST(LBFGSTest, TheBitsAreTheSameForAnyNumberOfThreads) {
  const xgrad_tests::KeepNumThreads keep;
  const auto fitted = [](std::size_t threads) {
    xgrad::set_num_threads(threads);
    Array<float> start = Array<float>::from_shape({300001});
    for (std::size_t i = 0; i < start.size(); ++i) start(i) = static_cast<float>(std::sin(0.01 * double(i)));
    const Variable<float> p(start, true);
    LBFGS<float> optimizer({p}, {.max_iter = 6, .line_search_fn = LineSearch::strong_wolfe});
    optimizer.step(closure_of(optimizer, [&] { return mean(square(square(p) - 0.3f) + 0.1f * p) * 1000; }));
    return p.value();
  };
  const Array<float> one = fitted(1);
  EXPECT_EQ(one, fitted(3));
  EXPECT_NE(one(1), 0.0f);
}

TEST(LBFGSTest, RefusesWhatCannotBe) {
  const Variable<double> p(Array<double>{1, 2}, true);
  const auto refused = [&](LBFGSOptions o) {
    return message_of<xgrad::ValueError>([&] { LBFGS<double>({p}, o); });
  };
  EXPECT_EQ(refused({.lr = -1}), "LBFGS: lr must be finite and at least 0, got -1");
  EXPECT_EQ(refused({.tolerance_grad = -1}), "LBFGS: tolerance_grad must be finite and at least 0, got -1");
  EXPECT_EQ(refused({.tolerance_change = std::nan("")}),
            "LBFGS: tolerance_change must be finite and at least 0, got nan");
  EXPECT_EQ(refused({.history_size = 0}), "LBFGS: history_size must be at least 1, got 0");
  EXPECT_EQ(message_of<xgrad::ValueError>([] { LBFGS<double>(List<double>{}); }),
            "LBFGS: there must be parameters, got none");
  LBFGS<double> optimizer({p});
  xgrad::Optimizer<double>& any = optimizer;
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { any.step(); }),
            "LBFGS: step must be given a closure that computes the loss, got none");
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] { optimizer.step([&] { return p * p; }); }),
            "LBFGS: the closure must return one number, the loss, got shape (2)");
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { optimizer.step([] { return Variable<double>(); }); }),
            "LBFGS: the closure must return the loss, got an undefined variable");
}

TEST(LBFGSTest, AClosureWithoutBackwardIsRefused) {
  const Variable<double> x(Array<double>{1, 2}, true);
  xgrad::LBFGS<double> optimizer({x});
  EXPECT_EQ(message_of<xgrad::GraphError>([&] { optimizer.step([&] { return sum(x * x); }); }),
            "LBFGS: the closure must call backward(), but no parameter has a gradient");
}

TEST(LBFGSTest, ClearsTheGradientsBeforeTheClosure) {
  const Variable<double> x(Array<double>{5, -3}, true);
  LBFGS<double> optimizer({x});
  optimizer.step([&] {
    const Variable<double> loss = sum(square(x - 1));
    loss.backward();
    return loss;
  });
  EXPECT_NEAR(x.value()(0), 1, 1e-6);
  EXPECT_NEAR(x.value()(1), 1, 1e-6);
}

}  // namespace lbfgs_test
