// What the graph promises: values, gradients, errors, grad modes, ops of one's own.

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/autograd/anomaly.hpp>
#include <xgrad/autograd/checkpoint.hpp>
#include <xgrad/autograd/grad_each.hpp>
#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/graph/detail/leaf.hpp>
#include <xgrad/graph/kernel_backward.hpp>
#include <xgrad/graph/record_many.hpp>
#include <xgrad/ops/attention/attention_with_weights.hpp>
#include <xgrad/ops/index/embedding.hpp>
#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/index/masked_fill.hpp>
#include <xgrad/ops/index/where.hpp>
#include <xgrad/ops/linalg/eigh.hpp>
#include <xgrad/ops/linalg/qr.hpp>
#include <xgrad/ops/linalg/svd.hpp>
#include <xgrad/ops/loss/cross_entropy.hpp>
#include <xgrad/ops/loss/losses.hpp>
#include <xgrad/ops/norm/softmax.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/pointwise/gated.hpp>
#include <xgrad/ops/product/linear.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include "expect_error.hpp"

namespace graph_test {

constexpr xgrad::Op inner_op("inner", {"x"}), looks_op("looks", {"x"}), told_op("told", {"x"}),
    cube_op("cube", {"x"}), exp_op("exp", {"x"}), total_op("total", {"x"}), short_op("short", {"x"}),
    wrong_op("wrong", {"x"}), fragile_op("fragile", {"x"}), nested_op("nested", {"x"}),
    inside_op("inside", {"x"}), two_op("two", {"x"});
constexpr xgrad::Op look_op("look", {"a", "b"}), powers_op("powers", {"a", "b"});

using xgrad::Array, xgrad::gradcheck, xgrad::gradgradcheck, xgrad::GraphError, xgrad::Grads,
    xgrad::IndexError, xgrad::Needs, xgrad::ShapeError, xgrad::Variable;
using xgrad_tests::message_of;
using V = Variable<float>;
using D = Variable<double>;

V vector(std::initializer_list<float> elements, bool requires_grad = true) {
  return V(Array<float>(elements), requires_grad);
}

Array<float> gradient(const V& y, const V& x) { return grad(y, {x})[0].value(); }

// Variables

// What a reference to a temporary's value would read after it, if the pool gave its memory to another value.
TEST(VariableTest, ValueAndShapeOfATemporaryOutliveIt) {
  static_assert(std::is_same_v<decltype(std::declval<V>().value()), Array<float>>);
  static_assert(std::is_same_v<decltype(std::declval<V>().shape()), xgrad::Shape>);
  static_assert(std::is_same_v<decltype(std::declval<const V&>().value()), const Array<float>&>);
  const V x = vector({1, 2, 3}, false);
  const Array<float>& sum = (x + 1.0f).value();
  const xgrad::Shape& shape = reshape(x, {3, 1}).shape();
  const auto view = xt::view((x + 3.0f).value(), 0);
  const V other = x * 0.0f;
  std::vector<float> elements;
  for (const float element : (x * 2.0f).value()) {
    elements.push_back(element);
    static_cast<void>(x * 7.0f);
  }
  EXPECT_EQ(elements, (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(sum, (Array<float>{2, 3, 4}));
  EXPECT_EQ(view(), 4.0f);
  EXPECT_EQ(shape, (xgrad::Shape{3, 1}));
}

TEST(VariableTest, IsMadeOfScalarsArraysAndExpressions) {
  EXPECT_EQ(V(2.5f).item(), 2.5f);
  EXPECT_EQ(V(2.5f).dimension(), 0u);
  const xt::xarray<float> plain{{1, 2}, {3, 4}};
  const V x(plain * 2, true);
  EXPECT_EQ(x.value(), (Array<float>{{2, 4}, {6, 8}}));
  EXPECT_EQ(xgrad::to_string(x.shape()), "(2, 2)");
  EXPECT_EQ(x.size(), 4u);
  EXPECT_EQ(x.shape(-1), 2u);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(x.is_leaf());
  EXPECT_STREQ(x.op(), "leaf");
  EXPECT_FALSE(V(plain).requires_grad());
}

TEST(VariableTest, IsMadeOfLists) {
  const Variable<double> x({1.0, 2.0}), y({1, 2, 3}, true), z({{1.0, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(x.value(), (Array<double>{1, 2}));
  EXPECT_EQ(y.value(), (Array<double>{1, 2, 3}));
  EXPECT_TRUE(y.requires_grad());
  EXPECT_EQ(z.value(), (Array<double>{{1, 2}, {3, 4}}));
  EXPECT_EQ((Variable<double>{2.0, true}.dimension()), 0u);
  EXPECT_EQ(Variable<double>{2.0}.dimension(), 0u);
}

TEST(VariableTest, CopiesAliasAndKeepOneNode) {
  const V x = vector({1, 2});
  V copy = x;
  const V moved = std::move(copy);
  sum(moved * 3.0).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{3, 3}));
  moved.assign(Array<float>{5, 6});
  EXPECT_EQ(x.value(), (Array<float>{5, 6}));
}

TEST(VariableTest, OperatorsTakeNumbersAndExpressions) {
  const V x = vector({1, 2, 4});
  EXPECT_EQ((x * 2.0).value(), (Array<float>{2, 4, 8}));
  EXPECT_EQ((2 * x + 1 - x / 2).value(), (Array<float>{2.5, 4, 7}));
  EXPECT_EQ((1.0 - x).value(), (Array<float>{0, -1, -3}));
  EXPECT_EQ((4 / x).value(), (Array<float>{4, 2, 1}));
  EXPECT_EQ((-x).value(), (Array<float>{-1, -2, -4}));
  const xt::xarray<float> e{1, 10, 100};
  EXPECT_EQ((x * e).value(), (Array<float>{1, 20, 400}));
  EXPECT_EQ((e * x).value(), (Array<float>{1, 20, 400}));
  EXPECT_EQ((x + e * 2).value(), (Array<float>{3, 22, 204}));
  EXPECT_EQ((e - x).value(), (Array<float>{0, 8, 96}));
  EXPECT_EQ((e / x).value(), (Array<float>{1, 5, 25}));
  EXPECT_EQ(gradient(sum(e * x), x), (Array<float>{1, 10, 100}));
}

TEST(VariableTest, ResultsNameTheirOp) {
  const V x = vector({1, 2});
  EXPECT_STREQ((x * x).op(), "mul");
  EXPECT_FALSE((x * x).is_leaf());
}

TEST(VariableTest, BadUsesAreRefused) {
  const V undefined, x = vector({1, 2}), y = x * x, fixed = vector({1, 2}, false);
  EXPECT_FALSE(undefined.defined());
  EXPECT_EQ(message_of<GraphError>([&] { undefined.value(); }),
            "value: the variable is undefined (moved from?)");
  EXPECT_EQ(message_of<GraphError>([&] { undefined.shape(); }),
            "value: the variable is undefined (moved from?)");
  EXPECT_EQ(message_of<GraphError>([&] { undefined + x; }), "value: the variable is undefined (moved from?)");
  EXPECT_EQ(message_of<GraphError>([&] { undefined.detach(); }),
            "detach: the variable is undefined (moved from?)");
  EXPECT_EQ(message_of<GraphError>([&] { undefined.grad(); }),
            "grad: the variable is undefined (moved from?)");
  EXPECT_EQ(message_of<GraphError>([&] { undefined.assign(x.value()); }),
            "assign: the variable is undefined (moved from?)");
  EXPECT_EQ(message_of<ShapeError>([&] { x.item(); }),
            "item: the variable must have one element, got shape (2)");
  EXPECT_EQ(message_of<IndexError>([&] { x.shape(1); }), "shape: axis 1 is out of range for x (2)");
  EXPECT_EQ(message_of<GraphError>([&] { x.grad(); }),
            "grad: the variable (2) has no gradient yet; call backward() on a result of it first");
  EXPECT_EQ(message_of<GraphError>([&] { fixed.grad(); }),
            "grad: the variable (2) does not require a gradient");
  EXPECT_EQ(message_of<GraphError>([&] { y.grad(); }),
            "grad: only leaves keep a gradient, this is the result of 'mul'; use xgrad::grad(y, {x})");
  EXPECT_EQ(message_of<GraphError>([&] { y.assign(x.value()); }),
            "assign: only a leaf can be changed in place, this is the result of 'mul'");
  EXPECT_EQ(message_of<ShapeError>([&] {
              x.assign(Array<float>{1, 2, 3});
            }),
            "assign: elements must have the variable's shape (2), got (3)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              x.assign(Array<float>{{1, 2}});
            }),
            "assign: elements must have the variable's shape (2), got (1, 2)");
}

// backward()

TEST(BackwardTest, NeedsASeedUnlessThereIsOneElement) {
  const V x = vector({1, 2});
  EXPECT_EQ(message_of<GraphError>([&] { (x * x).backward(); }),
            "backward: without a seed the variable must have one element, got shape (2)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              (x * x).backward(vector({1, 2, 3}, false));
            }),
            "backward: seed must have the variable's shape (2), got (3)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              (x * x).backward(V(Array<float>{{1, 2}}));
            }),
            "backward: seed must have the variable's shape (2), got (1, 2)");
  EXPECT_EQ(message_of<GraphError>([&] { grad(x * x, {x}); }),
            "grad: without a seed the variable must have one element, got shape (2)");
  EXPECT_FALSE(x.has_grad());
  (x * x).backward(vector({1, 10}, false));
  EXPECT_EQ(x.grad().value(), (Array<float>{2, 40}));
}

TEST(BackwardTest, NeedsAGraph) {
  EXPECT_EQ(message_of<GraphError>([] { V().backward(); }),
            "backward: the variable is undefined (moved from?)");
  EXPECT_EQ(message_of<GraphError>([] { V(1.0f).backward(); }),
            "backward: the variable () has no graph: nothing it was computed from requires a gradient");
  EXPECT_EQ(message_of<GraphError>([] { grad(V(), {V(1.0f, true)}); }),
            "grad: the variable is undefined (moved from?)");
}

TEST(BackwardTest, OfALeafItselfIsItsSeed) {
  const V x(3.0f, true);
  x.backward();
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(BackwardTest, ASecondTimeNeedsTheGraphRetained) {
  const V x(3.0f, true);
  const V y = x * x;
  y.backward({.retain_graph = true});
  y.backward();
  EXPECT_EQ(x.grad().item(), 12);
  const std::string released =
      "backward: the graph through 'mul' was released by an earlier backward; pass retain_graph there to go "
      "through it again, or detach() what is carried over";
  EXPECT_EQ(message_of<GraphError>([&] { y.backward(); }), released);
  EXPECT_EQ(message_of<GraphError>([&] { grad(exp(y), {x}); }), released);
  EXPECT_EQ(message_of<GraphError>([&] { exp(y).backward(); }), released);
  EXPECT_EQ(x.grad().item(), 12);
}

TEST(BackwardTest, AccumulatesOverCallsAndGraphs) {
  const V x = vector({1, 2});
  sum(x * x).backward();
  const V first = x.grad();
  sum(x * 3.0).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{5, 7}));
  EXPECT_EQ(first.value(), (Array<float>{2, 4})) << "a gradient that the user holds must not change";
  x.zero_grad();
  EXPECT_FALSE(x.has_grad());
  sum(x * 3.0).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{3, 3}));
}

TEST(BackwardTest, TheGradientOfALeafCanBeSet) {
  const V x = vector({1, 2});
  V gradient = vector({3, 4});
  x.set_grad(gradient * 1.0);
  EXPECT_EQ(x.grad().value(), (Array<float>{3, 4}));
  EXPECT_FALSE(x.grad().requires_grad());
  sum(x * 2.0).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{5, 6}));

  x.set_grad(gradient);
  sum(x * 2.0).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{5, 6}));
  EXPECT_EQ(gradient.value(), (Array<float>{3, 4})) << "the gradient has an array of its own";

  const float* elements = gradient.value().data();
  x.set_grad(std::move(gradient));
  EXPECT_EQ(xgrad::detail::grad_of_leaf(x).value().data(), elements)
      << "what nobody else holds is not copied";

  EXPECT_EQ(message_of<GraphError>([&] {
              (x * 2.0).set_grad(V(Array<float>{1, 2}));
            }),
            "set_grad: only a leaf that requires a gradient keeps one, this is the result of 'mul'");
  EXPECT_EQ(message_of<GraphError>([&] {
              V(Array<float>{1, 2}).set_grad(V(Array<float>{1, 2}));
            }),
            "set_grad: only a leaf that requires a gradient keeps one, this variable (2) requires none");
  EXPECT_EQ(message_of<GraphError>([&] { V().set_grad(x); }),
            "set_grad: the variable is undefined (moved from?)");
  EXPECT_EQ(message_of<GraphError>([&] { x.set_grad(V()); }),
            "set_grad: the gradient must be defined, got an undefined one; zero_grad() clears it");
  EXPECT_EQ(message_of<ShapeError>([&] { x.set_grad(V(1.0f)); }),
            "set_grad: the gradient must have the variable's shape (2), got ()");
  EXPECT_EQ(message_of<ShapeError>([&] {
              x.set_grad(V(Array<float>{{1, 2}}));
            }),
            "set_grad: the gradient must have the variable's shape (2), got (1, 2)");
}

TEST(BackwardTest, WalksDiamonds) {
  const V x(2.0f, true);
  const V a = x * x, b = a * 3.0, c = exp(a * 0.0);
  (b * c).backward();
  EXPECT_EQ(x.grad().item(), 12);
}

TEST(BackwardTest, WalksUnevenDiamonds) {
  const V x(2.0f, true);
  const V y = x * x;
  V longer = y;
  for (int i = 0; i < 10; ++i) longer = longer + 1.0;
  (longer * y + x).backward();  // y^2 + 10 y + x
  EXPECT_EQ(x.grad().item(), 4 * 8 + 10 * 4 + 1);
}

TEST(BackwardTest, VisitsANodeOnceHoweverManyPathsLeadThere) {
  const D x(1.0, true);
  D y = x;
  for (int i = 0; i < 60; ++i) y = y + y;
  y.backward();
  EXPECT_EQ(x.grad().item(), std::pow(2.0, 60));
  const D u(1.0, true);
  D a = u, b = u;
  for (int i = 0; i < 40; ++i) {
    const D next = a + b;
    a = b;
    b = next;
  }
  b.backward();
  EXPECT_EQ(u.grad().item(), 267914296);  // the 42nd Fibonacci number
}

TEST(BackwardTest, TheSameInputTwiceGetsBothGradients) {
  const V x = vector({2, 3});
  (x * x).backward(vector({1, 1}, false));
  EXPECT_EQ(x.grad().value(), (Array<float>{4, 6}));
  EXPECT_EQ(gradient(sum(xgrad::cat({x, x, x})), x), (Array<float>{3, 3}));
}

TEST(BackwardTest, ConstantsGetNothing) {
  const V x = vector({1, 2}), c = vector({3, 4}, false);
  sum(x * c).backward();
  EXPECT_FALSE(c.has_grad());
  EXPECT_EQ(x.grad().value(), (Array<float>{3, 4}));
}

TEST(BackwardTest, LeavesNeverShareTheArrayOfAGradient) {
  const V a = vector({1, 2}), b = vector({3, 4}), seed = vector({1, 1}, false);
  (a + b).backward(seed);
  a.grad().assign(Array<float>{9, 9});
  EXPECT_EQ(b.grad().value(), (Array<float>{1, 1}));
  EXPECT_EQ(seed.value(), (Array<float>{1, 1}));
  b.grad().assign(Array<float>{7, 7});
  EXPECT_EQ(seed.value(), (Array<float>{1, 1}));
  (a + b).backward(seed);
  EXPECT_EQ(a.grad().value(), (Array<float>{10, 10}));
  EXPECT_EQ(b.grad().value(), (Array<float>{8, 8}));
  EXPECT_EQ(seed.value(), (Array<float>{1, 1}));
}

TEST(BackwardTest, ALeafAsItsOwnResultDoesNotShareTheSeed) {
  const V x = vector({1, 2}), seed = vector({1, 1}, false);
  x.backward(seed);
  x.grad().assign(Array<float>{9, 9});
  EXPECT_EQ(seed.value(), (Array<float>{1, 1}));
}

TEST(BackwardTest, ASavedValueIsNeverHandedOutAsAGradient) {
  const V a = vector({1, 2}), b = vector({3, 4});
  const V y = a * b;
  y.backward(vector({1, 1}, false), {.retain_graph = true});
  a.grad().assign(Array<float>{9, 9});
  EXPECT_EQ(b.value(), (Array<float>{3, 4}));
}

// grad()

TEST(GradTest, LeavesTheLeavesAlone) {
  const V x = vector({1, 2});
  sum(x * x).backward();
  EXPECT_EQ(gradient(sum(x * x * x), x), (Array<float>{3, 12}));
  EXPECT_EQ(x.grad().value(), (Array<float>{2, 4}));
}

TEST(GradTest, OfIntermediateResults) {
  const V x(2.0f, true);
  const V y = x * x, z = exp(y * 0.0) * y;
  const std::vector<V> grads = grad(z, {y, x, z}, {.retain_graph = true});
  EXPECT_EQ(grads[0].item(), 1);
  EXPECT_EQ(grads[1].item(), 4);
  EXPECT_EQ(grads[2].item(), 1);
  EXPECT_FALSE(x.has_grad());
}

TEST(GradTest, OfAnIntermediateResultReleasesNothingBelowIt) {
  const V x(2.0f, true);
  const V y = x * x, z = y * y;
  EXPECT_EQ(grad(z, {y})[0].item(), 8);
  y.backward();
  EXPECT_EQ(x.grad().item(), 4);
}

TEST(GradTest, TheSameInputMayBeAskedForTwice) {
  const V x(2.0f, true);
  const std::vector<V> grads = grad(x * x, {x, x});
  EXPECT_EQ(grads[0].item(), 4);
  EXPECT_EQ(grads[1].item(), 4);
}

TEST(GradTest, UnusedInputsAreAnErrorUnlessAllowed) {
  const V x = vector({1, 2}), other = vector({1, 2, 3}), late = x * x;
  EXPECT_EQ(message_of<GraphError>([&] {
              grad(sum(x), {x, other});
            }),
            "grad: the output does not depend on input 1 (3); pass allow_unused to get an undefined gradient "
            "for it");
  EXPECT_EQ(message_of<GraphError>([&] { grad(sum(x), {late}); }),
            "grad: the output does not depend on input 0 (2); pass allow_unused to get an undefined gradient "
            "for it");
  const std::vector<V> grads = grad(sum(x), {x, other}, {.allow_unused = true});
  EXPECT_TRUE(grads[0].defined());
  EXPECT_FALSE(grads[1].defined());
  EXPECT_EQ(message_of<GraphError>([&] { grad(sum(x), {V(1.0f)}); }),
            "grad: input 0 does not require a gradient, or is frozen");
  EXPECT_EQ(message_of<GraphError>([&] { grad(sum(x), {V()}); }),
            "grad: input 0 does not require a gradient, or is frozen");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { grad(sum(x), {}); }), "grad: inputs must not be empty");
}

// Gradients of gradients

TEST(CreateGraphTest, GivesHigherDerivatives) {
  const D x(2.0, true);
  D y = x * x * x;
  const double expected[] = {12, 12, 6};
  for (const double derivative : expected) {
    y = grad(y, {x}, {.create_graph = true})[0];
    EXPECT_EQ(y.item(), derivative);
  }
  D z = exp(x);
  for (int order = 0; order < 8; ++order) z = grad(z, {x}, {.create_graph = true})[0];
  EXPECT_NEAR(z.item(), std::exp(2.0), 1e-12);
}

TEST(CreateGraphTest, GradientsEnterALoss) {
  const D x(Array<double>{1, 2}, true);
  const D dx = grad(sum(x * x * x), {x}, {.create_graph = true})[0];
  sum(dx * dx).backward();  // sum 9 x^4
  EXPECT_EQ(x.grad().value(), (Array<double>{36, 36 * 8}));
}

TEST(CreateGraphTest, BackwardFillsGradientsThatHaveAGraph) {
  const D x(2.0, true);
  (x * x * x).backward({.create_graph = true});
  const D first = x.grad();
  EXPECT_TRUE(first.requires_grad());
  x.zero_grad();
  first.backward();
  EXPECT_EQ(x.grad().item(), 12);
  x.zero_grad();
}

TEST(CreateGraphTest, OfTheSeed) {
  const D x(3.0, true), seed(2.0, true);
  const D dx = grad(x * x, {x}, {.seed = seed, .create_graph = true})[0];
  EXPECT_EQ(grad(dx, {seed})[0].item(), 6);
  EXPECT_FALSE(grad(x * x, {x}, {.seed = seed})[0].requires_grad());
  const D looks = xgrad::record<double>(looks_op, x * 1.0, xgrad::Inputs(x), xgrad::Saved(),
                                        [](const D& dy, xgrad::Needs) -> xgrad::Grads<double, 1> {
                                          EXPECT_FALSE(dy.requires_grad());
                                          return {dy};
                                        });
  looks.backward(seed);
  EXPECT_FALSE(x.grad().requires_grad());
}

/// Of the two gradients that meet in x one has a history, and the sum keeps it, whichever comes first.
TEST(CreateGraphTest, ASumOfGradientsKeepsTheHistoryOfEither) {
  for (const bool square_last : {false, true}) {
    const D x(5.0, true);
    const auto f = [&](const D& at) {
      const D first = square_last ? at * 3.0 : at * at;
      return first + (square_last ? at * at : at * 3.0);
    };
    const D dx = grad(f(x), {x}, {.create_graph = true})[0];
    EXPECT_EQ(dx.item(), 13);
    EXPECT_EQ(grad(dx, {x})[0].item(), 2);
    const D of_result = grad(f(x * 1.0), {x}, {.create_graph = true})[0];
    EXPECT_EQ(of_result.item(), 13);
    EXPECT_EQ(grad(of_result, {x})[0].item(), 2);
  }
}

TEST(CreateGraphTest, WhatIsAddedToAPlainGradientKeepsItsHistory) {
  const D x(5.0, true);
  (x * x).backward();
  (x * x).backward({.create_graph = true});
  const D dx = x.grad();
  EXPECT_EQ(dx.item(), 20);
  EXPECT_EQ(grad(dx, {x})[0].item(), 2);
  x.zero_grad();
}

TEST(CreateGraphTest, AGradientThatIsHeldDoesNotChangeWhenMoreComes) {
  const D x(Array<double>{1, 2}, true);
  const D y = x * 3.0, z = x * x;
  D seen;
  const D told = xgrad::record<double>(told_op, y.detach() * 1.0, xgrad::Inputs(y), xgrad::Saved(),
                                       [&seen](D dy, Needs) -> Grads<double, 1> {
                                         seen = dy;
                                         return {dy};
                                       });
  sum(told + y + z).backward();
  EXPECT_EQ(seen.value(), (Array<double>{1, 1}));
  EXPECT_EQ(x.grad().value(), (Array<double>{8, 10}));
}

// Changes in place

TEST(AssignTest, OfASavedValueMakesBackwardRefuse) {
  const V x = vector({1, 2}), y = vector({3, 4});
  const V z = sum(x * y);
  y.assign(Array<float>{5, 6});
  EXPECT_EQ(message_of<GraphError>([&] { z.backward(); }),
            "backward: value 1 that 'mul' saved, of shape (2), was changed in place after it was used; "
            "assign() only after backward()");
  EXPECT_FALSE(x.has_grad());
}

TEST(AssignTest, OfAValueThatWasNotSavedIsFine) {
  const V x = vector({1, 2}), y = vector({3, 4});
  const V z = sum(x + y);
  y.assign(Array<float>{5, 6});
  z.backward();
  EXPECT_EQ(y.grad().value(), (Array<float>{1, 1}));
}

TEST(AssignTest, AfterBackwardIsFine) {
  const V x = vector({1, 2});
  for (int step = 0; step < 3; ++step) {
    x.zero_grad();
    sum(x * x).backward();
    x.assign(Array<float>(x.value() - 0.25f * x.grad().value()));
  }
  EXPECT_EQ(x.value(), (Array<float>{0.125, 0.25}));
}

TEST(AssignTest, ThroughADetachedHandleIsNoticed) {
  const V x = vector({1, 2});
  const V y = sum(x * x);
  x.detach().assign(Array<float>{5, 6});
  EXPECT_NE(message_of<GraphError>([&] { y.backward(); }).find("was changed in place"), std::string::npos);
}

TEST(AssignTest, OfASavedResultIsNoticed) {
  const V x = vector({1, 2});
  const V y = exp(x);
  y.detach().assign(Array<float>{5, 6});
  EXPECT_EQ(message_of<GraphError>([&] { sum(y).backward(); }),
            "backward: value 0 that 'exp' saved, of shape (2), was changed in place after it was used; "
            "assign() only after backward()");
}

// Values that are computed again

/// (h (3, 4), weight (2, 4)), whose numbers are of both signs.
std::pair<V, V> activation_and_weight() {
  return {V(Array<float>{{-2, -1, -0.5, 0}, {0.25, 0.5, 1, 2}, {3, -3, 0.75, -0.75}}, true),
          V(Array<float>{{1, -2, 3, -4}, {0.5, 0.25, -0.5, 2}}, true)};
}

TEST(RecomputedTest, ValuesLeaveMemoryAndGradientsHaveTheSameBits) {
  const auto [h, weight] = activation_and_weight();
  const auto check = [&, w = weight](const V& y) {
    const V z = linear(y, w);
    EXPECT_TRUE(xgrad::detail::Access<float>::value(y)->refs.unique());
    const V plain = linear(y.detach(), w);
    EXPECT_EQ(gradient(sum(z * z), w), gradient(sum(plain * plain), w));
  };
  check(gelu(h));
  check(gelu(h, xgrad::Gelu::tanh));
  for (const xgrad::Gate gate : {xgrad::Gate::sigmoid, xgrad::Gate::relu, xgrad::Gate::silu,
                                 xgrad::Gate::gelu, xgrad::Gate::gelu_tanh})
    check(gated(h, h + 1.0F, gate));
}

TEST(RecomputedTest, HaveSecondDerivatives) {
  xgrad::manual_seed(1);
  const D h(xgrad::normal<double>({3, 4}), true), weight(xgrad::normal<double>({2, 4}), true);
  EXPECT_TRUE(xgrad::gradgradcheck([](const std::vector<D>& x) { return tanh(linear(gelu(x[0]), x[1])); },
                                   {h, weight}));
}

/// The first backward releases the graph of y.
TEST(RecomputedTest, StayWhenTheOpThatComputesThemIsReleased) {
  const auto [h, weight] = activation_and_weight();
  V y = gelu(h * 1.0F);
  const V before = sum(linear(y, weight));
  sum(y).backward();
  const V others[] = {h * 7.0F, h * 8.0F, h * 9.0F};  // in what memory is left
  const V after = sum(linear(y, weight));
  const Array<float> expected = gradient(sum(linear(y.detach(), weight)), weight);
  y = V();
  EXPECT_EQ(grad(before, {weight})[0].value(), expected);
  EXPECT_EQ(grad(after, {weight})[0].value(), expected);
  y = gelu(h * 1.0F);
  sum(y).backward();
  const V more[] = {h * 7.0F, h * 8.0F, h * 9.0F};
  EXPECT_EQ(grad(sum(linear(y, weight)), {weight})[0].value(), expected);
}

TEST(RecomputedTest, AreThoseOfTheForwardAfterChangesInPlace) {
  const auto [h, weight] = activation_and_weight();
  const V y = gelu(h);
  y.detach().assign(Array<float>(y.value() * 2.0F));
  const V z = sum(linear(y, weight));
  EXPECT_EQ(grad(z, {weight})[0].value(), gradient(sum(linear(y.detach(), weight)), weight));
  const V again = sum(linear(gelu(h), weight));
  h.assign(Array<float>(h.value() + 1.0F));
  EXPECT_EQ(message_of<GraphError>([&, w = weight] { grad(again, {w}); }),
            "backward: value 0 that 'gelu' saved, of shape (3, 4), was changed in place after it was used; "
            "assign() only after backward()");
}

TEST(DetachTest, CutsTheGraph) {
  const V x = vector({1, 2});
  const V y = (x * x).detach();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_leaf());
  EXPECT_EQ(gradient(sum(x * y), x), (Array<float>{1, 4}));
}

// Grad modes

TEST(GradModeTest, NestsAndIsRestored) {
  const V x = vector({1, 2});
  EXPECT_TRUE(xgrad::grad_enabled());
  {
    const xgrad::NoGrad off;
    EXPECT_FALSE(xgrad::grad_enabled());
    EXPECT_FALSE((x * x).requires_grad());
    {
      const xgrad::EnableGrad on_again;
      EXPECT_TRUE((x * x).requires_grad());
      const xgrad::NoGrad off_again;
      EXPECT_FALSE((x * x).requires_grad());
    }
    EXPECT_FALSE(xgrad::grad_enabled());
  }
  EXPECT_TRUE((x * x).requires_grad());
}

TEST(GradModeTest, IsRestoredAfterExceptions) {
  try {
    const xgrad::NoGrad guard;
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(xgrad::grad_enabled());
  const V x = vector({1, 2});
  message_of<ShapeError>([&] { x.backward(vector({1}, false)); });
  EXPECT_TRUE(xgrad::grad_enabled());
}

// Anomalies

std::string anomaly(const std::function<void()>& f) {
  const xgrad::DetectAnomaly guard;
  return message_of<xgrad::AnomalyError>(f);
}

TEST(AnomalyTest, NamesTheFirstOpWhoseResultIsNan) {
  const V x = vector({1, -2, 3});
  EXPECT_EQ(anomaly([&] { sum(exp(log(x)) * 2.0f); }),
            "detect_anomaly: the result (3) of 'log' is nan at (1), and no input is");
  const xgrad::NoGrad guard;
  EXPECT_EQ(anomaly([&] { sum(exp(log(x)) * 2.0f); }),
            "detect_anomaly: the result (3) of 'log' is nan at (1), and no input is");
}

TEST(AnomalyTest, SaysWhichInputsAreNanAlready) {
  const float nan = std::nanf("");
  const V bad = vector({1, nan}), good = vector({1, 2});
  EXPECT_EQ(anomaly([&] { good* bad; }),
            "detect_anomaly: the result (2) of 'mul' is nan at (1); so was input 1 (2) at (1)");
  EXPECT_EQ(anomaly([&] {
              xgrad::cat({bad, good, bad});
            }),
            "detect_anomaly: the result (6) of 'cat' is nan at (1); so was input 0 (2) at (1), input 2 "
            "(2) at (1)");
}

TEST(AnomalyTest, NamesTheOpWhoseBackwardMakesANan) {
  const V x = vector({4, 0, 1});
  EXPECT_EQ(anomaly([&] {
              sum(sqrt(x) * vector({1, 0, 1}, false)).backward();
            }),
            "detect_anomaly: the gradient (3) that 'sqrt' passes back to input 0 is nan at (1); the "
            "derivative of 'sqrt' is not finite at 0");
  EXPECT_FALSE(x.has_grad());
}

TEST(AnomalyTest, SaysWhereAFactorizationHasNoDerivative) {
  const auto passed_back = [](const char* op, const char* where) {
    return std::string("detect_anomaly: the gradient (2, 2) that '") + op +
           "' passes back to input 0 is nan at (0, 0); the derivative of '" + op + "' is not finite " + where;
  };
  const V same(Array<float>{{1, 0}, {0, 1}}, true), none(Array<float>{{1, 0}, {1, 0}}, true);
  const V seed(Array<float>{{1, 2}, {3, 4}});
  EXPECT_EQ(anomaly([&] { eigh(same).eigenvectors.backward(seed); }),
            passed_back("eigh", "through eigenvectors of equal eigenvalues"));
  EXPECT_EQ(anomaly([&] { svd(same).U.backward(seed); }),
            passed_back("svd", "through vectors of equal singular values, or of 0"));
  EXPECT_EQ(anomaly([&] { qr(none).Q.backward(seed); }),
            passed_back("qr", "where columns depend on each other"));
  EXPECT_EQ(anomaly([&] { sum(eigh(same).eigenvalues).backward(); }), "no exception");
}

TEST(AnomalyTest, NamesTheInputWhoseGradientIsNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const V a(Array<float>{{1, 2}, {inf, 3}}, true), b(Array<float>{{1, 2}, {3, 4}}, true);
  const V seed(Array<float>{{1, 1}, {0, 1}});
  const std::string text = "detect_anomaly: the gradient (2, 2) that 'mul' passes back to input ";
  EXPECT_EQ(anomaly([&] { (a * b).backward(seed); }), text + "1 is nan at (1, 0)");
  EXPECT_EQ(anomaly([&] { (b * a).backward(seed); }), text + "0 is nan at (1, 0)");
  EXPECT_EQ(anomaly([&] { (a.detach() * b).backward(seed); }), text + "1 is nan at (1, 0)");
  EXPECT_EQ(anomaly([&] { (a * b.detach()).backward(seed); }), "no exception");
  const D c(Array<double>{std::numeric_limits<double>::infinity()}, true), d(Array<double>{1}, true);
  EXPECT_EQ(anomaly([&] { (c * d).backward(D(Array<double>{0})); }),
            "detect_anomaly: the gradient (1) that 'mul' passes back to input 1 is nan at (0)");
}

TEST(AnomalyTest, InfinitiesAndUnguardedCodeAreLeftAlone) {
  const V x = vector({0, 1});
  EXPECT_EQ(anomaly([&] { exp(log(x)); }), "no exception");
  anomaly([&] { throw xgrad::AnomalyError("in the middle"); });
  EXPECT_TRUE(std::isnan(log(x - 1.0f).value()(0)));
}

TEST(AnomalyTest, NamesOpsThatNothingRecords) {
  const float nan = std::nanf("");
  const V bad(Array<float>{{1, nan}}), good(Array<float>{{1, 2}});
  const xgrad::Ids second{1}, first{0};
  const xgrad::Mask mask{false, true};
  const auto named = [](const char* op, const char* shape, const char* at, const char* input) {
    return std::string("detect_anomaly: the result ") + shape + " of '" + op + "' is nan at " + at +
           "; so was input " + input;
  };
  EXPECT_EQ(anomaly([&] { masked_fill(good, mask, nan); }),
            "detect_anomaly: the result (1, 2) of 'masked_fill' is nan at (0, 1), and no input is");
  EXPECT_EQ(anomaly([&] { where(mask, bad, good); }),
            named("where", "(1, 2)", "(0, 1)", "0 (1, 2) at (0, 1)"));
  EXPECT_EQ(anomaly([&] { index_select(bad, 1, second); }),
            named("index_select", "(1, 1)", "(0, 0)", "0 (1, 2) at (0, 1)"));
  EXPECT_EQ(anomaly([&] {
              gather(bad, 1, xgrad::Ids(xgrad::Shape{1, 1}, 1));
            }),
            named("gather", "(1, 1)", "(0, 0)", "0 (1, 2) at (0, 1)"));
  EXPECT_EQ(anomaly([&] { embedding(first, bad); }),
            named("embedding", "(1, 2)", "(0, 1)", "0 (1, 2) at (0, 1)"));
  EXPECT_EQ(anomaly([&] { cross_entropy(bad, first); }),
            named("cross_entropy", "()", "()", "0 (1, 2) at (0, 1)"));
  EXPECT_EQ(anomaly([&] { scaled_dot_product_attention(good, good, bad); }),
            named("scaled_dot_product_attention", "(1, 2)", "(0, 1)", "2 (1, 2) at (0, 1)"));
  EXPECT_EQ(anomaly([&] {
              index_select(bad, 1, first);
              masked_fill(bad, mask, 0);
            }),
            "no exception");
}

TEST(AnomalyTest, NamesTheOpThatWasCalled) {
  const V one = vector({3}), none(Array<float>::from_shape({0}));
  EXPECT_EQ(anomaly([&] { var(one); }),
            "detect_anomaly: the result () of 'var' is nan at (), and no input is");
  EXPECT_EQ(anomaly([&] { mean(none); }),
            "detect_anomaly: the result () of 'mean' is nan at (), and no input is");
  EXPECT_EQ(anomaly([&] { logsumexp(vector({std::nanf("")}), 0); }),
            "detect_anomaly: the result () of 'logsumexp' is nan at (); so was input 0 (1) at (0)");
}

TEST(AnomalyTest, WhatIsIgnoredRaisesNoAlarm) {
  const float inf = std::numeric_limits<float>::infinity();
  const V logits(Array<float>{{1, 2}, {-inf, 3}}, true), weight(Array<float>{0, 1});
  const xgrad::Ids target{1, -100};
  for (const V& class_weight : {V(), weight}) {
    EXPECT_EQ(anomaly([&] {
                const V loss = nll_loss(logits, target, {.weight = class_weight});
                EXPECT_EQ(loss.item(), -2);
                loss.backward();
              }),
              "no exception");
    EXPECT_EQ(logits.grad().value(), (Array<float>{{0, -1}, {0, 0}}));
    logits.zero_grad();
    for (const double smoothing : {0.0, 0.5}) {
      EXPECT_EQ(
          anomaly([&] {
            cross_entropy(logits, target, {.weight = class_weight, .label_smoothing = smoothing}).backward();
          }),
          "no exception");
      EXPECT_EQ(logits.grad().value()(1, 1), 0);
      logits.zero_grad();
    }
  }
  const V each = nll_loss(logits, target, {.reduction = xgrad::Reduction::none});
  EXPECT_FALSE(std::signbit(each.value()(1)));
}

TEST(GradModeTest, BackwardRecordsNothingUnlessAsked) {
  const V x = vector({1, 2});
  EXPECT_FALSE(grad(sum(x * x), {x})[0].requires_grad());
  const xgrad::NoGrad guard;
  const V y = [&] {
    const xgrad::EnableGrad record;
    return sum(x * x);
  }();
  EXPECT_TRUE(grad(y, {x}, {.create_graph = true})[0].requires_grad());
  EXPECT_FALSE(xgrad::grad_enabled());
}

TEST(GradModeTest, LeavesMadeUnderNoGradStillRequireTheirs) {
  const xgrad::NoGrad guard;
  EXPECT_TRUE(vector({1}).requires_grad());
}

// Ops of one's own

template <class T>
Variable<T> cubed(const Variable<T>& x) {
  Variable<T> y(x.value() * x.value() * x.value());
  return xgrad::record<T>(
      cube_op, std::move(y), xgrad::Inputs(x), xgrad::Saved(x),
      [](Variable<T> dy, Needs, Variable<T> x) -> Grads<T, 1> { return {dy * 3 * x * x}; });
}

TEST(RecordTest, AnOpOfOnesOwnPassesTheChecks) {
  const D x(Array<double>{{1, -2}, {0.5, 3}}, true);
  const auto f = [](const std::vector<D>& inputs) { return cubed(inputs[0]); };
  EXPECT_TRUE(gradcheck(f, {x}));
  EXPECT_TRUE(gradgradcheck(f, {x}));
  EXPECT_STREQ(cubed(x).op(), "cube");
  EXPECT_FALSE(cubed(x.detach()).requires_grad());
}

TEST(RecordTest, TheOutputCanBeSaved) {
  const auto f = [](const std::vector<D>& inputs) {
    return xgrad::record<double>(exp_op, D(xt::exp(inputs[0].value())), xgrad::Inputs(inputs[0]),
                                 xgrad::Saved(xgrad::Output()),
                                 [](D dy, Needs, D y) -> Grads<double, 1> { return {dy * y}; });
  };
  EXPECT_TRUE(gradcheck(f, {D(Array<double>{1, 2}, true)}));
  EXPECT_TRUE(gradgradcheck(f, {D(Array<double>{1, 2}, true)}));
}

TEST(RecordTest, AListOfInputs) {
  const auto total = [](const std::vector<D>& parts) {
    D y = parts[0].detach();
    for (std::size_t i = 1; i < parts.size(); ++i) y = y + parts[i].detach() * static_cast<double>(i + 1);
    return xgrad::record_list<double>(total_op, std::move(y), parts, [](D dy, Needs needs) {
      std::vector<D> grads(3);
      for (std::size_t i = 0; i < grads.size(); ++i) {
        if (needs[i]) grads[i] = dy * static_cast<double>(i + 1);
      }
      return grads;
    });
  };
  const D a(Array<double>{1, 2}, true), b(Array<double>{3, 4}, true), c(Array<double>{5, 6}, true);
  EXPECT_TRUE(gradcheck(total, {a, b, c}));
  EXPECT_TRUE(gradgradcheck(total, {a, b, c}));
  total({a, b.detach(), a}).backward(D(Array<double>{1, 1}));
  EXPECT_EQ(a.grad().value(), (Array<double>{4, 4}));
  EXPECT_FALSE(total({a.detach(), b.detach(), c.detach()}).requires_grad());
}

TEST(RecordTest, BackwardIsToldWhichGradientsAreNeededAndTheirShapes) {
  const V a = vector({1, 2}), b = vector({3, 4, 5});
  std::string seen;
  const auto op = [&seen](const V& x, const V& y) {
    return xgrad::record<float>(look_op, V(1.0f), xgrad::Inputs(x, y), xgrad::Saved(),
                                [&seen](V, Needs needs) -> Grads<float, 2> {
                                  for (std::size_t i = 0; i < 2; ++i)
                                    seen += needs[i] ? xgrad::to_string(needs.shape(i)) : "-";
                                  return {};
                                });
  };
  op(a, b).backward();
  op(a, b.detach()).backward();
  grad(op(a, b), {b}, {.allow_unused = true});
  EXPECT_EQ(seen, "(2)(3)(2)--(3)");
  EXPECT_FALSE(a.has_grad()) << "an undefined gradient is none";
}

TEST(RecordTest, TooFewGradientsAreRefused) {
  const V x(1.0f, true);
  const V y =
      xgrad::record_list<float>(short_op, V(1.0f), {x, x}, [](V, Needs) { return std::vector<V>{V(1.0f)}; });
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { y.backward(); }),
            "backward: 'short' must return 2 gradients, got 1");
}

TEST(RecordTest, AGradientOfAnotherShapeIsRefused) {
  const V x = vector({1, 2});
  const V y = xgrad::record<float>(wrong_op, V(1.0f), xgrad::Inputs(x), xgrad::Saved(),
                                   [](V, Needs) -> Grads<float, 1> {
                                     return {vector({1, 2, 3}, false)};
                                   });
  EXPECT_EQ(message_of<ShapeError>([&] { y.backward(); }),
            "backward: 'wrong' must return a gradient of shape (2) for input 0, got (3)");
  EXPECT_FALSE(x.has_grad());
}

TEST(RecordTest, AnExceptionInBackwardLeavesNoHalfCollectedGradients) {
  const V x = vector({1, 2}), w = vector({3, 4});
  bool failing = true;
  const V shared = x * w;
  const V fragile = xgrad::record<float>(fragile_op, shared.detach() * 1.0, xgrad::Inputs(shared),
                                         xgrad::Saved(), [&failing](V dy, Needs) -> Grads<float, 1> {
                                           if (failing) throw std::runtime_error("out of luck");
                                           return {dy};
                                         });
  const V y = sum(shared + fragile + w);
  const auto run = [&] { y.backward({.retain_graph = true}); };  // each at the same place in memory
  EXPECT_EQ(message_of<std::runtime_error>(run), "out of luck");
  EXPECT_TRUE(xgrad::grad_enabled());
  EXPECT_FALSE(x.has_grad());
  EXPECT_FALSE(w.has_grad());
  EXPECT_EQ(message_of<std::runtime_error>([&] { grad(y, {x}, {.retain_graph = true}); }), "out of luck");
  failing = false;
  EXPECT_EQ(message_of<std::runtime_error>(run), "no exception");
  EXPECT_EQ(x.grad().value(), (Array<float>{6, 8}));
  EXPECT_EQ(w.grad().value(), (Array<float>{3, 5}));
}

TEST(RecordTest, AnExceptionInForwardLeavesNothing) {
  const V x = vector({1, 2});
  EXPECT_NE(message_of<ShapeError>([&] { matmul(x * x, vector({1, 2, 3})); }), "no exception");
  sum(x * x).backward();
  EXPECT_EQ(x.grad().value(), (Array<float>{2, 4}));
}

TEST(RecordTest, ABackwardMayRunABackwardOfItsOwn) {
  const V x(3.0f, true);
  const V y = xgrad::record<float>(nested_op, V(x.item() * x.item()), xgrad::Inputs(x), xgrad::Saved(x),
                                   [](V dy, Needs, V x) -> Grads<float, 1> {
                                     const xgrad::EnableGrad guard;
                                     const V inner(x.value(), true);
                                     return {dy * grad(inner * inner, {inner})[0]};
                                   });
  (y * x).backward();
  EXPECT_EQ(x.grad().item(), 27);
}

/// An op whose backward runs `inside`, and hands on what it gets.
D with_inside(const D& x, std::function<void()> inside) {
  return record<double>(inside_op, x.detach() * 1.0, xgrad::Inputs(x), xgrad::Saved(),
                        [inside = std::move(inside)](D dy, Needs) -> Grads<double, 1> {
                          const xgrad::EnableGrad guard;
                          inside();
                          return {std::move(dy)};
                        });
}

/// Two results of one op: (x w, x x w), where the first is saved.
std::array<D, 2> powers(const D& x, const D& w) {
  return xgrad::record_many<double, 2>(
      powers_op, {D(x.value() * w.value()), D(x.value() * x.value() * w.value())}, xgrad::Inputs(x, w),
      xgrad::Attributes(), xgrad::Saved(x, w, xgrad::Output(0)),
      [](std::array<D, 2> dys, Needs needs, D x, D w, D xw) -> Grads<double, 2> {
        Grads<double, 2> grads;
        const auto add_to = [](D& sum, const D& more) { sum = sum.defined() ? sum + more : more; };
        if (dys[0].defined()) {
          if (needs[0]) add_to(grads[0], dys[0] * w);
          if (needs[1]) add_to(grads[1], dys[0] * x);
        }
        if (dys[1].defined()) {
          if (needs[0]) add_to(grads[0], dys[1] * xw * 2.0);
          if (needs[1]) add_to(grads[1], dys[1] * x * x);
        }
        return grads;
      });
}

TEST(RecordManyTest, EachResultHasItsGradient) {
  const D x(Array<double>{1.5, -2}, true), w(Array<double>{0.5, 3}, true);
  const std::vector<std::function<D(const std::vector<D>&)>> uses{
      [](const auto& at) { return powers(at[0], at[1])[0]; },
      [](const auto& at) { return powers(at[0], at[1])[1]; },
      [](const auto& at) {
        const auto [a, b] = powers(at[0], at[1]);
        return a * b + a * a + b;
      },
      [](const auto& at) {
        const auto [a, b] = powers(at[0], at[1]);
        const auto [c, d] = powers(b, a);
        return c * d * at[0];
      }};
  for (std::size_t i = 0; i < uses.size(); ++i) {
    EXPECT_TRUE(gradcheck(uses[i], {x, w})) << i;
    const auto second = gradgradcheck(uses[i], {x, w});
    EXPECT_TRUE(second) << i << ": " << second.worst;
    EXPECT_TRUE(gradgradcheck([&](const auto& at) { return uses[i]({at[0], w.detach()}); }, {x})) << i;
  }
  EXPECT_FALSE(powers(x.detach(), w.detach())[0].requires_grad());
  EXPECT_STREQ(powers(x, w)[1].op(), "powers");
}

TEST(RecordManyTest, ResultsAreResultsLikeAnyOther) {
  const D x(3.0, true), w(2.0, true);
  const std::array<D, 2> ab = powers(x, w);
  const D &a = ab[0], &b = ab[1];
  const std::vector<D> found = grad(a * b, {a, b, x}, {.retain_graph = true});
  EXPECT_EQ(found[0].item(), 18);
  EXPECT_EQ(found[1].item(), 6);
  EXPECT_EQ(found[2].item(), 18 * 2 + 6 * 12);
  EXPECT_EQ(grad(a + b, {w}, {.retain_graph = true})[0].item(), 12);
  std::vector<double> given(2);
  grad_each(a + b, {w, x}, [&](std::size_t place, const D& g) { given[place] = g.item(); },
            {.retain_graph = true});
  EXPECT_EQ(given, (std::vector<double>{12, 14}));
  a.backward();
  EXPECT_EQ(x.grad().item(), 2);
  EXPECT_EQ(
      message_of<GraphError>([&] { b.backward(); }),
      "backward: the graph through 'powers' was released by an earlier backward; pass retain_graph there to "
      "go through it again, or detach() what is carried over")
      << "the results share what is saved";
  EXPECT_NE(message_of<GraphError>([&] { grad(b, {x}); }).find("was released"), std::string::npos);
}

TEST(RecordManyTest, APassThatThrowsOrRunsInsideLeavesNothingBehind) {
  const D x(3.0, true), w(2.0, true);
  bool failing = true;
  const std::array<D, 2> ab = powers(x, w);
  const D &a = ab[0], &b = ab[1];
  const D fragile = with_inside(a, [&] {
    if (failing) throw std::runtime_error("out of luck");
    EXPECT_EQ(grad(a * b, {x}, {.retain_graph = true})[0].item(), 18 * 2 + 6 * 12);
  });
  const D y = b + fragile;
  EXPECT_EQ(message_of<std::runtime_error>([&] { y.backward({.retain_graph = true}); }), "out of luck");
  failing = false;
  EXPECT_EQ(grad(y, {x}, {.retain_graph = true})[0].item(), 14);
  y.backward();
  EXPECT_EQ(x.grad().item(), 14);
  EXPECT_EQ(w.grad().item(), 12);
}

D cube_by_arrays(const D& x) {
  return record<double>(cube_op, D(x.value() * x.value() * x.value()), xgrad::Inputs(x), xgrad::Saved(x),
                        xgrad::once([](const D& dy, Needs, const D& x) -> Grads<double, 1> {
                          return {D(3 * x.value() * x.value() * dy.value())};
                        }));
}

/// Without once() the second derivative would be wrong, and nobody told.
TEST(OnceTest, RefusesToDifferentiateABackwardMadeOfArrays) {
  const D x(2.0, true), w(5.0, true);
  EXPECT_TRUE(gradcheck([](const auto& at) { return cube_by_arrays(at[0]); }, {x}));
  const D y = cube_by_arrays(x) * w;
  const std::vector<D> g = grad(y, {x, w}, {.create_graph = true});
  EXPECT_EQ(g[0].item(), 60);
  EXPECT_EQ(g[1].item(), 8);
  const char* const expected =
      "backward: the backward of 'cube' computes on arrays (once), so its gradients cannot be differentiated";
  EXPECT_EQ(message_of<GraphError>([&] { grad(x * g[0], {x}, {.retain_graph = true}); }), expected);
  EXPECT_EQ(message_of<GraphError>([&] { grad(g[0], {w}, {.retain_graph = true}); }), expected)
      << "through the gradient that it got";
  EXPECT_EQ(grad(g[1] * g[1], {x})[0].item(), 2 * 8 * 12) << "what does not go through it is fine";
  const auto two = [](const D& x) {
    return xgrad::record_many<double, 2>(
        two_op, {D(x.value()), D(x.value())}, xgrad::Inputs(x), xgrad::Attributes(), xgrad::Saved(),
        xgrad::once([](const auto& dys, Needs) -> Grads<double, 1> { return {D(dys[1].value() * 2)}; }))[1];
  };
  const D z(3.0, true);
  const D gradient = grad(two(z) * z, {z}, {.create_graph = true})[0];
  EXPECT_EQ(gradient.item(), 9);
  EXPECT_NE(message_of<GraphError>([&] { grad(gradient, {z}); }).find("'two' computes on arrays"),
            std::string::npos);
}

/// A pass inside a pass, both through w: neither takes the other's gradient.
TEST(RecordTest, APassInsideAPassKeepsItsGradientsApart) {
  const D z(3.0, true), w(2.0, true);
  const D inner = record<double>(inner_op, D(1.0), xgrad::Inputs(z), xgrad::Saved(z),
                                 [&w](D dy, Needs, D at) -> Grads<double, 1> {
                                   const xgrad::EnableGrad guard;
                                   const D copy(at.value(), true);
                                   (copy * w * w).backward(dy);
                                   return {copy.grad()};
                                 });
  const D y = inner * 1.0 + w * 10.0;
  const std::vector<D> found = grad(y, {z, w});
  EXPECT_EQ(found[0].item(), 4);
  EXPECT_EQ(found[1].item(), 10);
  EXPECT_EQ(w.grad().item(), 12);
}

/// Passes of every kind go through the same nodes while another one is on its way to them.
TEST(GradTest, PassesInsidePassesInsideAPass) {
  const D x(2.0, true), w(5.0, true), other(3.0, true), unrelated(1.0, true);
  const D shared = x * w, more = exp(shared * 0.0) * other;  // in all passes, in all but the one between
  std::vector<double> seen;
  const auto innermost = [&] {
    seen.push_back(grad(more * shared, {other}, {.retain_graph = true})[0].item());
  };
  const D between = with_inside(shared * 1.0, innermost) + shared;
  const auto inside = [&] {
    EXPECT_THROW(grad(shared, {unrelated}, {.retain_graph = true}), GraphError);
    seen.push_back(grad(between, {x}, {.retain_graph = true})[0].item());
    const D again = xgrad::checkpoint([&](const D& at) { return at * shared * w; }, D(1.0, true));
    seen.push_back(grad(again, {w}, {.retain_graph = true})[0].item());
  };
  const std::vector<double> inner{10, 10, 20};
  const D y = with_inside(shared * 1.0, inside) + more + x;
  const std::vector<D> found = grad(y, {x, shared, other, more}, {.retain_graph = true});
  EXPECT_EQ(seen, inner);
  const std::vector<double> expected{6, 1, 1, 1};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[i].item(), expected[i]) << i;

  std::vector<double> given(3);
  const auto take = [&](std::size_t place, const D& g) {
    const xgrad::EnableGrad recording;
    given[place] = g.item();
    EXPECT_EQ(grad(shared * more, {x}, {.retain_graph = true})[0].item(), 15);
    grad_each(shared * shared, {w}, [&](std::size_t, const D& h) { EXPECT_EQ(h.item(), 40); },
              {.retain_graph = true});
  };
  grad_each(y, {x, w, other}, take, {.retain_graph = true});
  EXPECT_EQ(given, (std::vector<double>{6, 2, 1}));
}

TEST(GradTest, APassInsideAPassKeepsItsMarksApart) {
  const D x(2.0, true), w(5.0, true), other(3.0, true);
  const D shared = x * w, more = exp(shared * 0.0) * other;
  std::vector<double> seen;
  const auto inside = [&] {
    seen.push_back(grad(shared * shared, {w}, {.retain_graph = true})[0].item());
    seen.push_back(grad(more * shared, {other}, {.retain_graph = true})[0].item());
    grad_each(shared + x, {w, x}, [&](std::size_t, const D& g) { seen.push_back(g.item()); },
              {.retain_graph = true});
  };
  const D y = with_inside(shared * 1.0, inside) + more + x;
  const std::vector<double> inner{40, 10, 6, 2};
  const std::vector<D> found = grad(y, {x, shared, other}, {.retain_graph = true});
  EXPECT_EQ(seen, inner);
  EXPECT_EQ(found[0].item(), 6);
  EXPECT_EQ(found[1].item(), 1);
  EXPECT_EQ(found[2].item(), 1);

  seen.clear();
  std::vector<std::size_t> places;
  std::vector<double> given(3);
  const auto take = [&](std::size_t place, const D& g) {
    places.push_back(place);
    given[place] = g.item();
  };
  grad_each(y, {x, w, other}, take, {.retain_graph = true});
  EXPECT_EQ(seen, inner);
  EXPECT_EQ(places, (std::vector<std::size_t>{2, 0, 1}));
  EXPECT_EQ(given, (std::vector<double>{6, 2, 1}));

  seen.clear();
  y.backward();
  EXPECT_EQ(seen, inner);
  EXPECT_EQ(w.grad().item(), 2);
}

TEST(GradTest, AWantedResultMayLeadToAnother) {
  const D x(2.0, true);
  const D a = x * x, b = a * a, c = b * 3.0;
  const std::vector<D> found = grad(c + a, {b, x, a, b}, {.retain_graph = true});
  EXPECT_EQ(found[0].item(), 3);
  EXPECT_EQ(found[1].item(), 100);
  EXPECT_EQ(found[2].item(), 25);
  EXPECT_EQ(found[3].item(), 3);
  EXPECT_EQ(grad(c, {c})[0].item(), 1);
}

TEST(GradTest, GoesOnlyWhereAWantedInputIs) {
  const D w(2.0, true), x(3.0, true);
  const D used = x * x;
  used.backward();
  EXPECT_EQ(grad(w * used, {w})[0].item(), 9);
  const D a = x * x, b = x * x * x;
  sum(a + b).backward();
  const std::vector<D> found = grad(a * b, {a, b});
  EXPECT_EQ(found[0].item(), 27);
  EXPECT_EQ(found[1].item(), 9);
  EXPECT_NE(message_of<GraphError>([&] { grad(a * w, {x}); }).find("was released by an earlier backward"),
            std::string::npos);
}

TEST(GradTest, RecordedGradientsShareNoArrayWithTheSeed) {
  const D a(1.0, true), b(2.0, true), seed(3.0, true);
  const std::vector<D> found = grad(a + b, {a, b}, {.seed = seed, .create_graph = true});
  EXPECT_NE(found[0].value().data(), found[1].value().data());
  EXPECT_NE(found[0].value().data(), seed.value().data());
}

TEST(VariableTest, AnArrayThatWasMovedFromIsRefused) {
  Array<double> array{1, 2};
  const D taken(std::move(array));
  EXPECT_EQ(message_of<ShapeError>([&] { const D empty(array); }),
            "Variable: the array must own its elements, got a moved-from array");
  EXPECT_EQ(D(3.0).item(), 3) << "a new scalar is not the refused array, whose shape is ()";
}

}  // namespace graph_test
