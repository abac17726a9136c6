// What there is to test of the reductions.
#include <xgrad/ops/reduce/reductions.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <xgrad/autograd/gradcheck.hpp>

#include "../common/call.hpp"
#include "../common/draw.hpp"
#include "../common/expect_near.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::reductions_rows {

using naive::at, naive::for_each_index, naive::Numbers, naive::Arguments;

Reference naive_amax(Dims axes, bool keepdim) {
  return [=](const Arguments& x) {
    return naive::folded(x[0], axes, keepdim, -std::numeric_limits<double>::infinity(),
                         [](double a, double b) { return std::max(a, b); });
  };
}

Reference naive_amin(Dims axes, bool keepdim) {
  return [=](const Arguments& x) {
    return naive::folded(x[0], axes, keepdim, std::numeric_limits<double>::infinity(),
                         [](double a, double b) { return std::min(a, b); });
  };
}

Reference naive_logsumexp(Dims axes, bool keepdim) {
  return [=](const Arguments& x) {
    const Numbers largest = naive_amax(axes, true)(x);
    const Numbers shares = naive::generated(
        x[0].shape(), [&](const Shape& index) { return std::exp(at(x[0], index) - at(largest, index)); });
    Numbers y = naive::sum(axes, keepdim)({shares});
    for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = largest.data()[i] + std::log(y.data()[i]);
    return y;
  };
}

Reference naive_var(Dims axes, bool keepdim, double correction) {
  return [=](const Arguments& x) {
    const Numbers mean = naive::mean(axes, true)(x);
    Numbers squares = x[0];
    for_each_index(x[0].shape(), [&](const Shape& index) {
      const double deviation = at(x[0], index) - at(mean, index);
      at(squares, index) = deviation * deviation;
    });
    Numbers y = naive::sum(axes, keepdim)({squares});
    const double count = static_cast<double>(x[0].size()) / static_cast<double>(y.size());
    for (double& element : y.storage()) element /= count - correction;
    return y;
  };
}

std::vector<std::pair<Shape, Dims>> reductions() {
  return {{{2, 3}, 0},          {{2, 3}, -1}, {{2, 3}, {0, 1}}, {{2, 3, 4}, 1},
          {{2, 3, 4}, {0, -1}}, {{17}, 0},    {{9, 17}, 0},     {{9, 17}, 1},
          {{3, 1}, 1},          {{0, 3}, 1},  {{}, 0},          {{2, 3}, Shape{}}};
}

/// Rows and columns that are divided each in their ways: rows beside each other, long ones in blocks, columns
/// in strips and in blocks of rows, and matrices beside each other.
std::vector<std::pair<Shape, Dims>> large_reductions() {
  return {{plane, 1},         {wide, 1},          {{300, 1100}, 0},
          {{20, 9000}, 0},    {tall, 0},          {{5, 129, 331}, 1},
          {{5, 5000, 7}, 1},  {wide, 0},          {{12, 150, 80}, {0, 2}},
          {{2, 70000, 3}, 1}, {{140001}, Dims{0}}};
}

template <class Some>
std::vector<Case> large_cases(const std::vector<std::pair<Shape, Dims>>& samples, const Some& some,
                              Reference (*reference)(Dims, bool)) {
  std::vector<Case> cases;
  for (const auto& [shape, dims] : samples) {
    cases.push_back(make_case(
        {shape}, [some, dims = dims](const auto& x) { return some(x[0], dims, true); },
        reference(dims, true)));
  }
  return cases;
}

template <class F, class G>
Op reduction_op(const std::string& name, const F& all, const G& some, Reference (*reference)(Dims, bool)) {
  Op op{"reductions." + name};
  for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{17}, Shape{9, 17}, Shape{2, 3, 4}}) {
    Shape axes = shape;
    for (std::size_t k = 0; k < axes.size(); ++k) axes[k] = k;
    op.cases.push_back(make_case({shape}, all, reference(axes, false)));
  }
  for (const auto& [shape, dims] : reductions()) {
    for (const bool keepdim : {false, true}) {
      op.cases.push_back(make_case(
          {shape}, [=, dims = dims](const auto& x) { return some(x[0], dims, keepdim); },
          reference(dims, keepdim)));
    }
  }
  op.large = large_cases(large_reductions(), some, reference);
  op.errors = {error<IndexError>(name + ": axis 2 is out of range for x (2, 3)",
                                 [some] { some(x(2, 3), Dims{2}, false); }),
               error<IndexError>(name + ": axis -3 is out of range for x (2, 3)",
                                 [some] { some(x(2, 3), Dims{-3}, true); }),
               error<ValueError>(name + ": dims must name an axis once, got (1, -1) for x (2, 3)", [some] {
                 some(x(2, 3), Dims{1, -1}, false);
               })};
  return op;
}

Op sum_op() {
  const auto all = [](const auto& x) { return xgrad::sum(x[0]); };
  const auto some = [](const auto& x, const Dims& dims, bool keepdim) {
    return xgrad::sum(x, dims, {.keepdim = keepdim});
  };
  Op op = reduction_op("sum", all, some, naive::sum);
  op.cases.push_back(make_case({{0}}, all, naive::sum(0, false)));
  op.cases.push_back(make_case(
      {{0, 3}}, [](const auto& x) { return xgrad::sum(x[0], 0); }, naive::sum(0, false)));
  // more blocks than are taken together
  op.large.push_back(make_case({{1100001}}, all, naive::sum(0, false)));
  return op;
}

Op mean_op() {
  const auto all = [](const auto& x) { return xgrad::mean(x[0]); };
  const auto some = [](const auto& x, const Dims& dims, bool keepdim) {
    return xgrad::mean(x, dims, {.keepdim = keepdim});
  };
  return reduction_op("mean", all, some, naive::mean);
}

template <class All, class Some>
Op extreme_op(const char* name, const All& all, const Some& some, Reference (*reference)(Dims, bool),
              const std::vector<std::pair<Shape, Dims>>& large) {
  Op op{std::string("reductions.") + name};
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 3, 4}, Shape{17}, Shape{}})
    op.cases.push_back(make_case({shape}, all, [reference](const std::vector<Array<double>>& x) {
      Shape every = x[0].shape();
      for (std::size_t axis = 0; axis < every.size(); ++axis) every[axis] = axis;
      return reference(every, false)(x);
    }));
  for (const Dims& dims : {Dims{0}, Dims{-1}, Dims{1}, Dims{0, 2}, Dims{2, -2}, Dims{0, 1, 2}}) {
    for (const bool keepdim : {false, true}) {
      op.cases.push_back(make_case(
          {{2, 3, 33}}, [=](const auto& x) { return some(x[0], dims, keepdim); }, reference(dims, keepdim)));
    }
  }
  op.cases.push_back(make_case(
      {{0, 3}}, [=](const auto& x) { return some(x[0], 1, false); }, reference(1, false)));
  op.large = large_cases(large, some, reference);
  const std::string prefix = name;
  op.errors = {error<IndexError>(prefix + ": axis 2 is out of range for x (2, 3)",
                                 [some] { some(x(2, 3), 2, false); }),
               error<ValueError>(prefix + ": dims must name an axis once, got (0, 0) for x (2, 3)", [some] {
                 some(x(2, 3), {0, 0}, false);
               })};
  return op;
}

Op amax_op() {
  Op op = extreme_op(
      "amax", [](const auto& x) { return xgrad::amax(x[0]); },
      [](const auto& x, const Dims& dims, bool keepdim) {
        return xgrad::amax(x, dims, {.keepdim = keepdim});
      },
      naive_amax, large_reductions());
  op.errors.push_back(error<ValueError>("amax: there are no elements to choose from in x (0, 3)",
                                        [] { xgrad::amax(x(0, 3), 0); }));
  return op;
}

Op amin_op() {
  Op op = extreme_op(
      "amin", [](const auto& x) { return xgrad::amin(x[0]); },
      [](const auto& x, const Dims& dims, bool keepdim) {
        return xgrad::amin(x, dims, {.keepdim = keepdim});
      },
      naive_amin, large_reductions());
  op.errors.push_back(
      error<ValueError>("amin: there are no elements to choose from in x (0)", [] { xgrad::amin(x(0)); }));
  return op;
}

Op logsumexp_op() {
  return extreme_op(
      "logsumexp",
      [](const auto& x) {
        Shape every(x[0].dimension(), 0);
        for (std::size_t axis = 0; axis < every.size(); ++axis) every[axis] = axis;
        return xgrad::logsumexp(x[0], every);
      },
      [](const auto& x, const Dims& dims, bool keepdim) {
        return xgrad::logsumexp(x, dims, {.keepdim = keepdim});
      },
      naive_logsumexp, {{plane, 1}, {wide, 1}, {tall, 0}});
}

Op var_op() {
  Op op{"reductions.var"};
  for (const double correction : {0, 1}) {
    for (const bool keepdim : {false, true}) {
      for (const Dims& dims : {Dims{0}, Dims{-1}, Dims{0, 2}, Dims{0, 1, 2}}) {
        op.cases.push_back(make_case(
            {{2, 3, 17}},
            [=](const auto& x) {
              return xgrad::var(x[0], dims, {.correction = correction, .keepdim = keepdim});
            },
            naive_var(dims, keepdim, correction)));
      }
    }
  }
  op.cases.push_back(make_case(
      {{5}}, [](const auto& x) { return xgrad::var(x[0]); }, naive_var(0, false, 1)));
  op.large = large_cases(
      {{plane, 1}, {wide, 1}, {tall, 0}},
      [](const auto& x, const Dims& dims, bool keepdim) { return xgrad::var(x, dims, {.keepdim = keepdim}); },
      [](Dims dims, bool keepdim) { return naive_var(dims, keepdim, 1); });
  op.errors = {error<IndexError>("var: axis 2 is out of range for x (2, 3)", [] { xgrad::var(x(2, 3), 2); })};
  return op;
}

Reference naive_std(Dims axes, bool keepdim, double correction) {
  return [=](const Arguments& x) {
    Numbers y = naive_var(axes, keepdim, correction)(x);
    for (double& element : y.storage()) element = std::sqrt(element);
    return y;
  };
}

Op std_op() {
  Op op{"reductions.std"};
  for (const double correction : {0, 1}) {
    for (const Dims& dims : {Dims{0}, Dims{-1}, Dims{0, 2}, Dims{0, 1, 2}}) {
      op.cases.push_back(make_case(
          {{2, 3, 17}},
          [=](const auto& x) {
            return xgrad::std(x[0], dims, {.correction = correction, .keepdim = correction > 0});
          },
          naive_std(dims, correction > 0, correction)));
    }
  }
  op.cases.push_back(make_case(
      {{5}}, [](const auto& x) { return xgrad::std(x[0]); }, naive_std(0, false, 1)));
  op.large = large_cases(
      {{plane, 1}, {wide, 1}, {tall, 0}},
      [](const auto& x, const Dims& dims, bool keepdim) { return xgrad::std(x, dims, {.keepdim = keepdim}); },
      [](Dims dims, bool keepdim) { return naive_std(dims, keepdim, 1); });
  op.errors = {error<IndexError>("std: axis 2 is out of range for x (2, 3)", [] { xgrad::std(x(2, 3), 2); })};
  return op;
}

Reference naive_norm(double p, Dims axes, bool keepdim) {
  return [=](const Arguments& x) {
    Numbers sizes = x[0];
    for (double& element : sizes.storage()) element = std::abs(element);
    if (std::isinf(p)) return (p > 0 ? naive_amax : naive_amin)(axes, keepdim)({sizes});
    for (double& element : sizes.storage()) element = p == 0 ? element != 0 : std::pow(element, p);
    Numbers y = naive::sum(axes, keepdim)({sizes});
    for (double& element : y.storage()) element = p == 0 ? element : std::pow(element, 1 / p);
    return y;
  };
}

Op norm_op() {
  Op op{"reductions.norm"};
  for (const double p : {2.0, 1.0, 0.0, 3.0, 1.5, 0.5, -1.0, double{inf}, -double{inf}}) {
    const Range range{-2, 2, 0.1};  // |x| has a kink at 0
    for (const auto& [shape, dims] : reductions()) {
      if (p < 0 && shape.size() == 2 && shape[0] == 0) continue;
      op.cases.push_back(make_case(
          {Input(shape, range)},
          [p, dims = dims](const auto& x) {
            return xgrad::norm(x[0], p, dims, {.keepdim = dims.size() > 1});
          },
          naive_norm(p, dims, dims.size() > 1)));
    }
    op.cases.push_back(make_case(
        {Input({2, 3, 4}, range)}, [p](const auto& x) { return xgrad::norm(x[0], p); },
        naive_norm(p, {0, 1, 2}, false)));
  }
  for (const double p : {2.0, 3.0}) {
    for (const auto& [shape, dims] : large_reductions()) {
      op.large.push_back(make_case(
          {shape}, [p, dims = dims](const auto& x) { return xgrad::norm(x[0], p, dims); },
          naive_norm(p, dims, false)));
    }
  }
  const std::string none = "norm: without elements, p must be finite and at least 0, got ";
  op.errors = {
      error<IndexError>("norm: axis 2 is out of range for x (2, 3)", [] { xgrad::norm(x(2, 3), 2, 2); }),
      error<ValueError>("norm: dims must name an axis once, got (0, 0) for x (2, 3)",
                        [] {
                          xgrad::norm(x(2, 3), 2, {0, 0});
                        }),
      error<ValueError>(none + "inf for x (0, 3)", [] { xgrad::norm(x(0, 3), inf, 0); }),
      error<ValueError>(none + "-1 for x (0)", [] { xgrad::norm(x(0), -1); })};
  return op;
}

Reference naive_prod(Dims axes, bool keepdim) {
  return [=](const Arguments& x) {
    return naive::folded(x[0], axes, keepdim, 1, [](double a, double b) { return a * b; });
  };
}

Op prod_op() {
  Op op{"reductions.prod"};
  for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{17}, Shape{2, 3, 4}, Shape{0}, Shape{2, 0}}) {
    Shape axes = shape;
    for (std::size_t k = 0; k < axes.size(); ++k) axes[k] = k;
    op.cases.push_back(make_case(
        {shape}, [](const auto& x) { return xgrad::prod(x[0]); }, naive_prod(axes, false)));
  }
  for (const auto& [shape, dim] : {std::pair<Shape, int>{{2, 3}, 0},
                                   {{2, 3}, -1},
                                   {{2, 3, 4}, 1},
                                   {{2, 17}, 1},
                                   {{9, 2}, 0},
                                   {{3, 1}, 1},
                                   {{0, 3}, 0},
                                   {{0, 3}, 1},
                                   {{3, 0, 2}, 1},
                                   {{}, 0},
                                   {{}, -1}}) {
    for (const bool keepdim : {false, true}) {
      op.cases.push_back(make_case(
          {shape}, [=, dim = dim](const auto& x) { return xgrad::prod(x[0], dim, {.keepdim = keepdim}); },
          naive_prod(dim, keepdim)));
    }
  }
  const Range near_one{0.9999, 1.0001};
  for (const auto& [shape, dim] : {std::pair<Shape, int>{plane, 1},
                                   {plane, 0},
                                   {wide, 1},
                                   {tall, 0},
                                   {{3, 2100}, 1},
                                   {{2, 300, 1100}, 1}}) {
    op.large.push_back(make_case(
        {Input(shape, near_one)}, [dim = dim](const auto& x) { return xgrad::prod(x[0], dim); },
        naive_prod(dim, false)));
  }
  op.large.push_back(make_case(
      {Input(long_vector, near_one)}, [](const auto& x) { return xgrad::prod(x[0]); }, naive_prod(0, false)));
  op.errors = {
      error<IndexError>("prod: axis 2 is out of range for x (2, 3)", [] { xgrad::prod(x(2, 3), 2); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{sum_op(), mean_op(), amax_op(), amin_op(), logsumexp_op(),
                         var_op(), std_op(),  norm_op(), prod_op()};
});

const Conformance conformance{
    {"sum", [](const auto& c) { return sum(c.x(), c.axes(), {.keepdim = c.flag("keepdim")}); }},
    {"mean", [](const auto& c) { return mean(c.x(), c.axes(), {.keepdim = c.flag("keepdim")}); }},
    {"amax", [](const auto& c) { return amax(c.x(), c.axes(), {.keepdim = c.flag("keepdim")}); }},
    {"amin", [](const auto& c) { return amin(c.x(), c.axes(), {.keepdim = c.flag("keepdim")}); }},
    {"logsumexp", [](const auto& c) { return logsumexp(c.x(), c.axes(), {.keepdim = c.flag("keepdim")}); }},
    {"var",
     [](const auto& c) {
       return var(c.x(), c.axes(), {.correction = c.number("correction"), .keepdim = c.flag("keepdim")});
     }},
    {"std",
     [](const auto& c) {
       return xgrad::std(c.x(), c.axes(),
                         {.correction = c.number("correction"), .keepdim = c.flag("keepdim")});
     }},
    {"norm",
     [](const auto& c) {
       const double p = c.has_attr("p") ? c.number("p") : c.number("ord", 2);
       if (!c.has_attr("dim") && !c.flag("keepdim")) return norm(c.x(), p);
       return norm(c.x(), p, c.axes(), {.keepdim = c.flag("keepdim")});
     }},
    {"prod", [](const auto& c) {
       return c.has_attr("dim") ? prod(c.x(), c.dim(), {.keepdim = c.flag("keepdim")}) : prod(c.x());
     }}};

Draw reduction_draw(const char* op) {
  return {op, [op](Drawing& d) {
            const Name x = d.numbers();
            d.call(op, {x}, {{"dim", d.axes(x)}, {"keepdim", d.chance(0.5)}});
          }};
}

/// A call where no other element is near the extreme one.
Draw extreme_draw(const char* op) {
  return {op, [op](Drawing& d) {
            const Name x = d.numbers();
            const Attr::Value axes = d.axes(x);
            if (d.value(x).size() == 0) return;
            const Array<double> extremes = d.result(op, {x}, {{"dim", axes}, {"keepdim", true}});
            if (d.is_clear_of(0, d.value(x) - extremes))
              d.call(op, {x}, {{"dim", axes}, {"keepdim", d.chance(0.5)}});
          }};
}

/// Of elements and results that have no kink near them.
void draw_norm(Drawing& d) {
  const Name x = d.numbers();
  const double p = d.one_of({2.0, 2.0, 1.0, 0.0, 3.0, 1.5, double{inf}, -double{inf}});
  const Attr::Value axes = d.axes(x);
  const Attr ord{"p", std::isinf(p) ? Attr::Value(p > 0 ? "inf" : "-inf") : p};
  const Array<double>& elements = d.value(x);
  if (elements.size() == 0 ||
      std::any_of(elements.begin(), elements.end(), [](double element) { return std::abs(element) < 0.01; }))
    return;
  if (std::isinf(p)) {
    const Array<double> sizes = xt::abs(d.value(x));
    const Array<double> y = d.result("norm", {x}, {ord, {"dim", axes}, {"keepdim", true}});
    if (!d.is_clear_of(0, sizes - y)) return;
  }
  d.call("norm", {x}, {ord, {"dim", axes}, {"keepdim", d.chance(0.5)}});
}

/// Perhaps of zeros, too.
void draw_prod(Drawing& d) {
  Name x = d.within(d.numbers(), {-1.5, 1.5});
  if (d.chance(0.3)) x = drawn(d, "masked_fill", {x, d.mask(d.shape(x))}, {{"value", 0.0}});
  const bool all = d.chance(0.3);
  d.call("prod", {x}, {{"dim", all ? Attr::Value(nullptr) : d.axis(x)}, {"keepdim", !all && d.chance(0.5)}});
}

/// Of deviations that are no nearer to 0 than the kink of the root allows.
void draw_std(Drawing& d) {
  const Name x = d.numbers();
  const std::vector<Attr> attrs{
      {"dim", d.axes(x)}, {"correction", d.one_of<std::ptrdiff_t>({0, 1})}, {"keepdim", d.chance(0.5)}};
  const Array<double> y = d.result("std", {x}, attrs);
  if (std::all_of(y.storage().begin(), y.storage().end(), [](double element) { return element > 0.1; }))
    d.call("std", {x}, attrs);
}

void draw_var(Drawing& d) {
  const Name x = d.numbers();
  d.call("var", {x},
         {{"dim", d.axes(x)}, {"correction", d.one_of<std::ptrdiff_t>({0, 1})}, {"keepdim", d.chance(0.5)}});
}

const Draws draws{reduction_draw("sum"), reduction_draw("mean"),      extreme_draw("amax"),
                  extreme_draw("amin"),  reduction_draw("logsumexp"), {"var", draw_var},
                  {"std", draw_std},     {"norm", draw_norm},         {"prod", draw_prod}};

TEST(ReductionsTest, SumsOfManyFloatsAreAccurate) {
  const Array<float> tenths(Shape{1000, 1000}, 0.1f);
  EXPECT_NEAR(sum(Variable<float>(tenths)).item(), 100000.0, 0.1);
  EXPECT_NEAR(sum(Variable<float>(tenths), 0).value()(7), 100.0, 1e-3);
  EXPECT_NEAR(mean(Variable<float>(tenths), 1).value()(7), 0.1, 1e-6);
}

TEST(ReductionsTest, MeanOfNothingIsNan) {
  EXPECT_TRUE(std::isnan(mean(Variable<float>(Array<float>::from_shape({0}))).item()));
  EXPECT_EQ(sum(Variable<float>(Array<float>::from_shape({0}))).item(), 0);
}

TEST(ReductionsTest, ANanAnywhereIsTheExtreme) {
  for (const std::size_t n : {1, 2, 7, 8, 31, 32, 33, 77}) {
    for (std::size_t at = 0; at < n; ++at) {
      Array<float> x = xt::arange<float>(-3, static_cast<float>(n) - 3);
      x(at) = nan;
      Array<float> columns = xt::zeros<float>({n, std::size_t{2}});
      columns(at, 1) = nan;
      for (const bool largest : {true, false}) {
        const auto extreme = [&](const Array<float>& of) {
          const Variable<float> v(of);
          return (largest ? amax(v, 0) : amin(v, 0)).value();
        };
        EXPECT_TRUE(std::isnan(extreme(x)())) << at << " of " << n;
        EXPECT_EQ(extreme(columns)(0), 0) << at << " of " << n;
        EXPECT_TRUE(std::isnan(extreme(columns)(1))) << at << " of " << n;
      }
    }
  }
}

TEST(ReductionsTest, ANanAnywhereInALargeArrayIsTheExtreme) {
  for (const Shape& shape : {long_vector, tall}) {
    for (const std::size_t at : {0, 1, 16383, 16384, 70000, 140000}) {
      Array<float> x(shape, 1.0f);
      x.data()[at] = nan;
      EXPECT_TRUE(std::isnan(amax(Variable<float>(x), 0).value().data()[at % (x.size() / shape[0])])) << at;
      EXPECT_TRUE(std::isnan(amin(Variable<float>(x), 0).value().data()[at % (x.size() / shape[0])])) << at;
    }
  }
}

TEST(ReductionsTest, EqualExtremesShareTheGradient) {
  const Variable<float> x(Array<float>{{2, 2, 1, 2}, {-5, 4, 0, 1}}, true);
  const Variable<float> seed(Array<float>{3, 5});
  EXPECT_EQ(grad(amax(x, 1), {x}, {.seed = seed})[0].value(), (Array<float>{{1, 1, 0, 1}, {0, 5, 0, 0}}));
  EXPECT_EQ(grad(amin(x, 1), {x}, {.seed = seed})[0].value(), (Array<float>{{0, 0, 3, 0}, {5, 0, 0, 0}}));
}

TEST(ReductionsTest, LogsumexpOfInfinities) {
  const Variable<float> x(
      Array<float>{{inf, 0, 1}, {-inf, -inf, -inf}, {-inf, 0, -inf}, {inf, -inf, 0}, {inf, nan, 0}}, true);
  const Variable<float> y = logsumexp(x, 1);
  expect_near(y.value(), Array<float>{inf, -inf, 0, inf, nan}, 0, "logsumexp");
  const Array<float> dx = grad(sum(y), {x})[0].value();
  EXPECT_EQ(dx(2, 0), 0);
  EXPECT_EQ(dx(2, 1), 1);
  EXPECT_EQ(dx(2, 2), 0);
  EXPECT_EQ(logsumexp(Variable<float>(Array<float>{1000, 1000}), 0).item(),
            1000 + static_cast<float>(std::log(2.0)));
  EXPECT_EQ(logsumexp(Variable<float>(Array<float>::from_shape({0})), 0).item(), -inf);
}

TEST(ReductionsTest, AVarianceWithoutDegreesOfFreedomIsInfiniteOrNan) {
  const Variable<float> x(Array<float>{1, 3}, true), constant(Array<float>{2, 2});
  for (const double correction : {2, 3, 100}) {
    EXPECT_EQ(var(x, {.correction = correction}).item(), inf) << correction;
    EXPECT_EQ(var(x, 0, {.correction = correction}).item(), inf) << correction;
    EXPECT_TRUE(std::isnan(var(constant, {.correction = correction}).item())) << correction;
    EXPECT_EQ(grad(var(x, {.correction = correction}), {x})[0].value(), (Array<float>{-inf, inf}));
  }
  EXPECT_EQ(var(x).item(), 2);
  EXPECT_EQ(var(x, {.correction = 0}).item(), 1);
}

TEST(ReductionsTest, GradientsOfNormsAndDeviationsOfZeroAreZero) {
  const Variable<double> x(Array<double>{{0, 0, 0}, {3, 0, -4}}, true);
  const auto gradient = [&](const Variable<double>& y) {
    return grad(sum(y), {x}, {.create_graph = true})[0];
  };
  const Variable<double> dx = gradient(norm(x, 2, 1));
  expect_near(dx.value(), Array<double>{{0, 0, 0}, {0.6, 0, -0.8}}, 1e-15, "gradient");
  EXPECT_EQ(grad(sum(dx), {x})[0].value()(0, 1), 0);
  for (const double p : {0.5, 1.0, 1.5, 3.0, double{inf}}) {
    const Array<double> found = gradient(norm(x, p, 1)).value();
    for (const double element : found.storage()) EXPECT_TRUE(std::isfinite(element)) << p;
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(found(0, k), 0) << p;
    EXPECT_EQ(found(1, 1), 0) << p;
  }
  EXPECT_EQ(gradient(norm(x, -1, 1)).value(), Array<double>(x.shape(), 0.0));
  const Array<double> none = gradient(norm(x, 0, 1)).value();
  for (const double element : none.storage()) EXPECT_EQ(element, 0);
  EXPECT_EQ(norm(x, 0, 1).value(), (Array<double>{0, 2}));
  const Variable<double> equal(Array<double>{2, 2, 2}, true);
  EXPECT_EQ(grad(xgrad::std(equal), {equal})[0].value(), (Array<double>{0, 0, 0}));
}

TEST(ReductionsTest, GradientsOfProductsAreRightBesideZeros) {
  for (const Array<double>& elements :
       {Array<double>{{2, 0, 3}, {4, 5, 6}, {0, 7, 0}}, Array<double>{{0, 0, 0}, {1, 0, 2}, {0, 8, 9}}}) {
    const Variable<double> x(elements, true);
    for (const int dim : {0, 1}) {
      const auto product = [dim](const std::vector<Variable<double>>& in) { return prod(in[0], dim); };
      EXPECT_TRUE(xgrad::gradcheck(product, {x})) << dim;
      EXPECT_TRUE(xgrad::gradgradcheck(product, {x})) << dim;
    }
  }
  const Variable<double> x(Array<double>{2, 0, 3}, true);
  EXPECT_EQ(grad(prod(x), {x})[0].value(), (Array<double>{0, 6, 0}));
}

TEST(ReductionsTest, ProductsOfFloatsMayGoThroughLargeOnes) {
  EXPECT_EQ(prod(Variable<float>(Array<float>{1e30f, 1e30f, 0, 1})).item(), 0);
  EXPECT_FLOAT_EQ(prod(Variable<float>(Array<float>{1e30f, 1e30f, 1e-30f, 1e-30f})).item(), 1);
}

TEST(ReductionsTest, NormsOfFloatsMayGoThroughLargeSquares) {
  for (const float size : {1e30f, 1e-30f}) {
    const Variable<float> x(Array<float>{{3 * size, 0, 0}, {0, -4 * size, 0}}, true);
    EXPECT_FLOAT_EQ(norm(x).item(), 5 * size);
    EXPECT_FLOAT_EQ(norm(x, 2, 1).value()(1), 4 * size);
    EXPECT_FLOAT_EQ(norm(x, 2, 0).value()(0), 3 * size);
    const Array<float> dx = grad(norm(x), {x})[0].value();
    EXPECT_FLOAT_EQ(dx(0, 0), 0.6f);
    EXPECT_FLOAT_EQ(dx(1, 1), -0.8f);
  }
  EXPECT_FLOAT_EQ(norm(Variable<float>(Array<float>(Shape{200000}, 1e30f))).item(),
                  1e30f * std::sqrt(200000.0f));
  EXPECT_EQ(norm(Variable<float>(Array<float>{{-2, 3}}), 2, 0).value(), (Array<float>{2, 3}));
  EXPECT_TRUE(std::isnan(norm(Variable<float>(Array<float>{inf, nan})).item()));
}

TEST(ReductionsTest, GradientsOfProductsOfFloatsMayGoThroughLargeOnes) {
  for (const Array<float>& elements :
       {Array<float>{1e-30f, 1e-30f, 1e30f, 1e30f}, Array<float>{1e30f, 1e30f, 1e-30f, 1e-30f}}) {
    for (const Shape& shape : {Shape{4, 1}, Shape{4, 2}}) {
      Array<float> both = Array<float>::from_shape(shape);
      for (std::size_t i = 0; i < both.size(); ++i) both.data()[i] = elements(i / shape[1]);
      const Variable<float> x(both, true);
      const Array<float> dx = grad(sum(prod(x, 0)), {x})[0].value();
      for (std::size_t i = 0; i < both.size(); ++i) EXPECT_FLOAT_EQ(dx.data()[i], 1 / both.data()[i]) << i;
    }
  }
}

TEST(ReductionsTest, GradientsOfLongProductsAreRight) {
  for (const std::size_t zero_at : {std::size_t{2000000}, std::size_t{0}, std::size_t{1200000}}) {
    for (const Shape& shape : {Shape{1200001}, Shape{40000, 3}, Shape{1200001, 1}}) {
      Array<float> elements = Array<float>::from_shape(shape);
      for (std::size_t i = 0; i < elements.size(); ++i) elements.data()[i] = i % 2 == 0 ? 1.25f : -0.8f;
      if (zero_at < elements.size()) elements.data()[zero_at] = 0;
      const std::size_t columns = elements.size() / shape[0];
      std::vector<double> products(columns, 1.0);  // of those that are not 0
      for (std::size_t i = 0; i < elements.size(); ++i) {
        if (elements.data()[i] != 0) products[i % columns] *= elements.data()[i];
      }
      const Variable<float> x(elements, true);
      const Array<float> dx = grad(sum(prod(x, 0)), {x})[0].value();
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const float element = elements.data()[i];
        const bool beside = zero_at < elements.size() && zero_at % columns == i % columns && i != zero_at;
        const double expected = beside ? 0 : products[i % columns] / (i == zero_at ? 1 : element);
        ASSERT_NEAR(dx.data()[i], expected, 1e-6 * std::abs(expected)) << i;
      }
    }
  }
}

TEST(ReductionsTest, SumsOverAxesThatAreNotNeighboursAreAccurate) {
  const Variable<float> x(Array<float>(Shape{1000000, 3, 2}, 0.1f));
  const Variable<float> totals = sum(x, {0, 2});
  for (const float total : totals.value().storage()) EXPECT_NEAR(total, 200000.003, 0.2);
}

/// Seconds since 1970, whose sum is no float.
TEST(ReductionsTest, VariancesOfNumbersWithALargeOffsetAreRight) {
  const Variable<float> x(Array<float>{1.7e9F, 1.7e9F + 128, 1.7e9F + 256, 1.7e9F + 384, 1.7e9F + 512}, true);
  EXPECT_EQ(var(x).item(), 40960);
  EXPECT_FLOAT_EQ(xgrad::std(x).item(), 202.38577F);
  expect_near(grad(xgrad::std(x), {x})[0].value(),
              Array<float>{-0.31622777F, -0.15811388F, 0, 0.15811388F, 0.31622777F}, 1e-7, "std");
  expect_near(grad(var(x), {x})[0].value(), Array<float>{-128, -64, 0, 64, 128}, 0, "var");
  Array<float> alternating = Array<float>::from_shape({1000, 2});
  for (std::size_t i = 0; i < 2000; ++i) alternating.data()[i] = 1e7F + static_cast<float>(i / 2 % 2);
  const Variable<float> columns = var(Variable<float>(alternating), 0);
  for (const float variance : columns.value()) EXPECT_FLOAT_EQ(variance, 250.0F / 999);
  EXPECT_EQ(xgrad::std(Variable<float>(Array<float>{1e8F, 1e8F + 8, 1e8F + 16})).item(), 8);
}

template <class T>
void expect_deviations_in_range(T size) {
  const Variable<T> x(Array<T>{{size, 2 * size, 3 * size}}, true);
  const Variable<T> y = xgrad::std(x, 1);
  EXPECT_NEAR(y.item() / size, 1, 1e-6) << size;
  expect_near(grad(y, {x})[0].value(), Array<T>{{T(-0.5), 0, T(0.5)}}, 1e-6, "std");
  EXPECT_NEAR(xgrad::std(x, {.correction = 0}).item() / size, std::sqrt(2.0 / 3), 1e-6) << size;
  const Variable<T> columns(Array<T>{{size, 1}, {3 * size, 2}});
  EXPECT_NEAR(xgrad::std(columns, 0).value()(0) / size, std::sqrt(2.0), 1e-6) << size;
  EXPECT_NEAR(xgrad::std(columns, 0).value()(1), std::sqrt(0.5), 1e-6) << size;
}

TEST(ReductionsTest, DeviationsDoNotLeaveTheRangeWithTheirSquares) {
  for (const float size : {1e20F, 1e-25F}) expect_deviations_in_range(size);
  for (const double size : {1e200, 1e-200, 1e-310}) expect_deviations_in_range(size);
  EXPECT_EQ(xgrad::std(Variable<double>(Array<double>{2, 2, 2})).item(), 0);
  EXPECT_TRUE(std::isnan(xgrad::std(Variable<double>(Array<double>{inf, 2, 2})).item()));
}

template <class T>
void expect_norms_in_range(T size) {
  for (const T p : {T(2), T(3), T(1.5), T(-2)}) {
    const Variable<T> unit(Array<T>{{3, -4, 1}}, true), x(Array<T>{{3 * size, -4 * size, size}}, true);
    EXPECT_NEAR(norm(x, p).item() / size, norm(unit, p).item(), 1e-5) << size << ", " << p;
    expect_near(grad(norm(x, p, 1), {x})[0].value(), grad(norm(unit, p, 1), {unit})[0].value(), 1e-5, "norm");
  }
}

TEST(ReductionsTest, NormsDoNotLeaveTheRangeWithTheirPowers) {
  for (const float size : {1e20F, 1e-25F}) expect_norms_in_range(size);
  for (const double size : {1e200, 1e-200}) expect_norms_in_range(size);
  EXPECT_EQ(norm(Variable<double>(Array<double>{0, 0})).item(), 0);
  EXPECT_EQ(norm(Variable<double>(Array<double>{inf, 1})).item(), inf);
  EXPECT_TRUE(std::isnan(norm(Variable<double>(Array<double>{inf, nan})).item()));
  EXPECT_EQ(norm(Variable<float>(Array<float>{inf, 1}), 3).item(), inf);
}

TEST(ReductionsTest, MeansDoNotLeaveTheRangeWithTheirSums) {
  const Variable<float> x(Array<float>{{3e38F, 3e38F, 3e38F}, {1, 2, 6}});
  EXPECT_FLOAT_EQ(mean(x, 1).value()(0), 3e38F);
  EXPECT_EQ(mean(x, 1).value()(1), 3);
  EXPECT_DOUBLE_EQ(mean(Variable<double>(Array<double>{1e308, 1e308})).item(), 1e308);
  EXPECT_EQ(mean(Variable<float>(Array<float>{inf, 1})).item(), inf);
  EXPECT_TRUE(std::isnan(mean(Variable<float>(Array<float>{inf, -inf})).item()));
}

}  // namespace xgrad_tests::reductions_rows
