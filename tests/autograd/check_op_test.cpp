// check_op() is worth what it refuses: for each of its checks, an op that is wrong for this check alone.

#include <xgrad/autograd/check_op.hpp>

#include <algorithm>
#include <cmath>
#include <ostream>

#include <gtest/gtest.h>

#include <xgrad/base/threads.hpp>
#include <xgrad/graph/fused.hpp>
#include <xgrad/graph/record.hpp>
#include <xgrad/ops/norm/layer_norm.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "expect_error.hpp"

namespace check_op_test {

constexpr xgrad::Op square_op("square", {"x"});
constexpr xgrad::Op product_op("product", {"a", "b"});

using xgrad::Array, xgrad::check_op, xgrad::CheckedFunction, xgrad::CheckOpOptions, xgrad::CheckOpReport;
using xgrad::Grads, xgrad::Needs, xgrad::Inputs, xgrad::random_inputs, xgrad::Saved, xgrad::Shape,
    xgrad::Variable, xgrad::Attributes;
using xgrad_tests::message_of;
using V = Variable<double>;

/// x^2, whose gradient is `backward(dy, x)`.
template <class T = double, class Backward>
Variable<T> square(const Variable<T>& x, Backward backward) {
  return xgrad::record<T>(
      square_op, Variable<T>(x.value() * x.value()), Inputs(x), Saved(x),
      [backward](Variable<T> dy, Needs, Variable<T> at) -> Grads<T, 1> { return {backward(dy, at)}; });
}

template <class T>
Variable<T> right_gradient(const Variable<T>& dy, const Variable<T>& x) {
  return dy * x * 2;
}

/// The right op, with the value of `number` added to it.
V off_by(const V& x, double number) { return square(x, right_gradient<double>) + number; }

struct Example {
  const char* check;  ///< that detects it, and no other does
  std::vector<Shape> shapes;
  CheckedFunction f;
  CheckOpOptions options = {};

  friend std::ostream& operator<<(std::ostream& out, const Example& example) { return out << example.check; }
};

/// An operand's element for the element k of the other one; reads past none.
double broadcast_element(const V& x, std::size_t k) { return x.value().data()[k % x.size()]; }

/// a b, with the gradient of b for its own shape only if that of a is larger.
V product_with_wrong_broadcast(const V& a, const V& b) {
  if (a.size() % std::max<std::size_t>(b.size(), 1) != 0 || a.size() < b.size() ||
      b.dimension() > a.dimension())
    throw xgrad::ShapeError("product: shapes must agree");
  if (b.size() == 0 || a.dimension() != 1 || (b.size() != 1 && b.size() != a.size()))
    throw xgrad::ShapeError("product: shapes must agree");
  Array<double> y = a.value();
  for (std::size_t k = 0; k < y.size(); ++k) y.data()[k] *= broadcast_element(b, k);
  return xgrad::record<double>(
      product_op, V(std::move(y)), Inputs(a, b), Saved(a, b), [](V dy, Needs, V a, V b) -> Grads<double, 2> {
        if (b.size() == a.size()) return {dy * b, dy * a};
        return {dy * b, xgrad::sum(dy * a).item() * 0.5 * Array<double>(b.shape(), 1.0)};
      });
}

std::vector<Example> wrong_ops() {
  return {
      {"first derivatives",
       {{3}},
       [](const auto& x) { return square(x[0], [](V dy, V at) { return dy * at * 3.0; }); },
       {.second_derivatives = false}},
      {"second derivatives",
       {{3}},
       [](const auto& x) {
         const Array<double> slope = x[0].value() * 2;
         return square(x[0], [slope](V dy, V) { return dy * V(slope); });
       }},
      {"recorded gradients",
       {{3}},
       [](const auto& x) {
         return square(x[0], [](V dy, V at) { return dy * at * (xgrad::grad_enabled() ? 2 + 1e-7 : 2.0); });
       }},
      {"single ops",
       {{3}},
       [](const auto& x) {
         return xgrad::fused<double>(
             square_op, V(x[0].value() * x[0].value()), Inputs(x[0]), Attributes(), Saved(),
             [](const V& x) { return x * x + 1e-6; },
             [](const V& dy, Needs, const V& x) -> Grads<double, 1> {
               return {V(dy.value() * x.value() * 2)};
             });
       }},
      {"float",
       {{3}},
       [](const auto& x) { return square(x[0], right_gradient<double>); },
       {.in_float =
            [](const auto& x) {
              return square<float>(x[0], [](auto dy, auto at) { return dy * at * 2.001f; });
            }}},
      {"repetition",
       {{3}},
       [](const auto& x) {  // the sign of a zero changes from call to call
         static int calls = 0;
         const double zero = ++calls % 2 == 0 ? 0.0 : -0.0;
         const V y = x[0] * 0.0;
         return xgrad::record<double>(square_op, V(Array<double>(y.shape(), zero)), Inputs(x[0]), Saved(),
                                      [](V, Needs) -> Grads<double, 1> { return {V()}; });
       },
       {.nan = false}},
      {"threads",
       {{3}},
       [](const auto& x) { return off_by(x[0], static_cast<double>(xgrad::num_threads()) * 1e-12); },
       {.threads = 4}},
      {"one input alone",
       {{3}, {3}},
       [](const auto& x) {
         if (x[0].shape() != x[1].shape()) throw xgrad::ShapeError("product: shapes must agree");
         return xgrad::record<double>(product_op, V(x[0].value() * x[1].value()), Inputs(x[0], x[1]),
                                      Saved(x[0], x[1]), [](V dy, Needs needs, V a, V b) -> Grads<double, 2> {
                                        return {dy * b, needs[0] ? dy * a : dy * b};
                                      });
       },
       {.broadcast = false}},
      {"unrecorded",
       {{3}},
       [](const auto& x) {
         const xgrad::EnableGrad guard;
         return square(x[0], right_gradient<double>);
       }},
      {"inputs",
       {{3}},
       [](const auto& x) {  // rounds its input, too little for a difference
         Array<double>& elements = const_cast<Array<double>&>(x[0].value());
         for (double& element : elements.storage()) element = std::floor(element * 0x1p40) * 0x1p-40;
         return square(x[0], right_gradient<double>);
       }},
      {"memory",
       {{3}},
       [](const auto& x) {
         static std::vector<V> kept;
         kept.push_back(square(x[0], right_gradient<double>));
         return kept.back();
       }},
      {"nan",
       {{3}},
       [](const auto& x) {
         Array<double> elements = x[0].value();
         for (double& element : elements.storage()) element = std::isnan(element) ? 0 : element * element;
         return xgrad::record<double>(
             square_op, V(std::move(elements)), Inputs(x[0]), Saved(x[0]),
             [](V dy, Needs, V at) -> Grads<double, 1> { return {right_gradient(dy, at)}; });
       }},
      {"empty",
       {{3}},
       [](const auto& x) {
         if (x[0].size() == 0) throw std::runtime_error("no");
         return square(x[0], right_gradient<double>);
       }},
      {"wrong shapes",
       {{3}},
       [](const auto& x) {
         if (x[0].dimension() != 1) throw 1;
         return square(x[0], right_gradient<double>);
       }},
      {"broadcast", {{3}, {3}}, [](const auto& x) { return product_with_wrong_broadcast(x[0], x[1]); }},
  };
}

class WrongOpTest : public testing::TestWithParam<Example> {};

TEST_P(WrongOpTest, IsDetectedByItsCheckAlone) {
  const CheckOpReport report = check_op(GetParam().f, random_inputs(GetParam().shapes), GetParam().options);
  EXPECT_FALSE(report);
  ASSERT_EQ(report.failures.size(), 1u) << report.text();
  EXPECT_EQ(report.failures[0].check, GetParam().check) << report.text();
  EXPECT_FALSE(report.failures[0].details.empty());
}

INSTANTIATE_TEST_SUITE_P(, WrongOpTest, testing::ValuesIn(wrong_ops()), [](const auto& info) {
  std::string name = info.param.check;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST(CheckOpTest, RightOpsPass) {
  const auto squared = [](const auto& x) {
    return square(x[0], [](auto dy, auto at) { return right_gradient(dy, at); });
  };
  CheckOpReport report =
      check_op(squared, random_inputs({{2, 3}}), {.in_float = squared, .large = random_inputs({{140001}})});
  EXPECT_TRUE(report) << report.text();

  const auto network = [](const auto& x) {
    return tanh(layer_norm(matmul(x[0], x[1]) + x[2], 4, x[3], x[4]));
  };
  report = check_op(network, random_inputs({{2, 3}, {3, 4}, {4}, {4}, {4}}), {.in_float = network});
  EXPECT_TRUE(report) << report.text();
}

TEST(CheckOpTest, FailuresHaveTheNumbers) {
  const auto f = [](const std::vector<V>& x) {
    return square(x[0], [](V dy, V at) { return dy * at * 3.0; });
  };
  const CheckOpReport report = check_op(f, {V(Array<double>{2}, true)}, {.second_derivatives = false});
  ASSERT_EQ(report.failures.size(), 1u) << report.text();
  EXPECT_EQ(report.failures[0].details.find("input 0, element (0): analytic "), 0u) << report.text();
  EXPECT_EQ(report.text().find("first derivatives: input 0, element (0): analytic "), 0u) << report.text();
}

/// A difference of large arrays alone, which their threads divide.
TEST(CheckOpTest, LargeInputsAreForThreads) {
  const auto f = [](const std::vector<V>& x) {
    return off_by(x[0], x[0].size() > 1000 ? static_cast<double>(xgrad::num_threads()) * 1e-12 : 0);
  };
  EXPECT_TRUE(check_op(f, random_inputs({{3}})));
  const CheckOpReport report = check_op(f, random_inputs({{3}}), {.large = random_inputs({{2000}})});
  ASSERT_EQ(report.failures.size(), 1u) << report.text();
  EXPECT_EQ(report.failures[0].check, "threads");
  EXPECT_EQ(report.failures[0].details.find("2 threads, value, element 0: "), 0u) << report.text();
}

TEST(CheckOpTest, AnExceptionFailsTheChecks) {
  const auto f = [](const std::vector<V>&) -> V { throw std::runtime_error("no result"); };
  const CheckOpReport report = check_op(f, random_inputs({{3}}));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.failures[0].details, "threw no result");
}

TEST(CheckOpTest, InputsAndThreadsStayAsTheyWere) {
  const std::vector<V> inputs = random_inputs({{2, 3}});
  const Array<double> before = inputs[0].value();
  const std::size_t threads = xgrad::num_threads();
  EXPECT_TRUE(check_op([](const std::vector<V>& x) { return exp(x[0]); }, inputs));
  EXPECT_EQ(inputs[0].value(), before);
  EXPECT_FALSE(inputs[0].has_grad());
  EXPECT_EQ(xgrad::num_threads(), threads);
}

TEST(CheckOpTest, RandomInputsAreLeavesAwayFromZero) {
  const std::vector<V> a = random_inputs({{50}, {}, {0, 2}}, 3), b = random_inputs({{50}, {}, {0, 2}}, 3);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].requires_grad() && a[i].is_leaf());
    EXPECT_EQ(a[i].value(), b[i].value());
  }
  EXPECT_EQ(a[0].shape(), Shape{50});
  for (const double element : a[0].value()) {
    EXPECT_GE(std::abs(element), 0.5);
    EXPECT_LE(std::abs(element), 1.5);
  }
  EXPECT_NE(a[0].value(), random_inputs({{50}}, 4)[0].value());
}

TEST(CheckOpTest, InvalidArgumentsAreRefused) {
  const auto f = [](const std::vector<V>& x) { return exp(x[0]); };
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { (void)check_op(f, {}); }),
            "check_op: inputs must not be empty");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { (void)check_op(f, {V(1.0)}); }),
            "check_op: input 0 must be a leaf that requires a gradient");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { (void)check_op(f, {V(1.0, true)}, {.large = {V(1.0)}}); }),
            "check_op: large input 0 must be a leaf that requires a gradient");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { (void)check_op(f, {V(1.0, true)}, {.threads = 0}); }),
            "check_op: threads must not be 0");
}

}  // namespace check_op_test
