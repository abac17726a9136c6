// What there is to test of the elementwise functions of one input.
#include <xgrad/ops/pointwise/elementwise.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <xgrad/ops/pointwise/arithmetic.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"
#include "../common/pointwise.hpp"

namespace xgrad_tests::elementwise_rows {

double naive_gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }
double naive_gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

Op gelu_op() {
  return joined(elementwise_op("elementwise", "gelu", [](const auto& x) { return xgrad::gelu(x[0]); },
                               naive_gelu, {-4, 4, 0}),
                elementwise_op("elementwise", "gelu",
                               [](const auto& x) { return xgrad::gelu(x[0], xgrad::Gelu::tanh); },
                               naive_gelu_tanh, {-4, 4, 0}));
}

Op softplus_op() {
  Op op = elementwise_op(
      "elementwise", "softplus", [](const auto& x) { return xgrad::softplus(x[0]); },
      [](double x) { return std::log1p(std::exp(x)); }, {-8, 8, 0});
  op.cases.push_back(make_case(
      {{{5, 33}, {-3, 3, 0}}}, [](const auto& x) { return xgrad::softplus(x[0], 2, 3); },
      naive::map([](double x) { return 2 * x > 3 ? x : std::log1p(std::exp(2 * x)) / 2; })));
  return op;
}

Op leaky_relu_op() {
  Op op = elementwise_op(
      "elementwise", "leaky_relu", [](const auto& x) { return xgrad::leaky_relu(x[0]); },
      [](double x) { return x > 0 ? x : 0.01 * x; }, {-2, 2, 0.01});
  op.cases.push_back(make_case(
      {{{5, 33}, {-2, 2, 0.01}}}, [](const auto& x) { return xgrad::leaky_relu(x[0], -0.5); },
      naive::map([](double x) { return x > 0 ? x : -0.5 * x; })));
  return op;
}

Op elu_op() {
  Op op = elementwise_op(
      "elementwise", "elu", [](const auto& x) { return xgrad::elu(x[0]); },
      [](double x) { return x > 0 ? x : std::expm1(x); }, {-8, 8, 0.01});
  op.cases.push_back(make_case(
      {{{5, 33}, {-2, 2, 0.01}}}, [](const auto& x) { return xgrad::elu(x[0], -0.5); },
      naive::map([](double x) { return x > 0 ? x : -0.5 * std::expm1(x); })));
  return op;
}

Op clamp_op() {
  Op op = elementwise_op(
      "elementwise", "clamp", [](const auto& x) { return xgrad::clamp(x[0], -1, 0.5); },
      [](double x) { return std::min(std::max(x, -1.0), 0.5); });
  op.cases.push_back(make_case(
      {{7}}, [](const auto& x) { return xgrad::clamp(x[0], 0.25); },
      naive::map([](double x) { return std::max(x, 0.25); })));
  op.cases.push_back(make_case(
      {{7}}, [](const auto& x) { return xgrad::clamp(x[0], {}, 0.25); },
      naive::map([](double x) { return std::min(x, 0.25); })));
  const auto between = [](double x, double low, double high) { return std::min(std::max(x, low), high); };
  const Reference reference = [between](const std::vector<Array<double>>& x) {
    return naive::generated(naive::stretched(x[0].shape(), naive::stretched(x[1].shape(), x[2].shape())),
                            [&](const Shape& index) {
                              return between(naive::at(x[0], index), naive::at(x[1], index),
                                             naive::at(x[2], index));
                            });
  };
  const Range low{-1.5, -0.5, 0}, high{0.5, 1.5, 0};
  for (const Case& one : make_cases(
           {{{2, 3}, {{2, 3}, low}, {{3}, high}}, {{5, 3}, {{3}, low}, {Shape{}, high}}},
           [](const auto& x) { return xgrad::clamp(x[0], x[1], x[2]); }, reference))
    op.cases.push_back(one);
  op.cases.push_back(make_case(
      {{4, 3}, {3}}, [](const auto& x) { return xgrad::clamp(x[0], x[1]); },
      naive::binary([](double x, double low) { return std::max(x, low); })));
  op.errors = {
      error<ValueError>("clamp: at least one bound must be given", [] { xgrad::clamp(x(2), {}, {}); }),
      error<ShapeError>("clamp: shapes must broadcast, got x (2) and low (3)",
                        [] { xgrad::clamp(x(2), x(3)); }),
      error<ShapeError>("clamp: shapes must broadcast, got x and low (3) and high (2)",
                        [] { xgrad::clamp(x(1), x(3), x(2)); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{
      elementwise_op(
          "elementwise", "exp", [](const auto& x) { return xgrad::exp(x[0]); },
          [](double x) { return std::exp(x); }),
      elementwise_op(
          "elementwise", "log", [](const auto& x) { return xgrad::log(x[0]); },
          [](double x) { return std::log(x); }, positive),
      elementwise_op(
          "elementwise", "sqrt", [](const auto& x) { return xgrad::sqrt(x[0]); },
          [](double x) { return std::sqrt(x); }, positive),
      elementwise_op(
          "elementwise", "tanh", [](const auto& x) { return xgrad::tanh(x[0]); },
          [](double x) { return std::tanh(x); }),
      elementwise_op(
          "elementwise", "erf", [](const auto& x) { return xgrad::erf(x[0]); },
          [](double x) { return std::erf(x); }),
      elementwise_op(
          "elementwise", "relu", [](const auto& x) { return xgrad::relu(x[0]); },
          [](double x) { return x > 0 ? x : 0; }, {-2, 2, 0.01}),
      gelu_op(),
      elementwise_op(
          "elementwise", "rsqrt", [](const auto& x) { return xgrad::rsqrt(x[0]); },
          [](double x) { return 1 / std::sqrt(x); }, positive),
      elementwise_op(
          "elementwise", "reciprocal", [](const auto& x) { return xgrad::reciprocal(x[0]); },
          [](double x) { return 1 / x; }, away_from_zero),
      elementwise_op(
          "elementwise", "square", [](const auto& x) { return xgrad::square(x[0]); },
          [](double x) { return x * x; }),
      elementwise_op(
          "elementwise", "abs", [](const auto& x) { return xgrad::abs(x[0]); },
          [](double x) { return std::abs(x); }, {-2, 2, 0.01}),
      elementwise_op(
          "elementwise", "sigmoid", [](const auto& x) { return xgrad::sigmoid(x[0]); },
          [](double x) { return 1 / (1 + std::exp(-x)); }, {-8, 8, 0}),
      elementwise_op(
          "elementwise", "silu", [](const auto& x) { return xgrad::silu(x[0]); },
          [](double x) { return x / (1 + std::exp(-x)); }, {-8, 8, 0}),
      softplus_op(),
      leaky_relu_op(),
      elu_op(),
      elementwise_op(
          "elementwise", "log_sigmoid", [](const auto& x) { return xgrad::log_sigmoid(x[0]); },
          [](double x) { return -std::log1p(std::exp(-x)); }, {-8, 8, 0}),
      clamp_op()};
});

const Conformance conformance{
    {"exp", [](const auto& c) { return exp(c.x()); }},
    {"log", [](const auto& c) { return log(c.x()); }},
    {"sqrt", [](const auto& c) { return sqrt(c.x()); }},
    {"rsqrt", [](const auto& c) { return rsqrt(c.x()); }},
    {"reciprocal", [](const auto& c) { return reciprocal(c.x()); }},
    {"square", [](const auto& c) { return square(c.x()); }},
    {"tanh", [](const auto& c) { return tanh(c.x()); }},
    {"sigmoid", [](const auto& c) { return sigmoid(c.x()); }},
    {"relu", [](const auto& c) { return relu(c.x()); }},
    {"silu", [](const auto& c) { return silu(c.x()); }},
    {"abs", [](const auto& c) { return abs(c.x()); }},
    {"erf", [](const auto& c) { return erf(c.x()); }},
    {"gelu",
     [](const auto& c) {
       const std::string form = c.text("approximate");
       if (form != "none" && form != "tanh") throw ValueError("gelu: there is no form '" + form + "'");
       return gelu(c.x(), form == "none" ? xgrad::Gelu::none : xgrad::Gelu::tanh);
     }},
    {"leaky_relu", [](const auto& c) { return leaky_relu(c.x(), c.scalar("negative_slope")); }},
    {"elu", [](const auto& c) { return elu(c.x(), c.scalar("alpha")); }},
    {"log_sigmoid", [](const auto& c) { return log_sigmoid(c.x()); }},
    {"softplus", [](const auto& c) { return softplus(c.x(), c.scalar("beta"), c.scalar("threshold")); }},
    {"clamp", [](const auto& c) {
       if (c.size() > 1) return clamp(c.x(), c.optional(1), c.optional(2));
       return clamp(c.x(), c.bound("min"), c.bound("max"));
     }}};

void draw_gelu(Drawing& d) {
  d.call("gelu", {d.numbers()}, {{"approximate", d.one_of<std::string>({"none", "tanh"})}});
}

void draw_softplus(Drawing& d) {
  const Name x = d.numbers();
  const double beta = d.one_of({1.0, 0.5, 2.0}), threshold = d.one_of({20.0, 3.0});
  if (d.is_clear_of(threshold / beta, d.value(x)))
    d.call("softplus", {x}, {{"beta", beta}, {"threshold", threshold}});
}

/// A call with an attribute on elements that are clear of the kink at 0.
Draw draw_with_slope(const char* op, const char* attribute) {
  return {op, [=](Drawing& d) {
            const Name x = d.numbers();
            if (d.is_clear_of(0, d.value(x)))
              d.call(op, {x}, {{attribute, d.one_of({0.01, 1.0, 0.3, -0.5})}});
          }};
}

void draw_clamp(Drawing& d) {
  const Name x = d.numbers();
  const double low = d.uniform(-2, 1), high = d.uniform(-1, 2);
  const std::size_t bounds = d.below(3);
  const bool has_low = bounds != 1, has_high = bounds != 2;
  if (has_low && !d.is_clear_of(low, d.value(x))) return;
  if (has_high && !d.is_clear_of(high, d.value(x))) return;
  d.call("clamp", {x},
         {{"min", has_low ? Attr::Value(low) : nullptr}, {"max", has_high ? Attr::Value(high) : nullptr}});
}

void draw_clamp_between(Drawing& d) {
  const Name x = d.numbers();
  const Name low = d.within(d.numbers(d.narrowed(d.shape(x))), {-2, -0.1}),
             high = d.within(d.numbers(d.narrowed(d.shape(x))), {0.1, 2});
  for (const Name& bound : {low, high})
    if (!d.is_clear_of(0, d.result("sub", {x, bound}))) return;
  d.call("clamp", {x, low, d.chance(0.2) ? Name() : high});
}

const Draws draws{{"clamp", draw_clamp_between},
                  elementwise_draw("exp", {-3, 3}),
                  elementwise_draw("log", positive),
                  elementwise_draw("sqrt", positive),
                  elementwise_draw("rsqrt", positive),
                  elementwise_draw("reciprocal", away_from_zero),
                  elementwise_draw("square", {-5, 5}),
                  elementwise_draw("tanh"),
                  elementwise_draw("sigmoid"),
                  elementwise_draw("relu", {-30, 30}, {0}),
                  elementwise_draw("silu"),
                  elementwise_draw("abs", {-30, 30}, {0}),
                  elementwise_draw("erf"),
                  {"gelu", draw_gelu},
                  {"softplus", draw_softplus},
                  draw_with_slope("leaky_relu", "negative_slope"),
                  draw_with_slope("elu", "alpha"),
                  elementwise_draw("log_sigmoid"),
                  {"clamp", draw_clamp}};

TEST(ElementwiseTest, SpecialValues) {
  const Variable<float> x(Array<float>{0, -1, inf, -inf, nan});
  EXPECT_EQ(log(x).value().data()[0], -inf);
  EXPECT_TRUE(std::isnan(log(x).value().data()[1]));
  EXPECT_EQ(exp(x).value().data()[2], inf);
  EXPECT_EQ(exp(x).value().data()[3], 0);
  EXPECT_EQ(tanh(x).value().data()[2], 1);
  EXPECT_EQ(tanh(x).value().data()[3], -1);
  EXPECT_EQ(erf(x).value().data()[2], 1);
  EXPECT_EQ(relu(x).value().data()[2], inf);
  EXPECT_EQ(relu(x).value().data()[3], 0);
  EXPECT_TRUE(std::isnan(sqrt(x).value().data()[1]));
  for (const auto& y :
       {exp(x), log(x), sqrt(x), tanh(x), erf(x), relu(x), gelu(x), gelu(x, xgrad::Gelu::tanh)})
    EXPECT_TRUE(std::isnan(y.value().data()[4])) << "nan must stay nan";
}

TEST(ElementwiseTest, ExpIsExactAtItsEnds) {
  for (const float at : {-100.f, -87.f, -1e-6f, 0.f, 1e-6f, 1.f, 88.f, 88.7f}) {
    const double expected = std::exp(static_cast<double>(at));
    EXPECT_NEAR(exp(Variable<float>(at)).item(), expected, 1e-6 * expected + 1e-44) << at;
  }
  EXPECT_EQ(exp(Variable<float>(89.f)).item(), inf);
  EXPECT_EQ(exp(Variable<float>(-104.f)).item(), 0);
}

TEST(ElementwiseTest, ANanBoundOfClampIsPyTorchs) {
  const Variable<float> x(Array<float>{1, 2, nan}, true);
  const auto expect = [&](const Variable<float>& y, const Array<float>& expected) {
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(std::isnan(y.value()(i)), std::isnan(expected(i)));
      if (!std::isnan(expected(i))) {
        EXPECT_EQ(y.value()(i), expected(i));
      }
    }
    EXPECT_EQ(xgrad::grad(sum(y), {x})[0].value(), (Array<float>{0, 0, 0}));
  };
  expect(clamp(x, 0, nan), {nan, nan, nan});
  expect(clamp(x, nan, 0), {nan, nan, nan});
  expect(clamp(x, nan), {1, 2, nan});
  expect(clamp(x, {}, nan), {1, 2, nan});
}

TEST(ElementwiseTest, ClampBetweenArraysIsThatOfPyTorch) {
  const Variable<double> x(Array<double>{1, 2, 3, nan, 1, 0, 5, 4}, true),
      low(Array<double>{2, 2, 1, 1, nan, 3, 3, nan}, true), high(Array<double>{3, 3, 2, 4, 4, 1, 1, 1}, true);
  const Variable<double> y = clamp(x, low, high);
  expect_near(y.value(), Array<double>{2, 2, 2, nan, nan, 1, 1, nan}, 0, "clamp");
  const auto grads = grad(sum(y), {x, low, high});
  expect_near(grads[0].value(), Array<double>{0, 1, 0, 1, 0, 0, 0, 0}, 0, "dx");
  expect_near(grads[1].value(), Array<double>{1, 0, 0, 0, 1, 0, 0, 1}, 0, "dlow");
  expect_near(grads[2].value(), Array<double>{0, 0, 1, 0, 0, 1, 1, 0}, 0, "dhigh");
}

/// From seeds of ones, by the kernel and by the ops that a recorded backward is made of.
std::vector<Array<float>> both_gradients(const Variable<float>& y, const Variable<float>& x) {
  const Variable<float> seed(Array<float>(y.shape(), 1.0f));
  std::vector<Array<float>> found;
  for (const bool create_graph : {false, true}) {
    found.push_back(
        grad(y, {x}, {.seed = seed, .retain_graph = true, .create_graph = create_graph})[0].value());
  }
  return found;
}

TEST(ElementwiseTest, GradientsAtKinksAndBoundsAreThoseOfPyTorch) {
  const Variable<float> x(Array<float>{-2, -1, 0, 0.5, 3}, true);
  for (const Array<float>& dx : both_gradients(clamp(x, -1, 0.5), x))
    EXPECT_EQ(dx, (Array<float>{0, 1, 1, 1, 0}));
  for (const Array<float>& dx : both_gradients(clamp(x, -1), x)) EXPECT_EQ(dx, (Array<float>{0, 1, 1, 1, 1}));
  for (const Array<float>& dx : both_gradients(clamp(x, {}, 0.5), x))
    EXPECT_EQ(dx, (Array<float>{1, 1, 1, 1, 0}));
  for (const Array<float>& dx : both_gradients(abs(x), x)) EXPECT_EQ(dx, (Array<float>{-1, -1, 0, 1, 1}));
  for (const Array<float>& dx : both_gradients(relu(x), x)) EXPECT_EQ(dx, (Array<float>{0, 0, 0, 1, 1}));
  for (const Array<float>& dx : both_gradients(sqrt(square(x)), x)) EXPECT_TRUE(std::isnan(dx(2)));
}

TEST(ElementwiseTest, EluAndLeakyReluAreThoseOfPyTorchAtTheirKinks) {
  const Variable<float> x(Array<float>{-inf, -100, -0.0F, 0, 2, 100, inf}, true);
  EXPECT_EQ(elu(x, 0.5).value(), (Array<float>{-0.5, -0.5, 0, 0, 2, 100, inf}));
  EXPECT_EQ(leaky_relu(x, 0.5).value(), (Array<float>{-inf, -50, 0, 0, 2, 100, inf}));
  for (const Array<float>& dx : both_gradients(elu(x, 0.5), x))
    expect_near(dx, Array<float>{0, 0, 0.5, 0.5, 1, 1, 1}, 1e-30, "gradient");
  for (const Array<float>& dx : both_gradients(leaky_relu(x, 0.5), x))
    EXPECT_EQ(dx, (Array<float>{0.5, 0.5, 0.5, 0.5, 1, 1, 1}));
}

TEST(ElementwiseTest, EluKeepsSmallNumbers) {
  EXPECT_FLOAT_EQ(elu(Variable<float>(-1e-9F)).item(), -1e-9F);
  EXPECT_DOUBLE_EQ(elu(Variable<double>(-1e-17)).item(), -1e-17);
}

TEST(ElementwiseTest, SecondGradientsOfEluAreFiniteWhereItsExponentialIsNot) {
  const Variable<double> x(Array<double>{-1, 1000}, true);
  const Variable<double> dx = grad(sum(elu(x)), {x}, {.create_graph = true})[0];
  expect_near(grad(sum(dx), {x})[0].value(), Array<double>{std::exp(-1), 0}, 1e-15, "second gradient");
}

TEST(ElementwiseTest, LogSigmoidDoesNotOverflow) {
  const Variable<float> x(Array<float>{-inf, -1000, 0, 20, 1000, inf}, true);
  const float at_20 = -2.0611536e-9F, at_0 = -0.6931472F;
  expect_near(log_sigmoid(x).value(), Array<float>{-inf, -1000, at_0, at_20, 0, 0}, 1e-7, "log_sigmoid");
  EXPECT_FLOAT_EQ(log_sigmoid(x).value()(3), at_20);
  for (const Array<float>& dx : both_gradients(log_sigmoid(x), x))
    expect_near(dx, Array<float>{1, 1, 0.5, 2.0611536e-9F, 0, 0}, 1e-12, "gradient");
}

TEST(ElementwiseTest, ReluPassesTheGradientOfNan) {
  const Variable<float> x(Array<float>{nan, -1}, true);
  for (const Array<float>& dx : both_gradients(relu(x), x)) EXPECT_EQ(dx, (Array<float>{1, 0}));
}

TEST(ElementwiseTest, ABoundOfClampThatIsTheUpperOneWins) {
  EXPECT_EQ(clamp(Variable<float>(Array<float>{-3, 0, 3}), 2, -1).value(), (Array<float>{-1, -1, -1}));
}

TEST(ElementwiseTest, SoftplusIsTheIdentityAboveItsThreshold) {
  const Variable<double> x(Array<double>{10.5, 15, 19.5, 20, 20.5, 30}, true);
  const Array<double> y = softplus(x).value(), steep = softplus(x, 2).value();
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y(i) == x.value()(i), i > 3) << x.value()(i);
    EXPECT_EQ(steep(i), x.value()(i));
  }
  EXPECT_EQ(grad(sum(softplus(x)), {x})[0].value()(5), 1);
}

TEST(ElementwiseTest, SoftplusFarBelowZeroIsTheExponential) {
  const Array<float> x{-20, -40, -80};
  const Array<float> y = softplus(Variable<float>(x)).value();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(y(i), std::exp(x(i))) << x(i);
}

TEST(ElementwiseTest, InfinitiesGoWhereTheFunctionsGo) {
  const Variable<float> x(Array<float>{-inf, inf, -200, 200}, true);
  EXPECT_EQ(sigmoid(x).value(), (Array<float>{0, 1, 0, 1}));
  EXPECT_EQ(softplus(x).value(), (Array<float>{0, inf, 0, 200}));
  EXPECT_EQ(silu(x).value()(1), inf);
  EXPECT_EQ(silu(x).value()(3), 200);
  EXPECT_EQ(gelu(x).value()(3), 200);
  EXPECT_EQ(gelu(x, xgrad::Gelu::tanh).value()(3), 200);
  EXPECT_EQ(abs(x).value(), (Array<float>{inf, inf, 200, 200}));
  EXPECT_EQ(reciprocal(x).value()(1), 0);
  EXPECT_EQ(rsqrt(x).value()(1), 0);
  for (const Variable<float>& y : {sigmoid(x), tanh(x), erf(x), softplus(x)}) {
    for (const Array<float>& dx : both_gradients(y, x)) {
      const float above = y.op() == std::string("softplus") ? 1 : 0;
      EXPECT_EQ(dx(2), 0) << y.op();
      EXPECT_EQ(dx(3), above) << y.op();
    }
  }
}

TEST(ElementwiseTest, NanStaysNan) {
  const Variable<float> x(Array<float>{nan});
  for (const Variable<float>& y :
       {rsqrt(x), reciprocal(x), square(x), abs(x), sigmoid(x), silu(x), softplus(x), leaky_relu(x), elu(x),
        log_sigmoid(x), clamp(x, -1, 1), pow(x, 3)})
    EXPECT_TRUE(std::isnan(y.item())) << y.op();
}

TEST(ElementwiseTest, ReluHasNoGradientAtZero) {
  const Variable<float> x(Array<float>{-1, 0, 2}, true);
  sum(relu(x)).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{0, 0, 1}));
}

}  // namespace xgrad_tests::elementwise_rows
