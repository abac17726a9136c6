// Under create_graph, a backward that computes on arrays misses terms of further derivatives: it is refused.

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/autograd/functional.hpp>
#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/autograd/on_gradient.hpp>
#include <xgrad/graph/fused.hpp>
#include <xgrad/graph/kernel_backward.hpp>
#include <xgrad/graph/record.hpp>
#include <xgrad/graph/record_many.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "expect_error.hpp"

namespace {

constexpr xgrad::Op own_op("own", {"x"}), list_op("list", {"parts"});
constexpr xgrad::Op pair_op("pair", {"a", "b"});

using xgrad::Array, xgrad::Attributes, xgrad::grad, xgrad::GraphError, xgrad::Grads, xgrad::hessian,
    xgrad::Inputs, xgrad::Needs, xgrad::once, xgrad::Output, xgrad::Saved, xgrad::square, xgrad::sum,
    xgrad::Variable;
using xgrad_tests::message_of;
using V = Variable<double>;
using List = std::vector<V>;

/// The op y = f(x) with this backward of (dy, x).
template <class F, class Backward, class T = double>
Variable<T> own(const Variable<T>& x, F f, Backward backward) {
  Array<T> y = Array<T>::from_shape(x.shape());
  std::transform(x.value().begin(), x.value().end(), y.begin(), f);
  return xgrad::record<T>(
      own_op, Variable<T>(std::move(y)), Inputs(x), Saved(x),
      [backward](Variable<T> dy, Needs, Variable<T> at) -> Grads<T, 1> { return {backward(dy, at)}; });
}

double cube(double x) { return x * x * x; }
double relu(double x) { return std::max(x, 0.0); }

std::string refusal(const char* op, const std::string& source, int input = 0) {
  return "backward: the gradient of input " + std::to_string(input) + " that '" + op +
         "' returned has no graph to " + source +
         ", with which it changes; with create_graph, a backward must compute by ops on Variables, not on "
         "their arrays, or be marked with once()";
}
const std::string of_result = "the gradient of its result";

V second(const V& y, const V& x) {
  return grad(sum(grad(y, {x}, {.create_graph = true})[0]), {x}, {.allow_unused = true})[0];
}

}  // namespace

TEST(RecordedGradientsTest, OfArraysAreRefused) {
  const Array<double> x{1, 2};
  const auto by_ops = [](const V& at) { return own(at, cube, [](V dy, V x) { return dy * 3 * x * x; }); };
  EXPECT_EQ(hessian([&](const V& at) { return sum(by_ops(at)); }, x), (Array<double>{{6, 0}, {0, 12}}));

  const auto on_arrays = [](const V& at) {
    return own(at, cube, [](V dy, V x) { return V(3 * dy.value() * x.value() * x.value()); });
  };
  EXPECT_EQ(message_of<GraphError>([&] { hessian([&](const V& at) { return sum(on_arrays(at)); }, x); }),
            refusal("own", of_result));
  EXPECT_EQ(
      message_of<GraphError>([&] { hessian([&](const V& at) { return sum(square(on_arrays(at))); }, x); }),
      refusal("own", of_result));

  const auto half_on_arrays = [](const V& at) {
    return own(at, cube, [](V dy, V x) { return dy * V(3 * x.value() * x.value()); });
  };
  for (const bool linear : {true, false}) {
    EXPECT_EQ(
        message_of<GraphError>([&] {
          hessian([&](const V& at) { return sum(linear ? half_on_arrays(at) : square(half_on_arrays(at))); },
                  x);
        }),
        refusal("own", "saved value 0"));
  }
}

TEST(RecordedGradientsTest, OfArraysAreRefusedAtZero) {
  const auto f = [](const V& at) {
    return sum(own(
        at, [](double x) { return x * x; }, [](V dy, V x) { return dy * V(2 * x.value()); }));
  };
  EXPECT_EQ(message_of<GraphError>([&] {
              hessian(f, Array<double>{0, 0});
            }),
            refusal("own", "saved value 0"));
}

TEST(RecordedGradientsTest, OfArraysAreRightWhereNothingIsRecorded) {
  const V x(Array<double>{1, 2}, true);
  sum(own(x, cube, [](V dy, V at) { return V(3 * dy.value() * at.value() * at.value()); })).backward();
  EXPECT_EQ(x.grad().value(), (Array<double>{3, 12}));
}

TEST(RecordedGradientsTest, OfFloatAreRefused) {
  const Variable<float> x({1.0F, 2.0F}, true);
  const auto y = own(
      x, [](float at) { return std::exp(at); },
      [](Variable<float> dy, Variable<float> at) { return dy * Variable<float>(xt::exp(at.value())); });
  EXPECT_EQ(message_of<GraphError>([&] { grad(sum(y), {x}, {.create_graph = true}); }),
            refusal("own", "saved value 0"));
}

TEST(RecordedGradientsTest, OfTheResultAreRefused) {
  const V x(Array<double>{0.5, -1}, true);
  const V y = xgrad::record<double>(
      own_op, V(Array<double>(xt::tanh(x.value()))), Inputs(x), Saved(Output()),
      [](V dy, Needs, V y) -> Grads<double, 1> { return {dy * V(1 - xt::square(y.value()))}; });
  EXPECT_EQ(message_of<GraphError>([&] { grad(sum(y), {x}, {.create_graph = true}); }),
            refusal("own", "saved value 0"));
}

TEST(RecordedGradientsTest, OfOneInputOfTwoAreRefused) {
  const V a(Array<double>{2, 3}, true), b(Array<double>{4, 5}, true);
  const auto product = [](const V& a, const V& b) {
    return xgrad::record<double>(pair_op, V(Array<double>(a.value() * b.value())), Inputs(a, b), Saved(a, b),
                                 [](V dy, Needs, V a, V b) -> Grads<double, 2> {
                                   return {dy * b, V(dy.value() * a.value())};
                                 });
  };
  EXPECT_EQ(message_of<GraphError>([&] {
              grad(sum(product(a, b)), {a, b}, {.create_graph = true});
            }),
            refusal("pair", of_result, 1));
  EXPECT_EQ(second(sum(product(a, b)), a).defined(), false) << "only the gradient of b is wrong";
}

TEST(RecordedGradientsTest, OfListsAndSeveralResultsAreRefused) {
  const V a(Array<double>{2, 3}, true), b(Array<double>{4, 5}, true);
  const List parts{a, b};
  const V listed = xgrad::record_list<double>(list_op, V(Array<double>(a.value() * b.value())), parts,
                                              Attributes(), Saved(parts), [](V dy, Needs, const List& at) {
                                                return List{dy * at[1].detach(), dy * at[0].detach()};
                                              });
  EXPECT_EQ(message_of<GraphError>([&] {
              grad(sum(listed), {a, b}, {.create_graph = true});
            }),
            refusal("list", "saved value 0", 1));

  const auto two = xgrad::record_many<double, 2>(
      own_op, {V(Array<double>(xt::sin(a.value()))), V(Array<double>(xt::cos(a.value())))}, Inputs(a),
      Attributes(), Saved(Output(0), Output(1)),
      [](const std::array<V, 2>& dys, Needs, V sine, V cosine) -> Grads<double, 1> {
        V dx = dys[0].defined() ? dys[0] * cosine : V(Array<double>{0, 0});
        return {dys[1].defined() ? dx - V(dys[1].value()) * sine : dx};
      });
  // The gradient is 0, as sin^2 + cos^2 is 1; its own gradient would not be.
  EXPECT_EQ(message_of<GraphError>(
                [&] { grad(sum(square(two[0]) + square(two[1])), {a}, {.create_graph = true}); }),
            refusal("own", of_result));
}

TEST(RecordedGradientsTest, OfAHookAreRefused) {
  const V x(Array<double>{1, 2}, true);
  const V y = xgrad::on_gradient(x, [](const V& dy) { return V(dy.value() / 2); });
  EXPECT_EQ(message_of<GraphError>([&] { grad(sum(square(y)), {x}, {.create_graph = true}); }),
            refusal("on_gradient", of_result));
}

TEST(RecordedGradientsTest, OfComposedOpsAreRefused) {
  const V x(Array<double>{1, 2}, true);
  const V y = xgrad::record<double>(
      own_op, V(Array<double>(xt::square(x.value()))), Inputs(x), Saved(x),
      xgrad::KernelBackward(
          [](const V& dy, Needs, const V& x) -> Grads<double, 1> { return {V(2 * dy.value() * x.value())}; },
          [](const V& dy, Needs, const V& x) -> Grads<double, 1> { return {dy * V(2 * x.value())}; }));
  EXPECT_EQ(message_of<GraphError>([&] { grad(sum(y), {x}, {.create_graph = true}); }),
            refusal("own", "saved value 0"));
}

TEST(RecordedGradientsTest, MarkedOnceAreAnErrorOnlyIfDifferentiated) {
  const V x(Array<double>{1, 2}, true);
  const V y = xgrad::record<double>(
      own_op, V(Array<double>(xt::cube(x.value()))), Inputs(x), Saved(x),
      once([](V dy, Needs, V x) -> Grads<double, 1> { return {V(3 * dy.value() * x.value() * x.value())}; }));
  EXPECT_EQ(grad(sum(y), {x}, {.retain_graph = true, .create_graph = true})[0].value(),
            (Array<double>{3, 12}));
  EXPECT_EQ(message_of<GraphError>([&] { second(sum(y), x); }),
            "backward: the backward of 'own' computes on arrays (once), so its gradients cannot be "
            "differentiated");
}

// Gradients that do not change with what they have no graph to.

TEST(RecordedGradientsTest, OfMasksAreRight) {
  const auto mask = [](const V& x, double low, double high) {
    return V(Array<double>(xt::cast<double>(x.value() > low && x.value() < high)));
  };
  const double inf = std::numeric_limits<double>::infinity();
  const Array<double> x{-1, 0, 1, 2};  // at the borders, too
  for (const double low : {0.0, 1.0, -inf}) {
    for (const double high : {1.0, 2.0, inf}) {
      const auto f = [&](const V& at) {
        return own(
            at, [=](double one) { return std::clamp(one, low, std::max(low, high)); },
            [=](V dy, V saved) { return dy * mask(saved, low, high); });
      };
      EXPECT_EQ(hessian([&](const V& at) { return sum(f(at)); }, x), (Array<double>({4, 4}, 0.0)));
      EXPECT_NO_THROW(hessian([&](const V& at) { return sum(square(f(at))); }, x));
    }
  }
  const auto signs = [](const V& at) {
    return own(
        at, [](double one) { return std::abs(one); },
        [](V dy, V saved) { return dy * V(Array<double>(xt::sign(saved.value()))); });
  };
  EXPECT_EQ(hessian([&](const V& at) { return sum(square(signs(at))); }, Array<double>{-1, 2}),
            (Array<double>{{2, 0}, {0, 2}}));
}

TEST(RecordedGradientsTest, OfTiesAreRight) {
  const auto largest = [](const V& x) {
    const double most = *std::max_element(x.value().begin(), x.value().end());
    return xgrad::record<double>(own_op, V(most), Inputs(x), Saved(x),
                                 [](V dy, Needs, V x) -> Grads<double, 1> {
                                   const double most = *std::max_element(x.value().begin(), x.value().end());
                                   const Array<double> equal = xt::cast<double>(xt::equal(x.value(), most));
                                   return {dy * V(Array<double>(equal / xt::sum(equal)()))};
                                 });
  };
  EXPECT_EQ(hessian(largest, Array<double>{1, 3, 3}), (Array<double>({3, 3}, 0.0)));
}

TEST(RecordedGradientsTest, OfLinearOpsAreRight) {
  const V a(Array<double>{2, 3}, true), b(Array<double>{4, 5});
  const V y = xgrad::record<double>(pair_op, V(Array<double>(a.value() * b.value())), Inputs(a, b),
                                    Saved(a, b), [](V dy, Needs, V a, V b) -> Grads<double, 2> {
                                      return {dy * b, dy * a};
                                    });
  EXPECT_EQ(grad(sum(y), {a}, {.create_graph = true})[0].value(), b.value());
  const auto twice = [](const V& x) {
    return own(
        x, [](double at) { return 2 * at; }, [](V dy, V) { return dy * 2; });
  };
  EXPECT_EQ(hessian([&](const V& x) { return sum(twice(x)); }, Array<double>{1, 2}),
            (Array<double>({2, 2}, 0.0)));
  EXPECT_EQ(hessian([&](const V& x) { return sum(square(twice(x))); }, Array<double>{1, 2}),
            (Array<double>{{8, 0}, {0, 8}}));
  EXPECT_EQ(hessian([&](const V& x) { return sum(own(x, relu, [](V, V at) { return at * 0; })); },
                    Array<double>{1, 2}),
            (Array<double>({2, 2}, 0.0)));
}
