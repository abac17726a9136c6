// What there is to test of norms with a weight for each channel.
#include <xgrad/ops/norm/channel_norms.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <xgrad/ops/norm/layer_norm.hpp>
#include <xgrad/ops/norm/rms_norm.hpp>
#include <xgrad/ops/reduce/reductions.hpp>
#include <xgrad/ops/shape/shapes.hpp>

#include <gtest/gtest.h>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::channel_norms_rows {

constexpr float inf = std::numeric_limits<float>::infinity();

using naive::Arguments, naive::at, naive::Numbers;

/// The set of elements that share a mean: which of these axes they differ in, and how many channels there
/// are.
struct Sample {
  Shape x;
  std::size_t groups;  ///< for each sample; 0: each channel over all samples
  bool weight, bias;
  double eps = 1e-5;
};

/// The number of the set that the element is in.
std::size_t set_of(const Sample& s, const Shape& index) {
  if (s.groups == 0) return index[1];
  return index[0] * s.groups + index[1] / (s.x[1] / s.groups);
}

Reference naive_norm(const Sample& s) {
  return [=](const Arguments& x) {
    const std::size_t sets = s.groups == 0 ? s.x[1] : s.x[0] * s.groups;
    std::vector<long double> sums(sets), squares(sets), counts(sets);
    naive::for_each_index(s.x, [&](const Shape& index) {
      sums[set_of(s, index)] += at(x[0], index);
      counts[set_of(s, index)] += 1;
    });
    naive::for_each_index(s.x, [&](const Shape& index) {
      const long double centred = at(x[0], index) - sums[set_of(s, index)] / counts[set_of(s, index)];
      squares[set_of(s, index)] += centred * centred;
    });
    return naive::generated(s.x, [&](const Shape& index) {
      const std::size_t set = set_of(s, index);
      const long double centred = at(x[0], index) - sums[set] / counts[set];
      const auto y = static_cast<double>(centred / std::sqrt(squares[set] / counts[set] + s.eps));
      const double scale = s.weight ? x[1].data()[index[1]] : 1,
                   shift = s.bias ? x.back().data()[index[1]] : 0;
      return y * scale + shift;
    });
  };
}

enum class Kind { batch, group, instance };

Case norm_case(Kind kind, const Sample& s) {
  std::vector<Input> inputs{s.x};
  if (s.weight) inputs.push_back(Shape{s.x[1]});
  if (s.bias) inputs.push_back(Shape{s.x[1]});
  const auto call = [=](const auto& x) {
    using V = typename std::decay_t<decltype(x)>::value_type;
    const V weight = s.weight ? x[1] : V(), bias = s.bias ? x.back() : V();
    if (kind == Kind::batch)
      return xgrad::batch_norm(x[0], V(), V(), weight, bias, {.training = true, .eps = s.eps});
    if (kind == Kind::group) return xgrad::group_norm(x[0], s.groups, weight, bias, s.eps);
    return xgrad::instance_norm(x[0], V(), V(), weight, bias, {.eps = s.eps});
  };
  return make_case(inputs, call, naive_norm(s));
}

std::vector<Case> cases(Kind kind, const std::vector<Sample>& samples) {
  std::vector<Case> all;
  for (const Sample& sample : samples) all.push_back(norm_case(kind, sample));
  return all;
}

/// By running statistics that are not the input's.
Case running_case(Kind kind, const Shape& shape) {
  const auto call = [=](const auto& x) {
    using V = typename std::decay_t<decltype(x)>::value_type;
    using T = typename V::value_type;
    const V mean(Array<T>(Shape{shape[1]}, T(0.25))), variance(Array<T>(Shape{shape[1]}, T(1.5)));
    if (kind == Kind::batch) return xgrad::batch_norm(x[0], mean, variance, x[1], x[2], {.eps = 0.5});
    return xgrad::instance_norm(x[0], mean, variance, x[1], x[2], {.use_input_stats = false, .eps = 0.5});
  };
  return make_case({shape, {shape[1]}, {shape[1]}}, call, [](const Arguments& x) {
    return naive::generated(x[0].shape(), [&](const Shape& index) {
      return (at(x[0], index) - 0.25) / std::sqrt(2.0) * x[1].data()[index[1]] + x[2].data()[index[1]];
    });
  });
}

const Rows rows([] {
  Op batch{"channel_norms.batch_norm", cases(Kind::batch, {{{4, 3}, 0, true, true},
                                                           {{2, 3, 5}, 0, true, false},
                                                           {{3, 2, 2, 3}, 0, false, false, 0.1}})};
  batch.cases.push_back(running_case(Kind::batch, {2, 3, 4}));
  batch.cases.push_back(running_case(Kind::batch, {2, 3}));
  batch.large = cases(Kind::batch, {{{5, 7, 67, 61}, 0, true, true}, {{3001, 50}, 0, true, true}});
  batch.errors = {
      error<ShapeError>("batch_norm: x must have the axes (batch, channels, ...), got (3)",
                        [] { xgrad::batch_norm(x(3), {}, {}, {}, {}, {.training = true}); }),
      error<ShapeError>("batch_norm: weight must have shape (3) to fit x (2, 3), got (2)",
                        [] { xgrad::batch_norm(x(2, 3), {}, {}, x(2), {}, {.training = true}); }),
      error<ShapeError>("batch_norm: running_var must have shape (3) to fit x (2, 3), got (4)",
                        [] { xgrad::batch_norm(x(2, 3), x(3), x(4)); }),
      error<ValueError>("batch_norm: running_mean and running_var must be given",
                        [] { xgrad::batch_norm(x(2, 3), {}, {}); }),
      error<ValueError>("batch_norm: running_mean and running_var must be given both or neither",
                        [] { xgrad::batch_norm(x(2, 3), x(3), {}, {}, {}, {.training = true}); }),
      error<ValueError>("batch_norm: eps must be at least 0, got -1",
                        [] { xgrad::batch_norm(x(2, 3), x(3), x(3), {}, {}, {.eps = -1}); }),
      error<ValueError>("batch_norm: momentum must be in [0, 1], got nan",
                        [] { xgrad::batch_norm(x(2, 3), x(3), x(3), {}, {}, {.momentum = nan}); }),
      error<ValueError>("batch_norm: there must be more than one element to normalize over, got x (1, 3)",
                        [] { xgrad::batch_norm(x(1, 3), {}, {}, {}, {}, {.training = true}); })};

  Op group{"channel_norms.group_norm", cases(Kind::group, {{{2, 4}, 2, true, true},
                                                           {{2, 4, 3}, 4, true, false},
                                                           {{2, 6, 2, 2}, 3, false, true, 0.1},
                                                           {{1, 2, 3}, 1, true, true}})};
  group.large = cases(Kind::group, {{{5, 8, 67, 61}, 4, true, true}});
  group.errors = {
      error<ValueError>(
          "group_norm: num_groups must be at least 1 and divide the channels of x (2, 4), got 3",
          [] { xgrad::group_norm(x(2, 4), 3); }),
      error<ValueError>("group_norm: there must be more than one element to normalize over, got x (1, 2)",
                        [] { xgrad::group_norm(x(1, 2), 2); }),
      error<ValueError>("group_norm: eps must be at least 0, got -1",
                        [] { xgrad::group_norm(x(2, 4), 2, {}, {}, -1); }),
      error<ShapeError>("group_norm: bias must have shape (4) to fit x (2, 4), got (2)",
                        [] { xgrad::group_norm(x(2, 4), 2, {}, x(2)); })};

  Op instance{"channel_norms.instance_norm", cases(Kind::instance, {{{2, 3, 4}, 3, true, true},
                                                                    {{2, 2, 2, 3}, 2, false, true, 0.1},
                                                                    {{1, 2, 5}, 2, false, false}})};
  instance.cases.push_back(running_case(Kind::instance, {2, 3, 4}));
  instance.large = cases(Kind::instance, {{{5, 7, 67, 61}, 7, true, true}});
  instance.errors = {
      error<ValueError>(
          "instance_norm: there must be more than one element to normalize over, got x (2, 3, 1)",
          [] { xgrad::instance_norm(x(2, 3, 1)); }),
      error<ValueError>("instance_norm: eps must be at least 0, got -1",
                        [] { xgrad::instance_norm(x(2, 3, 2), {}, {}, {}, {}, {.eps = -1}); }),
      error<ValueError>("instance_norm: momentum must be in [0, 1], got 1.5",
                        [] { xgrad::instance_norm(x(2, 3, 2), {}, {}, {}, {}, {.momentum = 1.5}); }),
      error<ValueError>("instance_norm: running_mean and running_var must be given", [] {
        xgrad::instance_norm(x(2, 3, 2), {}, {}, {}, {}, {.use_input_stats = false});
      })};
  return std::vector<Op>{batch, group, instance};
});

/// The statistics of a call, copied where it changes them.
template <class T>
Variable<T> copied(const Variable<T>& v) {
  return v.defined() ? Variable<T>(v.value()) : v;
}

const Conformance conformance{
    {"batch_norm",
     []<class T>(const Call<T>& c) -> Results<T> {
       const Variable<T> mean = copied(c.optional(3)), variance = copied(c.optional(4));
       const bool training = c.flag("training");
       const Variable<T> y =
           batch_norm(c.x(), mean, variance, c.optional(1), c.optional(2),
                      {.training = training, .momentum = c.number("momentum"), .eps = c.number("eps")});
       if (!training || !mean.defined()) return {y};
       return {y, mean, variance};
     }},
    {"group_norm",
     [](const auto& c) {
       return group_norm(c.x(), c.integer("num_groups"), c.optional(1), c.optional(2), c.number("eps"));
     }},
    {"instance_norm", [](const auto& c) {
       return instance_norm(c.x(), copied(c.optional(3)), copied(c.optional(4)), c.optional(1), c.optional(2),
                            {.use_input_stats = c.flag("use_input_stats"),
                             .momentum = c.number("momentum"),
                             .eps = c.number("eps")});
     }}};

Draw norm_draw(const char* op, Kind kind) {
  return {op, [=](Drawing& d) {
            const Name x = d.numbers(d.shape(kind == Kind::instance ? 3 : 2, 4));
            const Shape shape = d.shape(x);
            if (xgrad::element_count(shape) == 0) return;
            const std::size_t channels = shape[1], inner = xgrad::element_count(shape) / shape[0] / channels;
            if (kind == Kind::instance ? inner == 1 : shape[0] * inner == 1) return;
            const Name weight = d.chance(0.6) ? d.numbers(Shape{channels}) : Name();
            const Name bias = d.chance(0.6) ? d.numbers(Shape{channels}) : Name();
            const Attr eps{"eps", d.one_of({1e-3, 0.1})};
            if (kind == Kind::group) {
              const std::ptrdiff_t groups = channels % 2 == 0 && d.chance(0.5) ? 2 : 1;
              d.call(op, {x, weight, bias}, {{"num_groups", groups}, eps});
              return;
            }
            const bool by_batch = d.chance(0.7);
            const Name mean = by_batch ? Name() : d.constant(Shape{channels});
            const Name variance = by_batch ? Name() : d.constant(Shape{channels}, positive);
            d.call(
                op, {x, weight, bias, mean, variance},
                {{kind == Kind::batch ? "training" : "use_input_stats", by_batch}, {"momentum", 0.1}, eps});
          }};
}

const Draws draws{norm_draw("batch_norm", Kind::batch), norm_draw("group_norm", Kind::group),
                  norm_draw("instance_norm", Kind::instance)};

TEST(ChannelNormsTest, RunningStatisticsFollowTheBatches) {
  const Variable<double> mean(Array<double>{0, 10}), variance(Array<double>{1, 1});
  const Variable<double> x(Array<double>{{1, 2}, {3, 6}}, true);
  const Variable<double> y = batch_norm(x, mean, variance, {}, {}, {.training = true, .momentum = 0.25});
  EXPECT_EQ(mean.value(), (Array<double>{0.5, 8.5}));
  EXPECT_EQ(variance.value(), (Array<double>{0.75 + 0.25 * 2, 0.75 + 0.25 * 8}));
  EXPECT_NEAR(y.value()(0, 0), -1, 1e-5);
}

/// Of samples with the means 1 and 2 and the unbiased variances 2 and 8.
TEST(ChannelNormsTest, RunningStatisticsOfInstancesAreMeans) {
  const Variable<double> mean(Array<double>{0}), variance(Array<double>{0});
  instance_norm(Variable<double>(Array<double>{{{0, 2}}, {{0, 4}}}), mean, variance, {}, {}, {.momentum = 1});
  EXPECT_EQ(mean.value(), (Array<double>{1.5}));
  EXPECT_EQ(variance.value(), (Array<double>{5}));
}

/// The norms do not change when x and its deviations become `size` times as large, but for eps; gradients are
/// divided by it.
template <class T>
void expect_norms_in_range(T size) {
  const Array<T> unit{{1, 2, -3, 5}, {4, -1, 2, 2}, {-2, 3, 7, 1}};
  const std::vector<std::function<Variable<T>(const Variable<T>&)>> norms{
      [](const Variable<T>& x) { return xgrad::layer_norm(x, 4, {}, {}, 0); },
      [](const Variable<T>& x) { return xgrad::rms_norm(x, 4, {}, {.eps = 0}); },
      [](const Variable<T>& x) { return xgrad::group_norm(x, 2, {}, {}, 0); },
      [](const Variable<T>& x) { return xgrad::batch_norm(x, {}, {}, {}, {}, {.training = true, .eps = 0}); },
      [](const Variable<T>& x) {
        return xgrad::instance_norm(reshape(x, {3, 2, 2}), {}, {}, {}, {}, {.eps = 0});
      }};
  for (const auto& norm : norms) {
    const Variable<T> x(unit, true), large(Array<T>(unit * size), true);
    const Variable<T> y = norm(x), y_of_large = norm(large);
    expect_near(y_of_large.value(), y.value(), 1e-5, "y");
    const Variable<T> weights(Array<T>(xt::reshape_view(unit, y.shape()) + T(0.5)));
    const Array<T> dx = grad(sum(y * weights), {x})[0].value();
    const Array<T> dx_of_large = grad(sum(y_of_large * weights), {large})[0].value();
    expect_near(Array<T>(dx_of_large * size), dx, 1e-4, "dx");
  }
}

TEST(ChannelNormsTest, SquaresMayLeaveTheRange) {
  for (const float size : {1e20f, 1e25f, 1e30f, 1e-25f}) expect_norms_in_range(size);
  for (const double size : {1e155, 1e200, 1e-200}) expect_norms_in_range(size);
}

TEST(ChannelNormsTest, AnInfiniteElementIsNotHidden) {
  const Variable<float> x(Array<float>{{inf, 3}, {-2, 1}, {1, 2}});
  const Variable<float> y = batch_norm(x, {}, {}, {}, {}, {.training = true});
  for (const std::size_t row : {0, 1, 2}) {
    EXPECT_TRUE(std::isnan(y.value()(row, 0))) << row;
    EXPECT_TRUE(std::isfinite(y.value()(row, 1))) << row;
    EXPECT_EQ(std::isnan(group_norm(x, 1).value()(row, 1)), row == 0) << row;
    EXPECT_EQ(std::isnan(layer_norm(x, 2).value()(row, 1)), row == 0) << row;
  }
}

TEST(ChannelNormsTest, ChannelsWithALargeOffsetHaveTheGradientsOfTheirDeviations) {
  const Variable<float> far(Array<float>{{{1e7F, 1e7F + 1, 1e7F + 2, 1e7F + 3}}}, true);
  const Variable<float> near(Array<float>{{{-1.5F, -0.5F, 0.5F, 1.5F}}}, true);
  const Variable<float> weight(Array<float>{2}, true), seed(Array<float>{{{1, -2, 3, 5}}});
  const auto check = [&](const char* name, const auto& op) {
    const Variable<float> y = op(far), expected = op(near);
    expect_near(y.value(), expected.value(), 1e-6, name);
    const auto of_far = grad(y, {far, weight}, {.seed = seed});
    const auto of_near = grad(expected, {near, weight}, {.seed = seed});
    expect_near(of_far[0].value(), of_near[0].value(), 1e-5, name);
    expect_near(of_far[1].value(), of_near[1].value(), 1e-5, name);
  };
  const Variable<float> mean(Array<float>{0}), variance(Array<float>{0});
  check("batch_norm", [&](const Variable<float>& x) {
    return batch_norm(x, mean, variance, weight, {}, {.training = true, .momentum = 1});
  });
  EXPECT_FLOAT_EQ(variance.value()(0), 5.0F / 3);
  check("group_norm", [&](const Variable<float>& x) { return group_norm(x, 1, weight); });
}

}  // namespace xgrad_tests::channel_norms_rows
