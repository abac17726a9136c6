// What there is to test of the losses but cross_entropy.
#include <xgrad/ops/loss/losses.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/losses.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::losses_rows {

Op mse_loss_op() {
  using xgrad::Reduction;
  Op op{"losses.mse_loss"};
  const auto squares = [](double a, double b) { return (a - b) * (a - b); };
  op.cases = {
      make_case(
          {{2, 3}, {2, 3}}, [](const auto& x) { return xgrad::mse_loss(x[0], x[1], Reduction::none); },
          naive::binary(squares)),
      make_case(
          {{7}, {7}}, [](const auto& x) { return xgrad::mse_loss(x[0], x[1], Reduction::sum); },
          [squares](const auto& x) { return naive::sum(0, false)({naive::binary(squares)(x)}); }),
      make_case(
          {{7}, {7}}, [](const auto& x) { return xgrad::mse_loss(x[0], x[1]); },
          [squares](const auto& x) { return naive::mean(0, false)({naive::binary(squares)(x)}); })};
  op.large = {make_case(
                  {plane, plane}, [](const auto& x) { return xgrad::mse_loss(x[0], x[1]); },
                  [squares](const auto& x) {
                    return naive::mean({0, 1}, false)({naive::binary(squares)(x)});
                  }),
              make_case(
                  {plane, {403}}, [](const auto& x) { return xgrad::mse_loss(x[0], x[1], Reduction::none); },
                  naive::binary(squares))};
  op.errors = {error<ShapeError>("mse_loss: shapes must broadcast, got input (2) and target (3)",
                                 [] { xgrad::mse_loss(x(2), x(3)); })};
  return op;
}

/// A loss of the difference of its inputs, f(input, target, reduction); `range` keeps clear of its kinks.
template <class F>
Op difference_op(const char* name, const F& f, double (*loss)(double), Range range) {
  using xgrad::Reduction;
  Op op{std::string("losses.") + name};
  const auto losses = [loss](const std::vector<Array<double>>& x) {
    return naive::map(loss)({naive::binary([](double a, double b) { return a - b; })(x)});
  };
  const auto with = [f](Reduction reduction) {
    return [f, reduction](const auto& x) { return f(x[0], x[1], reduction); };
  };
  const Range near{-0.01, 0.01, 0};  // so that the difference stays clear of the kinks, too
  const auto total = [losses](const auto& x) { return naive::sum(0, false)({losses(x)}); };
  const auto average = [losses](const auto& x) { return naive::mean(0, false)({losses(x)}); };
  op.cases = {make_case({{{2, 3}, range}, {{2, 3}, near}}, with(Reduction::none), losses),
              make_case({{{2, 3}, range}, {{3}, near}}, with(Reduction::none), losses),
              make_case({{{17}, range}, {{17}, near}}, with(Reduction::sum), total),
              make_case({{{17}, range}, {{17}, near}}, with(Reduction::mean), average)};
  op.large = {make_case({{long_vector, range}, {long_vector, near}}, with(Reduction::mean), average),
              make_case({{plane, range}, {{403}, near}}, with(Reduction::none), losses)};
  op.errors = {error<ShapeError>(std::string(name) + ": shapes must broadcast, got input (2) and target (3)",
                                 [f] { f(x(2), x(3), Reduction::mean); })};
  return op;
}

Op l1_loss_op() {
  return difference_op(
      "l1_loss",
      [](const auto& a, const auto& b, xgrad::Reduction reduction) {
        return xgrad::l1_loss(a, b, reduction);
      },
      [](double d) { return std::abs(d); }, {-2, 2, 0.02});
}

double naive_huber(double d, double delta) {
  return std::abs(d) <= delta ? d * d / 2 : delta * (std::abs(d) - delta / 2);
}

Op huber_loss_op() {
  const auto f = [](double delta) {
    return [delta](const auto& a, const auto& b, xgrad::Reduction reduction) {
      return xgrad::huber_loss(a, b, reduction, delta);
    };
  };
  Op op = difference_op("huber_loss", f(0.5), [](double d) { return naive_huber(d, 0.5); }, {-0.48, 0.48});
  const Op far =
      difference_op("huber_loss", f(0.5), [](double d) { return naive_huber(d, 0.5); }, {-2, 2, 0.52});
  op.cases.insert(op.cases.end(), far.cases.begin(), far.cases.end());
  op.large.insert(op.large.end(), far.large.begin(), far.large.end());
  op.errors.push_back(error<ValueError>("huber_loss: delta must be positive, got 0",
                                        [] { xgrad::huber_loss(x(2), x(2), xgrad::Reduction::mean, 0); }));
  return op;
}

Op smooth_l1_loss_op() {
  const auto f = [](double beta) {
    return [beta](const auto& a, const auto& b, xgrad::Reduction reduction) {
      return xgrad::smooth_l1_loss(a, b, reduction, beta);
    };
  };
  Op op = difference_op("smooth_l1_loss", f(0.5), [](double d) { return naive_huber(d, 0.5) / 0.5; },
                        {-0.48, 0.48});
  for (const Op& other :
       {difference_op("smooth_l1_loss", f(0.5), [](double d) { return naive_huber(d, 0.5) / 0.5; },
                      {-2, 2, 0.52}),
        difference_op("smooth_l1_loss", f(0), [](double d) { return std::abs(d); }, {-2, 2, 0.02})}) {
    op.cases.insert(op.cases.end(), other.cases.begin(), other.cases.end());
    op.large.insert(op.large.end(), other.large.begin(), other.large.end());
  }
  op.errors.push_back(error<ValueError>("smooth_l1_loss: beta must not be negative, got -1", [] {
    xgrad::smooth_l1_loss(x(2), x(2), xgrad::Reduction::mean, -1);
  }));
  return op;
}

Op kl_div_op() {
  using xgrad::KlReduction;
  Op op{"losses.kl_div"};
  const auto losses = [](const auto& x) {
    return naive::binary([](double input, double target) { return target * (std::log(target) - input); })(x);
  };
  const auto of_logarithm = [](const auto& x) {
    return naive::binary([](double input, double target) { return std::exp(target) * (target - input); })(x);
  };
  const auto with = [](KlReduction reduction, bool log_target) {
    return [=](const auto& x) { return xgrad::kl_div(x[0], x[1], reduction, {.log_target = log_target}); };
  };
  const auto sums = [](auto losses, double divisor) {
    return [=](const std::vector<Array<double>>& x) {
      return Array<double>(naive::sum({0, 1}, false)({losses(x)}) / divisor);
    };
  };
  const Input input{{3, 4}, {-3, 0}}, target{{3, 4}, {0.05, 1}};
  op.cases = {make_case({input, target}, with(KlReduction::none, false), losses),
              make_case({input, {{4}, {0.05, 1}}}, with(KlReduction::none, false), losses),
              make_case({input, target}, with(KlReduction::mean, false), sums(losses, 12)),
              make_case({input, target}, with(KlReduction::sum, false), sums(losses, 1)),
              make_case({input, target}, with(KlReduction::batchmean, false), sums(losses, 3)),
              make_case({input, input}, with(KlReduction::none, true), of_logarithm),
              make_case({input, input}, with(KlReduction::batchmean, true), sums(of_logarithm, 3))};
  op.large = {make_case({{plane, {-3, 0}}, {plane, {0.05, 1}}}, with(KlReduction::batchmean, false),
                        sums(losses, 517)),
              make_case({{plane, {-3, 0}}, {plane, {-3, 0}}}, with(KlReduction::none, true), of_logarithm)};
  op.errors = {error<ShapeError>("kl_div: shapes must broadcast, got input (2) and target (3)",
                                 [] { xgrad::kl_div(x(2), x(3)); })};
  return op;
}

Op binary_cross_entropy_of_probabilities_op() {
  using xgrad::Reduction;
  Op op{"losses.binary_cross_entropy"};
  const auto losses = [](const auto& x) {
    return naive::binary([](double p, double target) {
      return -(target * std::log(p) + (1 - target) * std::log1p(-p));
    })({x[0], x[1]});
  };
  const auto weighted = [losses](const auto& x) {
    return naive::binary([](double loss, double weight) { return loss * weight; })({losses(x), x[2]});
  };
  const auto average = [losses](const auto& x) {
    return naive::mean(0, false)({naive::reshaped(losses(x), {x[0].size()})});
  };
  const auto input = [](const Shape& shape) { return Input(shape, {0.05, 0.95}); };
  op.cases = {
      make_case(
          {input({2, 3}), input({2, 3})},
          [](const auto& x) { return binary_cross_entropy(x[0], x[1], {.reduction = Reduction::none}); },
          losses),
      make_case(
          {input({7}), input({7}), input({7})},
          [](const auto& x) {
            return binary_cross_entropy(x[0], x[1], {.weight = x[2], .reduction = Reduction::sum});
          },
          [weighted](const auto& x) { return naive::sum(0, false)({weighted(x)}); }),
      make_case(
          {input({7}), input({7})}, [](const auto& x) { return binary_cross_entropy(x[0], x[1]); }, average)};
  op.large = {
      make_case(
          {input(plane), {plane}}, [](const auto& x) { return binary_cross_entropy(x[0], x[1]); }, average),
      make_case(
          {input(long_vector), {long_vector}},
          [](const auto& x) { return binary_cross_entropy(x[0], x[1], {.reduction = Reduction::none}); },
          losses)};
  op.errors = {
      error<ShapeError>("binary_cross_entropy: input and target must have the same shape, got (2) and (3)",
                        [] { xgrad::binary_cross_entropy(x(2), x(3)); }),
      error<ShapeError>(
          "binary_cross_entropy: weight must broadcast to input, got input (2) and weight (2, 1)",
          [] { xgrad::binary_cross_entropy(x(2), x(2), {.weight = x(2, 1)}); }),
      error<ValueError>("binary_cross_entropy: input must be in [0, 1], got -1",
                        [] { xgrad::binary_cross_entropy(-x(2), x(2)); }),
      error<ValueError>("binary_cross_entropy: input must be in [0, 1], got 3",
                        [] { xgrad::binary_cross_entropy(x(2) * 3.0F, x(2)); })};
  return op;
}

Op binary_cross_entropy_op() {
  using xgrad::Reduction;
  Op op{"losses.binary_cross_entropy_with_logits"};
  const auto reference = [](double positive, char reduction) {
    return [=](const std::vector<Array<double>>& x) {
      Array<double> losses = Array<double>::from_shape(x[0].shape());
      for (std::size_t i = 0; i < losses.size(); ++i) {
        const double p = 1 / (1 + std::exp(-x[0].data()[i])), target = x[1].data()[i];
        const double weight = x.size() > 2 ? x[2].data()[i] : 1;
        losses.data()[i] = -weight * (positive * target * std::log(p) + (1 - target) * std::log(1 - p));
      }
      if (reduction == 'n') return losses;
      return reduction == 's' ? naive::sum(0, false)({losses}) : naive::mean(0, false)({losses});
    };
  };
  op.cases = {make_case(
                  {{2, 3}, {2, 3}},
                  [](const auto& x) {
                    return binary_cross_entropy_with_logits(x[0], x[1], {.reduction = Reduction::none});
                  },
                  reference(1, 'n')),
              make_case(
                  {{7}, {7}, {7}},
                  [](const auto& x) {
                    return binary_cross_entropy_with_logits(x[0], x[1],
                                                            {.weight = x[2], .reduction = Reduction::sum});
                  },
                  reference(1, 's')),
              make_case(
                  {{7}, {7}},
                  [](const auto& x) {
                    return binary_cross_entropy_with_logits(x[0], x[1],
                                                            {.pos_weight = std::decay_t<decltype(x[0])>(3)});
                  },
                  reference(3, 'm'))};
  op.large = {make_case(
      {{40'000}, {40'000}}, [](const auto& x) { return binary_cross_entropy_with_logits(x[0], x[1]); },
      reference(1, 'm'))};
  op.errors = {error<ShapeError>(
      "binary_cross_entropy_with_logits: input and target must have the same shape, got (2) and (3)",
      [] { xgrad::binary_cross_entropy_with_logits(x(2), x(3)); })};
  op.errors.push_back(error<ShapeError>(
      "binary_cross_entropy_with_logits: weight must broadcast to input, got input (2) and weight (2, 1)",
      [] { xgrad::binary_cross_entropy_with_logits(x(2), x(2), {.weight = x(2, 1)}); }));
  return op;
}

Op nll_loss_op() {
  using xgrad::Reduction;
  Op op{"losses.nll_loss"};
  const Ids target = ids_of({4}, {2, -1, 0, 1});
  const auto reference_of = [](Ids target, bool weighted, char reduction) {
    return [=](const std::vector<Array<double>>& x) {
      Array<double> y = Array<double>::from_shape(target.shape());
      long double total = 0, count = 0;
      for (std::size_t i = 0; i < target.size(); ++i) {
        const std::int64_t id = target(i);
        const double weight = id < 0 ? 0 : weighted ? static_cast<double>(id + 1) : 1;
        y(i) = id < 0 ? 0 : -weight * x[0](i, static_cast<std::size_t>(id));
        total += y(i);
        count += weight;
      }
      return reduction == 'n' ? y
                              : Array<double>(static_cast<double>(reduction == 's' ? total : total / count));
    };
  };
  const auto reference = [&](bool weighted, char reduction) {
    return reference_of(target, weighted, reduction);
  };
  op.cases = {
      make_case(
          {{4, 3}},
          [target](const auto& x) {
            return xgrad::nll_loss(x[0], target, {.ignore_index = -1, .reduction = Reduction::none});
          },
          reference(false, 'n')),
      make_case(
          {{4, 3}}, [target](const auto& x) { return xgrad::nll_loss(x[0], target, {.ignore_index = -1}); },
          reference(false, 'm')),
      make_case(
          {{4, 3}},
          [target](const auto& x) {
            return xgrad::nll_loss(
                x[0], target,
                {.weight = class_weights(x[0]), .ignore_index = -1, .reduction = Reduction::sum});
          },
          reference(true, 's')),
      make_case(
          {{4, 3}},
          [target](const auto& x) {
            return xgrad::nll_loss(x[0], target, {.weight = class_weights(x[0]), .ignore_index = -1});
          },
          reference(true, 'm'))};
  // classes on an axis between others, and on the only one
  const Ids pixels = ids_of({2, 2}, {2, 0, -100, 1});
  op.cases.push_back(make_case(
      {{2, 3, 2}},
      [pixels](const auto& x) {
        return xgrad::nll_loss(x[0], pixels, {.weight = class_weights(x[0]), .reduction = Reduction::none});
      },
      [reference_of](const auto& x) {
        const Ids flat = ids_of({4}, {2, 0, -100, 1});
        const auto rows = naive::reshaped(naive::permute({0, 2, 1})({x[0]}), {4, 3});
        return naive::reshaped(reference_of(flat, true, 'n')({rows}), {2, 2});
      }));
  op.cases.push_back(make_case(
      {{3}},
      [](const auto& x) { return xgrad::nll_loss(x[0], ids_of({}, {2}), {.weight = class_weights(x[0])}); },
      [](const auto& x) { return Array<double>(-x[0](2)); }));
  op.large = {late_case({tall}, [=] {
    const Ids many = scattered_ids({tall[0]}, 3);
    return make_case(
        {}, [many](const auto& x) { return xgrad::nll_loss(x[0], many, {.weight = class_weights(x[0])}); },
        reference_of(many, true, 'm'));
  })};
  op.errors = {error<IndexError>("nll_loss: target must be in [0, 3), got 3 (3 classes)",
                                 [] {
                                   xgrad::nll_loss(x(2, 3), ids_of({2}, {0, 3}));
                                 }),
               error<IndexError>("nll_loss: target must be in [0, 3), got -1 (3 classes)",
                                 [] {
                                   xgrad::nll_loss(x(2, 3), ids_of({2}, {0, -1}));
                                 }),
               error<ShapeError>(
                   "nll_loss: target must have the shape of log_probs without the class axis, got log_probs "
                   "(2, 3) and target (3)",
                   [] {
                     xgrad::nll_loss(x(2, 3), ids_of({3}, {0, 0, 0}));
                   }),
               error<ShapeError>("nll_loss: weight must be (3), got (2)",
                                 [] {
                                   xgrad::nll_loss(x(2, 3), ids_of({2}, {0, 0}), {.weight = x(2)});
                                 }),
               error<ShapeError>("nll_loss: log_probs need an axis of classes, got ()",
                                 [] { xgrad::nll_loss(x(), ids_of({}, {0})); })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{mse_loss_op(),
                         l1_loss_op(),
                         huber_loss_op(),
                         smooth_l1_loss_op(),
                         kl_div_op(),
                         binary_cross_entropy_op(),
                         binary_cross_entropy_of_probabilities_op(),
                         nll_loss_op()};
});

/// The attribute reduction of kl_div.
template <class T>
xgrad::KlReduction kl_reduction(const Call<T>& c) {
  using xgrad::KlReduction, xgrad::Reduction;
  if (c.text("reduction") == "batchmean") return KlReduction::batchmean;
  const Reduction other = reduction(c);
  if (other == Reduction::none) return KlReduction::none;
  return other == Reduction::sum ? KlReduction::sum : KlReduction::mean;
}

const Conformance conformance{
    {"mse_loss", [](const auto& c) { return mse_loss(c.x(), c.x(1), reduction(c)); }},
    {"l1_loss", [](const auto& c) { return l1_loss(c.x(), c.x(1), reduction(c)); }},
    {"huber_loss", [](const auto& c) { return huber_loss(c.x(), c.x(1), reduction(c), c.scalar("delta")); }},
    {"smooth_l1_loss",
     [](const auto& c) { return smooth_l1_loss(c.x(), c.x(1), reduction(c), c.scalar("beta")); }},
    {"kl_div",
     [](const auto& c) {
       return kl_div(c.x(), c.x(1), kl_reduction(c), {.log_target = c.flag("log_target")});
     }},
    {"binary_cross_entropy",
     [](const auto& c) {
       return binary_cross_entropy(c.x(), c.x(1), {.weight = c.optional(2), .reduction = reduction(c)});
     }},
    {"binary_cross_entropy_with_logits",
     [](const auto& c) {
       return binary_cross_entropy_with_logits(
           c.x(), c.x(1), {.weight = c.optional(2), .pos_weight = c.optional(3), .reduction = reduction(c)});
     }},
    {"nll_loss", [](const auto& c) {
       return nll_loss(
           c.x(), c.ids(1),
           {.weight = c.optional(2), .ignore_index = c.integer("ignore_index"), .reduction = reduction(c)});
     }}};

void draw_mse_loss(Drawing& d) {
  const auto [a, b] = broadcasting(d);
  d.call("mse_loss", {a, b}, {{"reduction", draw_reduction(d)}});
}

/// A loss of the difference, with kinks where it is 0 or +-attribute; `attribute` may be "".
Draw difference_draw(const char* op, const char* attribute) {
  return {op, [=](Drawing& d) {
            const auto [a, b] = broadcasting(d);
            const Array<double> difference = d.result("sub", {a, b});
            const double place = *attribute == 0 ? 0 : d.one_of({1.0, 0.3, 5.0});
            if (!d.is_clear_of(place, difference) || !d.is_clear_of(-place, difference)) return;
            std::vector<Attr> attrs{{"reduction", draw_reduction(d)}};
            if (*attribute != 0) attrs.push_back({attribute, place});
            d.call(op, {a, b}, attrs);
          }};
}

void draw_kl_div(Drawing& d) {
  const auto [a, b] = broadcasting(d);
  const bool log_target = d.chance(0.5);
  const Name target = d.within(b, log_target ? Range{-3, 1} : positive);
  const auto reduction = d.one_of<std::string>({"none", "mean", "sum", "batchmean"});
  if (reduction == "batchmean" && (d.rank(a) == 0 || d.value(a).size() == 0)) return;
  d.call("kl_div", {a, target}, {{"reduction", reduction}, {"log_target", log_target}});
}

void draw_binary_cross_entropy(Drawing& d) {
  const Name x = d.numbers();
  const Shape shape = d.shape(x);
  const auto weight = [&] {
    return d.one_of<bool>({false, true}) ? d.constant(d.narrowed(shape), {0.2, 2}) : "";
  };
  const Name element_weight = weight();
  d.call("binary_cross_entropy_with_logits", {x, d.constant(shape, {0, 1}), element_weight, weight()},
         {{"reduction", draw_reduction(d)}});
}

void draw_binary_cross_entropy_of_probabilities(Drawing& d) {
  const Name p = d.within(d.numbers(), {0.05, 0.95});
  const Shape shape = d.shape(p);
  const Name weight = d.chance(0.5) ? d.constant(d.narrowed(shape), {0.2, 2}) : Name();
  d.call("binary_cross_entropy", {p, d.numbers(shape), weight}, {{"reduction", draw_reduction(d)}});
}

void draw_nll_loss(Drawing& d) {
  const Classes c = draw_classes(d);
  if (c.target.empty()) return;
  d.call("nll_loss", {c.scores, c.target, c.weight},
         {{"reduction", draw_reduction(d)}, {"ignore_index", c.ignore_index}});
}

const Draws draws{{"mse_loss", draw_mse_loss},
                  difference_draw("l1_loss", ""),
                  difference_draw("huber_loss", "delta"),
                  difference_draw("smooth_l1_loss", "beta"),
                  {"kl_div", draw_kl_div},
                  {"binary_cross_entropy", draw_binary_cross_entropy_of_probabilities},
                  {"binary_cross_entropy_with_logits", draw_binary_cross_entropy},
                  {"nll_loss", draw_nll_loss}};

TEST(LossesTest, GradientsAtKinksAreThoseOfPyTorch) {
  const Variable<double> input(Array<double>{0, 2, -2, 3, 1}, true), target(Array<double>{0, 0, 0, 0, 0});
  const auto gradient = [&](const Variable<double>& loss) { return grad(loss, {input})[0].value(); };
  using xgrad::Reduction;
  EXPECT_EQ(gradient(l1_loss(input, target, Reduction::sum)), (Array<double>{0, 1, -1, 1, 1}));
  EXPECT_EQ(gradient(huber_loss(input, target, Reduction::sum, 2)), (Array<double>{0, 2, -2, 2, 1}));
  EXPECT_EQ(gradient(smooth_l1_loss(input, target, Reduction::sum, 2)), (Array<double>{0, 1, -1, 1, 0.5}));
  EXPECT_EQ(gradient(smooth_l1_loss(input, target, Reduction::sum, 0)), (Array<double>{0, 1, -1, 1, 1}));
  EXPECT_EQ(huber_loss(input, target, Reduction::none, 2).value(), (Array<double>{0, 2, 2, 4, 0.5}));
  EXPECT_EQ(smooth_l1_loss(input, target, Reduction::none, 2).value(), (Array<double>{0, 1, 1, 2, 0.25}));
}

TEST(LossesTest, AProbabilityOfZeroHasNoDivergence) {
  const Variable<double> input(Array<double>{-1, -2, -1}, true), target(Array<double>{0, 0.5, 0});
  const Variable<double> loss = kl_div(input, target, xgrad::KlReduction::sum);
  EXPECT_DOUBLE_EQ(loss.item(), 0.5 * std::log(0.5) + 1);
  EXPECT_EQ(grad(loss, {input})[0].value(), (Array<double>{0, -0.5, 0}));
}

TEST(LossesTest, LogarithmsOfProbabilitiesAreAtLeastMinusOneHundred) {
  const Variable<float> p(Array<float>{0, 1, 0, 1, 1e-30F}, true), target(Array<float>{1, 0, 0, 1, 1});
  const Variable<float> loss = binary_cross_entropy(p, target, {.reduction = xgrad::Reduction::none});
  EXPECT_EQ(loss.value()(0), 100);
  EXPECT_EQ(loss.value()(1), 100);
  EXPECT_EQ(loss.value()(2), 0);
  EXPECT_EQ(loss.value()(3), 0);
  EXPECT_FLOAT_EQ(loss.value()(4), 69.0775527898F);
  for (const bool create_graph : {false, true}) {
    const Array<float> slope = grad(binary_cross_entropy(p, target, {.reduction = xgrad::Reduction::sum}),
                                    {p}, {.create_graph = create_graph})[0]
                                   .value();
    EXPECT_FLOAT_EQ(slope(0), -1e12F);
    EXPECT_FLOAT_EQ(slope(1), 1e12F);
    EXPECT_EQ(slope(2), 0);
    EXPECT_EQ(slope(3), 0);
  }
  const Variable<float> wanted(target.value(), true);
  const Array<float> of_target =
      grad(binary_cross_entropy(p, wanted, {.reduction = xgrad::Reduction::sum}), {wanted})[0].value();
  EXPECT_EQ(of_target(0), 100);
  EXPECT_EQ(of_target(1), -100);
  EXPECT_FLOAT_EQ(of_target(4), 69.0775527898F);
}

}  // namespace xgrad_tests::losses_rows
