// grad_each(): the gradients of leaves, one by one.

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/autograd/grad_each.hpp>
#include <xgrad/graph/grad_mode.hpp>
#include <xgrad/graph/record.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "expect_error.hpp"

namespace grad_each_test {

constexpr xgrad::Op noted_op("noted", {"x"}), none_op("none", {"x"}), inner_op("inner", {"x"});
constexpr xgrad::Op half_op("half", {"a", "b"});

using xgrad::Array, xgrad::GraphError, xgrad::Grads, xgrad::Needs;
using xgrad_tests::message_of;
using V = xgrad::Variable<float>;

V vector(std::initializer_list<float> elements) { return V(Array<float>(elements), true); }

/// The places of the leaves in the order in which they come, and their gradients' first elements.
struct Taken {
  std::vector<std::size_t> places;
  std::vector<float> first;

  auto take() {
    return [this](std::size_t place, const V& gradient) {
      places.push_back(place);
      first.push_back(gradient.defined() ? *gradient.value().begin() : -1);
    };
  }
};
using Places = std::vector<std::size_t>;

TEST(GradEachTest, HandsOverALeafAsSoonAsNothingMoreIsAddedToIt) {
  const V a(2.0f, true), b(3.0f, true), c(5.0f, true);
  std::vector<std::string> log;
  const auto noted = [&](const V& x, const char* name) {
    return xgrad::record<float>(noted_op, V(x.item()), xgrad::Inputs(x), xgrad::Saved(),
                                [&log, name](const V& dy, Needs) -> Grads<float, 1> {
                                  log.emplace_back(name);
                                  return {dy};
                                });
  };
  // b is used twice, above and below a and c.
  const V y = noted(noted(a * b, "ab") * c, "abc") * b;
  std::vector<float> gradients(3);
  grad_each(y, {a, b, c}, [&](std::size_t place, const V& gradient) {
    log.push_back(std::string(1, "abc"[place]));
    gradients[place] = gradient.item();
  });
  EXPECT_EQ(log, (std::vector<std::string>{"abc", "c", "ab", "a", "b"}));
  EXPECT_EQ(gradients, (std::vector<float>{45, 60, 18}));
  for (const V& leaf : {a, b, c}) EXPECT_FALSE(leaf.has_grad());
}

TEST(GradEachTest, GivesTheBitsOfGrad) {
  const V x = vector({1, 2, 3}), w = vector({0.1f, 0.2f, 0.3f}), other = vector({4, 5});
  const auto loss = [&] { return sum(exp(x * w) * (x + w) / (w * w)) + sum(x); };
  const std::vector<V> expected = grad(loss(), {x, w});
  std::vector<V> given(3);
  grad_each(loss(), {x, w, other}, [&](std::size_t place, V gradient) { given[place] = std::move(gradient); },
            {.allow_unused = true});
  EXPECT_EQ(given[0].value(), expected[0].value());
  EXPECT_EQ(given[1].value(), expected[1].value());
  EXPECT_FALSE(given[2].defined());
}

TEST(GradEachTest, ComesToEveryLeafOnceWhateverTheGraphIs) {
  const V x(2.0f, true), y(3.0f, true), unused(1.0f, true);
  Taken taken;
  grad_each(x, {unused, x}, taken.take(), {.allow_unused = true});
  EXPECT_EQ(taken.places, (Places{0, 1})) << "the output itself";
  EXPECT_EQ(taken.first, (std::vector<float>{-1, 1}));
  taken = {};
  grad_each(x * y, {x, unused, y}, taken.take(), {.allow_unused = true});
  EXPECT_EQ(taken.places, (Places{1, 0, 2})) << "what is not used is known at once";
  // An op that has no gradient for y, so that nothing ever comes along y's other edge.
  const V none = xgrad::record<float>(half_op, V(1.0f), xgrad::Inputs(x, y * y), xgrad::Saved(),
                                      [](const V& dy, Needs) -> Grads<float, 2> {
                                        return {dy, V()};
                                      });
  taken = {};
  const V never = xgrad::record<float>(none_op, V(1.0f), xgrad::Inputs(y), xgrad::Saved(),
                                       [](const V&, Needs) -> Grads<float, 1> { return {}; });
  grad_each(x * never, {y, x}, taken.take(), {.retain_graph = true, .allow_unused = true});
  EXPECT_EQ(taken.places, (Places{1, 0}));
  EXPECT_EQ(taken.first, (std::vector<float>{1, -1}));
  EXPECT_EQ(
      message_of<GraphError>([&] {
        grad_each(x * never, {y, x}, taken.take());
      }),
      "grad_each: the output does not depend on leaf 0 (); pass allow_unused to get an undefined gradient "
      "for it");
  taken = {};
  grad_each(none + y, {y, x}, taken.take());
  EXPECT_EQ(taken.places, (Places{1, 0}));
  EXPECT_EQ(taken.first, (std::vector<float>{1, 1}));
  // An array that two leaves, or the caller, share is copied.
  const V seed(7.0f);
  std::vector<V> given(2);
  grad_each(x + y, {x, y}, [&](std::size_t place, V gradient) { given[place] = std::move(gradient); },
            {.seed = seed});
  given[0].assign(given[0].value() * 2.0f);
  EXPECT_EQ(given[1].item(), 7);
  EXPECT_EQ(seed.item(), 7);
}

TEST(GradEachTest, RetainsAndRecordsAsGradDoes) {
  const V x(3.0f, true);
  const V y = x * x * x;
  Taken taken;
  grad_each(y, {x}, taken.take(), {.retain_graph = true});
  grad_each(y, {x}, taken.take(), {.create_graph = true});
  V second;
  grad_each(y, {x},
            [&](std::size_t, const V& gradient) { second = grad(gradient, {x}, {.retain_graph = true})[0]; },
            {.create_graph = true});
  EXPECT_EQ(second.item(), 18);
  grad_each(y, {x}, [&](std::size_t, const V& gradient) { EXPECT_FALSE(gradient.requires_grad()); });
  EXPECT_EQ(
      message_of<GraphError>([&] { grad_each(y, {x}, taken.take()); }),
      "backward: the graph through 'mul' was released by an earlier backward; pass retain_graph there to go "
      "through it again, or detach() what is carried over");
  EXPECT_EQ(taken.first, (std::vector<float>{27, 27}));
}

TEST(GradEachTest, SaysThatItsCallbackReleasedTheGraph) {
  const auto released = [](const char* op) {
    return std::string("backward: the graph through '") + op +
           "' was released by an earlier backward; pass retain_graph there to go through it again, or "
           "detach() what is carried over";
  };
  const V x(1.0f, true), w(2.0f, true);
  const V made = exp(x), other = made * 3.0f;
  std::size_t taken = 0;
  const auto release = [&](std::size_t place, const V&) {
    EXPECT_EQ(place, 0u);
    ++taken;
    other.backward();
  };
  EXPECT_EQ(message_of<GraphError>([&] { grad_each(made * w + x, {w, x}, release); }), released("exp"));
  EXPECT_EQ(taken, 1u);
}

TEST(GradEachTest, APassInsideOfAPassTakesNothingFromIt) {
  const V x(2.0f, true), w(5.0f, true);
  Taken inner, outer;
  const V y = xgrad::record<float>(inner_op, V(2.0f), xgrad::Inputs(x * w), xgrad::Saved(),
                                   [&](const V& dy, Needs) -> Grads<float, 1> {
                                     const xgrad::EnableGrad recording;
                                     grad_each(x * w, {w, x}, inner.take());
                                     return {dy};
                                   });
  grad_each(y + w, {x, w}, outer.take());
  EXPECT_EQ(inner.first, (std::vector<float>{5, 2}));
  EXPECT_EQ(outer.places, (Places{0, 1}));
  EXPECT_EQ(outer.first, (std::vector<float>{5, 3}));
}

TEST(GradEachTest, SaysWhatIsWrong) {
  const V x = vector({1, 2}), other = vector({1, 2, 3});
  Taken taken;
  EXPECT_EQ(message_of<GraphError>([&] {
              grad_each(sum(x), {x, other}, taken.take());
            }),
            "grad_each: the output does not depend on leaf 1 (3); pass allow_unused to get an undefined "
            "gradient for it");
  EXPECT_EQ(message_of<GraphError>([&] {
              grad_each(sum(x), {other, x}, taken.take());
            }),
            "grad_each: the output does not depend on leaf 0 (3); pass allow_unused to get an undefined "
            "gradient for it");
  EXPECT_EQ(message_of<GraphError>([&] { grad_each(sum(x), {x * x}, taken.take()); }),
            "grad_each: leaf 0 must be a leaf that requires a gradient, got the result of 'mul'");
  EXPECT_EQ(message_of<GraphError>([&] {
              grad_each(sum(x), {x, V()}, taken.take());
            }),
            "grad_each: leaf 1 must be a leaf that requires a gradient, got an undefined variable");
  EXPECT_EQ(message_of<GraphError>([&] {
              grad_each(sum(x), {x, V(1.0f)}, taken.take());
            }),
            "grad_each: leaf 1 must be a leaf that requires a gradient, got one that does not require any, "
            "or is frozen");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { grad_each(sum(x), {}, taken.take()); }),
            "grad_each: leaves must not be empty");
  EXPECT_EQ(message_of<GraphError>([&] { grad_each(V(1.0f), {x}, taken.take()); }),
            "grad_each: the variable () has no graph: nothing it was computed from requires a gradient");
  EXPECT_EQ(message_of<xgrad::ValueError>([&] {
              grad_each(sum(x), {x, other, x}, taken.take());
            }),
            "grad_each: leaf 2 is leaf 0, it must be given once");
  EXPECT_TRUE(taken.places.empty()) << "nothing is handed over before an error";
  EXPECT_EQ(message_of<xgrad::ValueError>([&] { grad_each(sum(x), {x}, nullptr); }),
            "grad_each: take must be a function, got none");
  // What the function throws comes out, and the next pass is not disturbed.
  taken = {};
  const auto thrown = [&] {
    grad_each(sum(x * x), {x}, [](std::size_t, const V&) { throw std::runtime_error("no room"); });
  };
  EXPECT_EQ(message_of<std::runtime_error>(thrown), "no room");
  grad_each(sum(x * x), {x}, taken.take());
  EXPECT_EQ(taken.first, (std::vector<float>{2}));
}

}  // namespace grad_each_test
