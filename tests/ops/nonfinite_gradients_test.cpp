// Gradients where the chain rule says 0 although an infinity or a nan stands beside, by the plain backward
// and by the recorded one.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <xgrad/xgrad.hpp>

namespace nonfinite_gradients_test {

using xgrad::Array;
using xgrad::Ids;
using xgrad::Mask;
using xgrad::Variable;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The gradient of `loss` for x, plain and recorded, which must be the same.
template <class Loss>
Array<double> gradient(const Array<double>& at, const Loss& loss) {
  const Variable<double> x(at, true);
  const Array<double> plain = xgrad::grad(loss(x), {x})[0].value();
  const Array<double> recorded = xgrad::grad(loss(x), {x}, {.create_graph = true})[0].value();
  EXPECT_EQ(plain.shape(), recorded.shape());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double a = plain.data()[i], b = recorded.data()[i];
    EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= 1e-14)
        << i << ": " << a << ", " << b;
  }
  return plain;
}

TEST(EdgeGradientsTest, TheLosingOperandGetsNothingOfAnInfiniteGradient) {
  // At 0 the slope of sqrt is infinite.
  const auto above = [](const Variable<double>& x) { return sum(sqrt(maximum(x, 0.0))); };
  EXPECT_EQ(gradient({-1.0, 4.0}, above), (Array<double>{0.0, 0.25}));
  const auto below = [](const Variable<double>& x) { return sum(sqrt(-minimum(x, 0.0))); };
  EXPECT_EQ(gradient({1.0, -4.0}, below), (Array<double>{0.0, -0.25}));
  const auto column = [](const Variable<double>& x) {
    return sum(sqrt(maximum(reshape(x, {2, 1}), Variable<double>(xt::zeros<double>({3})))));
  };
  EXPECT_EQ(gradient({-1.0, 4.0}, column), (Array<double>{0.0, 0.75}));
}

TEST(EdgeGradientsTest, NorDoesItOfHigherDerivatives) {
  const Variable<double> x(-1.0, true);
  const Variable<double> first = xgrad::grad(sqrt(maximum(x, 0.0)), {x}, {.create_graph = true})[0];
  const Variable<double> second = xgrad::grad(first, {x}, {.create_graph = true, .allow_unused = true})[0];
  ASSERT_TRUE(!second.defined() || second.item() == 0);
  const Variable<double> y(9.0, true);
  const Variable<double> dy = xgrad::grad(sqrt(maximum(y, 0.0)), {y}, {.create_graph = true})[0];
  EXPECT_NEAR(xgrad::grad(dy, {y})[0].item(), -0.25 / 27, 1e-15);
}

TEST(EdgeGradientsTest, WhatIsNotTheExtremeGetsNothingOfAnInfiniteGradient) {
  const auto largest = [](const Variable<double>& x) { return sum(sqrt(amax(x, 1))); };
  EXPECT_EQ(gradient({{-1.0, 4.0}, {-2.0, 0.0}}, largest), (Array<double>{{0.0, 0.25}, {0.0, infinity}}));
  const auto smallest = [](const Variable<double>& x) { return sum(sqrt(amin(x, 1))); };
  EXPECT_EQ(gradient({{9.0, 4.0}, {2.0, 0.0}}, smallest), (Array<double>{{0.0, 0.25}, {0.0, infinity}}));
}

TEST(EdgeGradientsTest, WhatWasDroppedGetsNothingOfAnInfiniteGradient) {
  xgrad::manual_seed(3);
  const Variable<double> x(xt::ones<double>({64}), true);
  const Variable<double> y = dropout(x, 0.5);
  const Array<double> dx = xgrad::grad(sum(sqrt(y)), {x})[0].value();
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const bool is_dropped = y.value()(i) == 0;
    dropped += is_dropped;
    EXPECT_DOUBLE_EQ(dx(i), is_dropped ? 0 : 1 / std::sqrt(2.0));
  }
  EXPECT_GT(dropped, 0u);
}

TEST(EdgeGradientsTest, IgnoredTargetsLeaveNothing) {
  const auto loss = [](const Variable<double>& x) { return cross_entropy(x, Ids{-100, -100}); };
  EXPECT_TRUE(std::isnan(loss(Variable<double>(xt::ones<double>({2, 3}))).item()));
  EXPECT_EQ(gradient({{1.0, 2.0, 3.0}, {0.0, -1.0, 5.0}}, loss), (Array<double>{xt::zeros<double>({2, 3})}));
}

TEST(EdgeGradientsTest, AnIgnoredRowMayHoldAnything) {
  const Array<double> rows{{1.0, 2.0, 3.0}, {nan, -infinity, infinity}};
  for (const double smoothing : {0.0, 0.1}) {
    const auto loss = [&](const Variable<double>& x) {
      return cross_entropy(x, Ids{1, -100}, {.label_smoothing = smoothing});
    };
    EXPECT_TRUE(std::isfinite(loss(Variable<double>(rows)).item()));
    const Array<double> dx = gradient(rows, loss);
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_TRUE(std::isfinite(dx(0, c)));
      EXPECT_EQ(dx(1, c), 0);
    }
  }
}

/// q, k and v of one sequence of three, and a mask that leaves the first query without a key and hides the
/// last key from all.
struct Attention {
  Array<double> q{{0.1, 0.2}, {0.3, -0.4}, {0.5, 0.6}}, k{{0.7, 0.1}, {-0.2, 0.3}, {0.4, 0.9}},
      v{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}};
  Mask allowed{{false, false, false}, {true, true, false}, {true, false, false}};
};

TEST(EdgeGradientsTest, AQueryWithoutAKeyIsUntouchedByHiddenKeysAndValues) {
  Attention a;
  a.k(2, 0) = nan, a.k(2, 1) = infinity;
  const auto of_q = [&](const Variable<double>& q) {
    const Variable<double> y = scaled_dot_product_attention(q, Variable<double>(a.k), Variable<double>(a.v),
                                                            xgrad::AttentionMask<double>(a.allowed));
    EXPECT_EQ(y.value()(0, 0), 0);
    EXPECT_EQ(y.value()(0, 1), 0);
    return sum(slice(y, 0, 0, 1) * 3);
  };
  const Array<double> dq = gradient(a.q, of_q);
  EXPECT_EQ(dq(0, 0), 0);
  EXPECT_EQ(dq(0, 1), 0);

  Attention b;
  b.v(2, 0) = nan, b.v(1, 1) = infinity;
  b.allowed = Mask{{false, false, false}};
  const auto of_all = [&](const Variable<double>& q) {
    return sum(scaled_dot_product_attention(q, Variable<double>(b.k), Variable<double>(b.v),
                                            xgrad::AttentionMask<double>(b.allowed)));
  };
  EXPECT_EQ(of_all(Variable<double>(b.q)).item(), 0);
  EXPECT_EQ(gradient(b.q, of_all), (Array<double>{xt::zeros<double>({3, 2})}));
  const auto of_k = [&](const Variable<double>& k) {
    return sum(scaled_dot_product_attention(Variable<double>(b.q), k, Variable<double>(b.v),
                                            xgrad::AttentionMask<double>(b.allowed)));
  };
  EXPECT_EQ(gradient(b.k, of_k), (Array<double>{xt::zeros<double>({3, 2})}));
}

/// The second query has no key, and an infinite gradient: k and v have the gradients of the other two alone.
void expect_gradients_of_two_queries(double second_query, const xgrad::AttentionMask<double>& mask) {
  Attention a;
  a.q(1, 0) = second_query;
  const Variable<double> three(a.q), two(Array<double>{{0.1, 0.2}, {0.5, 0.6}}), k(a.k), v(a.v);
  const Variable<double> of_three(Array<double>{{1.0, -2.0}, {infinity, 3.0}, {0.5, 4.0}}),
      of_two(Array<double>{{1.0, -2.0}, {0.5, 4.0}});
  const xgrad::AttentionMask<double> mask_of_two(Mask{{true, true, false}, {true, true, true}});
  const auto expected = [&](const Variable<double>& k, const Variable<double>& v) {
    return sum(scaled_dot_product_attention(two, k, v, mask_of_two) * of_two);
  };
  const auto fused = [&](const Variable<double>& k, const Variable<double>& v) {
    return sum(scaled_dot_product_attention(three, k, v, mask) * of_three);
  };
  const auto composed = [&](const Variable<double>& k, const Variable<double>& v) {
    return sum(attention_with_weights(three, k, v, mask).output * of_three);
  };
  const auto check = [&](const auto& loss) {
    EXPECT_TRUE(xt::allclose(gradient(a.k, [&](const auto& x) { return loss(x, v); }),
                             gradient(a.k, [&](const auto& x) { return expected(x, v); }), 1e-14, 1e-15));
    EXPECT_TRUE(xt::allclose(gradient(a.v, [&](const auto& x) { return loss(k, x); }),
                             gradient(a.v, [&](const auto& x) { return expected(k, x); }), 1e-14, 1e-15));
  };
  check(fused);
  check(composed);
}

TEST(EdgeGradientsTest, KeysAndValuesAreUntouchedByAQueryWithoutAKey) {
  const Mask allowed{{true, true, false}, {false, false, false}, {true, true, true}};
  expect_gradients_of_two_queries(0.3, xgrad::AttentionMask<double>(allowed));
  expect_gradients_of_two_queries(nan, xgrad::AttentionMask<double>(allowed));
  const Array<double> bias = xt::where(allowed, 0.0, -infinity);
  expect_gradients_of_two_queries(0.3, xgrad::AttentionMask<double>(Variable<double>(bias)));
}

TEST(EdgeGradientsTest, DroppedWeightsPassNoInfiniteGradientOn) {
  const Attention a;
  for (const bool plain : {true, false}) {
    const auto loss = [&](const Variable<double>& q) {
      const xgrad::AttentionOptions options{.dropout_p = 1.0};
      const Variable<double> k(a.k), v(a.v);
      return sum((plain ? scaled_dot_product_attention(q, k, v, {}, options)
                        : attention_with_weights(q, k, v, {}, options).output) *
                 infinity);
    };
    EXPECT_EQ(gradient(a.q, loss), (Array<double>{xt::zeros<double>({3, 2})}));
  }
}

TEST(EdgeGradientsTest, AVarianceMayLeaveTheRange) {
  const Variable<float> y = layer_norm(Variable<float>(Array<float>{1e20F, -1e20F, 0.0F}), {3});
  EXPECT_FLOAT_EQ(y.value()(0), std::sqrt(1.5F));
  EXPECT_FLOAT_EQ(y.value()(1), -std::sqrt(1.5F));
  for (const double size : {1e200, 1e-200}) {
    for (const bool centred : {true, false}) {
      const auto loss = [&](const Variable<double>& x) {
        const Variable<double> norm =
            centred ? layer_norm(x, {3}, {}, {}, 0) : rms_norm(x, {3}, {}, {.eps = 0});
        return sum(norm * Variable<double>(Array<double>{1.0, 0.5, -2.0})) * size;
      };
      const Array<double> of_ones =
          gradient({1.0, -1.0, 3.0}, [&](const Variable<double>& x) { return loss(x) / size; });
      const Array<double> of_size = gradient({size, -size, 3 * size}, loss);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(of_size(i), of_ones(i), 1e-12) << size << ' ' << centred;
    }
  }
}

/// f(x) has the elements of x; it must be a result of its own.
template <class F>
void expect_own_result(const char* op, const F& f) {
  const Variable<double> x(xt::ones<double>({2, 3}) * 2.0, true);
  const Variable<double> y = f(x);
  EXPECT_FALSE(y.is_leaf()) << op;
  EXPECT_EQ(y.value(), x.value()) << op;
  const std::vector<Variable<double>> grads =
      xgrad::grad(sum(x * x) + sum(y * 3), {x, y}, {.retain_graph = true});
  EXPECT_EQ(grads[1].value(), (Array<double>{xt::ones<double>({2, 3}) * 3.0})) << op;
  EXPECT_EQ(grads[0].value(), (Array<double>{xt::ones<double>({2, 3}) * 7.0})) << op;
  const xgrad::NoGrad guard;
  EXPECT_FALSE(f(x).requires_grad()) << op;
}

TEST(EdgeGradientsTest, AnOpWithNothingToDoHasANodeOfItsOwn) {
  using V = Variable<double>;
  expect_own_result("squeeze", [](const V& x) { return squeeze(x, 0); });
  expect_own_result("squeeze", [](const V& x) { return squeeze(x); });
  expect_own_result("expand", [](const V& x) { return expand(x, {2, 3}); });
  expect_own_result("broadcast_to", [](const V& x) { return xgrad::broadcast_to(x, x.shape()); });
  expect_own_result("sum_to", [](const V& x) { return xgrad::sum_to(x, x.shape()); });
  expect_own_result("dropout", [](const V& x) { return dropout(x, 0.5, {.training = false}); });
  expect_own_result("dropout", [](const V& x) { return dropout(x, 0.0); });
  expect_own_result("einsum", [](const V& x) { return xgrad::einsum<double>("ij->ij", {x}); });
  const V scalar(2.0, true);
  for (const V& y : {transpose(scalar, 0, 0), squeeze(scalar, 0)}) {
    EXPECT_FALSE(y.is_leaf());
    EXPECT_EQ(y.item(), 2);
  }
}

TEST(EdgeGradientsTest, CopiesShareNothingWithTheirOperand) {
  const Variable<double> x(xt::ones<double>({2, 3}), true);
  const std::vector<Variable<double>> copies{squeeze(x, 0), expand(x, {2, 3}),
                                             xgrad::broadcast_to(x, x.shape()), xgrad::sum_to(x, x.shape()),
                                             xgrad::einsum<double>("ij", {x})};
  x.assign(xt::zeros<double>({2, 3}));
  for (const Variable<double>& y : copies) EXPECT_EQ(y.value(), (Array<double>{xt::ones<double>({2, 3})}));
}

}  // namespace nonfinite_gradients_test
