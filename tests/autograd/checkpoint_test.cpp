#include <xgrad/autograd/checkpoint.hpp>

#include <cmath>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include <xgrad/autograd/functional.hpp>
#include <xgrad/autograd/gradcheck.hpp>
#include <xgrad/autograd/on_gradient.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/graph/record.hpp>
#include <xgrad/ops/pointwise/dropout.hpp>
#include <xgrad/ops/pointwise/elementwise.hpp>
#include <xgrad/ops/product/matmul.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "expect_error.hpp"

namespace checkpoint_test {

using xgrad::Array, xgrad::checkpoint, xgrad::gradcheck, xgrad::gradgradcheck, xgrad::checkpoint_sequential,
    xgrad::grad, xgrad::GraphError, xgrad::on_gradient, xgrad::Shape, xgrad::ShapeError, xgrad::ValueError;
using xgrad_tests::message_of;
using V = xgrad::Variable<double>;
using List = std::vector<V>;

V leaf(const Shape& shape, double start) {
  Array<double> x = Array<double>::from_shape(shape);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = start + 0.37 * static_cast<double>(i % 5);
  return V(x, true);
}

/// The same numbers as without a checkpoint, for what is passed and what is captured.
TEST(CheckpointTest, GivesTheGradientsOfTheFunction) {
  const V x = leaf({2, 3}, -0.5), w = leaf({3, 3}, -0.7), b = leaf({3}, 0.1);
  const V made = tanh(b);  // captured, and made of what is captured, too
  const auto f = [&](const List& at) { return tanh(matmul(at[0], at[1]) + b * made) * made; };
  const V plain = sum(f({x, w}) * f({x * 1.0, w}));
  const List expected = grad(plain, {x, w, b}, {.retain_graph = true});
  const V y = sum(checkpoint(f, {x, w}) * checkpoint(f, List{x * 1.0, w}));
  EXPECT_EQ(y.item(), plain.item());
  const List found = grad(y, {x, w, b}, {.retain_graph = true});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].value(), expected[i].value()) << i;
  EXPECT_EQ(grad(y, {b}, {.retain_graph = true})[0].value(), expected[2].value()) << "of one alone";
  y.backward();
  EXPECT_EQ(x.grad().value(), expected[0].value());
  EXPECT_EQ(b.grad().value(), expected[2].value());
}

TEST(CheckpointTest, HasDerivativesOfAnyOrder) {
  const V x = leaf({2, 3}, -0.5), w = leaf({3, 3}, -0.7), b = leaf({3}, 0.1);
  const auto f = [](const List& all) {
    const V made = exp(all[2]);
    const auto inner = [made](const V& at) { return tanh(at * made) * sum(made); };
    const auto outer = [inner](const List& at) { return checkpoint(inner, matmul(at[0], at[1])) * at[0]; };
    return checkpoint(outer, {all[0], all[1] * 1.0});
  };
  EXPECT_TRUE(gradcheck(f, {x, w, b}));
  const auto second = gradgradcheck(f, {x, w, b});
  EXPECT_TRUE(second) << second.worst;
  const auto energy = [&](const List& at) { return sum(f(at)); };
  const auto plain = [](const List& all) {
    const V made = exp(all[2]);
    return sum(tanh(matmul(all[0], all[1] * 1.0) * made) * sum(made) * all[0]);
  };
  const auto h = hessian(energy, List{x, w, b}), expected = hessian(plain, List{x, w, b});
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t n = 0; n < h[i][k].size(); ++n)
        EXPECT_NEAR(h[i][k].value().data()[n], expected[i][k].value().data()[n], 1e-12) << i << k;
    }
  }
  // Of a gradient that is not with respect to x, with respect to x.
  const V gradient = grad(energy({x, w, b}), {w}, {.create_graph = true})[0];
  const V reference = grad(plain({x, w, b}), {w}, {.create_graph = true})[0];
  const Array<double> a = grad(sum(gradient), {x})[0].value(), e = grad(sum(reference), {x})[0].value();
  for (std::size_t n = 0; n < a.size(); ++n) EXPECT_NEAR(a.data()[n], e.data()[n], 1e-12);
}

/// A value that dies is handed back to the pool: what is kept can be counted.
TEST(CheckpointTest, KeepsItsInputAlone) {
  const V x = leaf({16, 16}, 0.1);
  const auto chain = [](const V& at) {
    V y = at;
    for (int i = 0; i < 20; ++i) y = tanh(y * 1.01);
    return y;
  };
  const auto blocks = [&](const auto& run) {
    xgrad::empty_cache();
    const std::ptrdiff_t before = xgrad::memory_stats().live_blocks;
    const V y = run();
    xgrad::empty_cache();
    return xgrad::memory_stats().live_blocks - before;
  };
  const auto plain = blocks([&] { return chain(x); });
  const auto kept = blocks([&] { return checkpoint(chain, x); });
  EXPECT_GT(plain, 60);
  EXPECT_LT(kept, 12);
}

TEST(CheckpointTest, DrawsTheSameNumbersAgain) {
  const V x = leaf({40, 40}, 0.1), w = leaf({40, 40}, 0.2);
  const auto f = [&](const V& at) { return dropout(dropout(at, 0.5) * w, 0.3); };
  xgrad::manual_seed(5);
  const V plain = sum(f(x));
  const double next = xgrad::uniform<double>({1})(0);
  xgrad::manual_seed(5);
  const V y = sum(checkpoint(f, x));
  EXPECT_EQ(y.item(), plain.item());
  EXPECT_EQ(xgrad::uniform<double>({1})(0), next);
  const std::string state = xgrad::get_rng_state();
  const List found = grad(y, {x, w}), expected = grad(plain, {x, w});
  EXPECT_EQ(found[0].value(), expected[0].value());
  EXPECT_EQ(found[1].value(), expected[1].value());
  EXPECT_EQ(xgrad::get_rng_state(), state) << "a backward pass draws nothing";
}

TEST(CheckpointTest, RecordsNothingWithoutNeed) {
  const V x = leaf({2}, 1), constant = x.detach();
  int calls = 0;
  const auto f = [&](const V& at) {
    ++calls;
    EXPECT_EQ(at.requires_grad(), calls == 2);
    return at * 2.0;
  };
  EXPECT_FALSE(checkpoint(f, constant).requires_grad());
  const xgrad::NoGrad guard;
  EXPECT_FALSE(checkpoint(f, x).requires_grad());
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(checkpoint([](const V& at) { return at; }, x).requires_grad()) << "f(x) itself";
}

/// Creation numbers are a thread's own: those of what another thread made may be higher.
TEST(CheckpointTest, CapturesWhatAnotherThreadMade) {
  V w;
  for (int i = 0; i < 1000; ++i) w = leaf({2}, 3);
  std::thread([&] {
    const auto f = [&](const V& at) { return at * w; };
    sum(checkpoint(f, V({1.0, 2.0}))).backward();
  }).join();
  EXPECT_EQ(w.grad().value(), (Array<double>{1, 2}));
}

TEST(CheckpointTest, ThreadsRecordWithOneWeight) {
  const V w = leaf({2}, 3);
  const auto record = [&] {
    for (int i = 0; i < 200; ++i) {
      const V at({1.0, 2.0}, true);
      const V y = checkpoint([&](const V& x) { return x * w + tanh(w) * w; }, at);
      EXPECT_TRUE(y.requires_grad());
    }
  };
  std::thread other(record);
  record();
  other.join();
  sum(checkpoint([&](const V& x) { return x * w + w; }, V({1.0, 2.0}))).backward();
  EXPECT_EQ(w.grad().value(), (Array<double>{2, 3}));
}

TEST(CheckpointTest, OfASequence) {
  const V w = leaf({3, 3}, -0.7), x = leaf({2, 3}, -0.5);
  int calls = 0;
  const std::function<V(const V&)> layer = [&](const V& at) {
    ++calls;
    return tanh(matmul(at, w));
  };
  const std::vector<std::function<V(const V&)>> layers(5, layer);
  V plain = x;
  for (const auto& one : layers) plain = one(plain);
  const List expected = grad(sum(plain), {x, w});
  for (const std::size_t segments : {1, 2, 3, 5}) {
    calls = 0;
    const V y = checkpoint_sequential(layers, segments, x);
    EXPECT_EQ(calls, 5);
    EXPECT_EQ(y.value(), plain.value());
    const List found = grad(sum(y), {x, w});
    EXPECT_EQ(calls, 5 + static_cast<int>((segments - 1) * (5 / segments)))
        << "the last part is not repeated";
    EXPECT_EQ(found[0].value(), expected[0].value());
    for (std::size_t n = 0; n < 9; ++n)
      EXPECT_NEAR(found[1].value().data()[n], expected[1].value().data()[n], 1e-15);
  }
}

TEST(CheckpointTest, SaysWhatIsWrong) {
  const V x = leaf({2}, 1);
  int calls = 0;
  const V y = checkpoint([&](const V& at) { return calls++ == 0 ? at : sum(at); }, x);
  EXPECT_EQ(message_of<ShapeError>([&] { sum(y).backward(); }),
            "checkpoint: f must return the same shape each time, first (2), then ()");
  const V z = checkpoint([](const V& at) { return at * at; }, x);
  x.assign(Array<double>{5, 6});
  EXPECT_EQ(
      message_of<GraphError>([&] { sum(z).backward(); }),
      "backward: value 0 that 'checkpoint' saved, of shape (2), was changed in place after it was used; "
      "assign() only after backward()");
  EXPECT_EQ(message_of<GraphError>([&] { checkpoint([](const V& at) { return at; }, V()); }),
            "checkpoint: x[0] is undefined");
  EXPECT_EQ(message_of<GraphError>([&] { checkpoint([](const V&) { return V(); }, x); }),
            "checkpoint: f must return a variable, got an undefined one");
  EXPECT_EQ(message_of<ValueError>([&] { checkpoint_sequential<double>({}, 1, x); }),
            "checkpoint_sequential: segments must be from 1 to the number of functions 0, got 1");
  const std::vector<std::function<V(const V&)>> constants(2, [](const V& at) { return at.value() * 2; });
  for (const std::size_t segments : {1, 2}) {
    EXPECT_EQ(message_of<GraphError>([&] { checkpoint_sequential(constants, segments, x); }),
              "checkpoint_sequential: a function must return a variable that it computed by ops on its "
              "argument, got one of shape (2) without a graph");
    EXPECT_EQ(checkpoint_sequential(constants, segments, V(Array<double>{1, 2})).value(),
              (Array<double>{4, 8}));
  }
  const V fragile = checkpoint(
      [&](const V& at) -> V {
        if (calls++ > 2) throw std::runtime_error("out of luck");
        return at;
      },
      x);
  EXPECT_EQ(message_of<std::runtime_error>([&] { sum(fragile).backward(); }), "out of luck");
  EXPECT_FALSE(x.has_grad());
}

TEST(OnGradientTest, SeesAndReplacesTheGradient) {
  const V x(Array<double>{1, 2}, true);
  std::vector<Array<double>> seen;
  const auto look = [&](const V& dy) { seen.push_back(dy.value()); };
  const V y = on_gradient(x * x, look);
  EXPECT_EQ(y.value(), (Array<double>{1, 4}));
  sum(y * y).backward();
  ASSERT_EQ(seen.size(), 1u) << "once, when all of it is there";
  EXPECT_EQ(seen[0], (Array<double>{2, 8}));
  EXPECT_EQ(x.grad().value(), (Array<double>{4, 32}));
  const V clipped = on_gradient(x, [](const V& dy) { return clamp(dy, -1, 1); });
  EXPECT_EQ(grad(sum(clipped * V({0.5, -3.0})), {x})[0].value(), (Array<double>{0.5, -1}));
  const auto reversed = [](const List& at) {
    return exp(on_gradient(at[0], [](const V& dy) { return dy * dy; }));
  };
  const V gradient = grad(sum(reversed({x})), {x}, {.create_graph = true})[0];
  const double once =
      2 * std::exp(4);  // what the hook computes is recorded, and the way back leads through it again
  EXPECT_NEAR(grad(sum(gradient), {x})[0].value()(1), once * once, 1e-9);
  const V wrong = on_gradient(x, [](const V&) { return V(1.0); });
  EXPECT_EQ(message_of<ShapeError>([&] { sum(wrong).backward(); }),
            "backward: 'on_gradient' must return a gradient of shape (2) for input 0, got ()");
}

}  // namespace checkpoint_test
