// What there is to test of cross_entropy.
#include <xgrad/ops/loss/cross_entropy.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include "../common/losses.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::cross_entropy_rows {

using naive::at, naive::filled, naive::generated, naive::logsumexp_along, naive::Numbers, naive::Arguments;

Reference naive_cross_entropy(Ids target, char reduction, std::int64_t ignore_index) {
  return [=](const Arguments& x) {
    const std::size_t axis = x[0].dimension() == 1 ? 0 : 1;
    long double total = 0, count = 0;
    const Numbers losses = generated(target.shape(), [&](const Shape& place) {
      const std::int64_t id = at(target, place);
      if (id == ignore_index) return 0.0;
      Shape index = place;
      index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::size_t>(id));
      const double loss = logsumexp_along(x[0], index, axis) - at(x[0], index);
      total += loss;
      count += 1;
      return loss;
    });
    if (reduction == 'n') return losses;
    return filled({}, static_cast<double>(reduction == 's' ? total : total / count));
  };
}

/// -sum(target weight log_softmax) over the classes of each row of logits (N, C), with the target smoothed.
Reference soft_cross_entropy(Ids target, bool weighted, double smoothing, bool reduced) {
  return [=](const std::vector<Array<double>>& x) {
    const Array<double> log_probs = naive::log_softmax(1)({x[0]});
    const std::size_t rows = log_probs.shape()[0], classes = log_probs.shape()[1];
    Array<double> y = Array<double>::from_shape({rows});
    long double total = 0, count = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      y(r) = 0;
      if (x.size() == 1 && target(r) < 0) continue;  // ignored
      for (std::size_t c = 0; c < classes; ++c) {
        const double weight = weighted ? static_cast<double>(c + 1) : 1;
        const double hard = x.size() > 1 ? x[1](r, c) : static_cast<std::size_t>(target(r)) == c ? 1 : 0;
        y(r) -=
            (hard * (1 - smoothing) + smoothing / static_cast<double>(classes)) * weight * log_probs(r, c);
        count += x.size() > 1 ? 1 / static_cast<double>(classes) : hard * weight;
      }
      total += y(r);
    }
    return reduced ? Array<double>(static_cast<double>(total / count)) : y;
  };
}

/// Class weights 1, 2, 3, ... of the type of the argument.
template <class V>
V rising_weights(const V& logits) {
  auto weights = xgrad::Array<typename V::value_type>::from_shape({logits.shape()[1]});
  for (std::size_t c = 0; c < weights.size(); ++c) weights(c) = static_cast<typename V::value_type>(c + 1);
  return V(weights);
}

/// Many rows, long and short ones, of all that the kernels tell apart.
std::vector<Case> large_cases() {
  using xgrad::Reduction;
  std::vector<Case> cases;
  const Shape long_rows{301, 503};
  const Ids classes = scattered_ids({301}, 503);
  cases.push_back(make_case(
      {long_rows}, [classes](const auto& x) { return xgrad::cross_entropy(x[0], classes); },
      soft_cross_entropy(classes, false, 0, true)));
  cases.push_back(make_case(
      {long_rows},
      [classes](const auto& x) {
        return xgrad::cross_entropy(
            x[0], classes,
            {.weight = rising_weights(x[0]), .reduction = Reduction::none, .label_smoothing = 0.2});
      },
      soft_cross_entropy(classes, true, 0.2, false)));
  cases.push_back(make_case(
      {long_rows},
      [classes](const auto& x) { return xgrad::cross_entropy(x[0], classes, {.label_smoothing = 0.2}); },
      soft_cross_entropy(classes, false, 0.2, true)));
  cases.push_back(late_case({tall}, [] {
    const Ids ids = scattered_ids({tall[0]}, 3);
    return make_case(
        {}, [ids](const auto& x) { return xgrad::cross_entropy(x[0], ids, {.ignore_index = 1}); },
        naive_cross_entropy(ids, 'm', 1));
  }));
  return cases;
}

Op cross_entropy_op() {
  using xgrad::Reduction;
  Op op{"cross_entropy"};
  struct Sample {
    Shape logits;
    Ids target;
    std::int64_t ignore_index;
  };
  for (const auto& [logits, target, ignore_index] :
       {Sample{{2, 3}, ids_of({2}, {2, 0}), -100}, Sample{{3}, ids_of({}, {1}), -100},
        Sample{{4, 3}, ids_of({4}, {2, -100, 0, -100}), -100}, Sample{{4, 3}, ids_of({4}, {2, 1, 0, 1}), 1},
        Sample{{2, 3, 2}, ids_of({2, 2}, {2, 0, 1, 1}), -100},
        Sample{{2, 3, 2, 2}, ids_of({2, 2, 2}, {2, 0, -1, 1, 0, 0, 2, 2}), -1},
        Sample{{2, 1}, ids_of({2}, {0, 0}), -100}, Sample{{3, 17}, ids_of({3}, {16, 0, 5}), -100}}) {
    for (const char reduction : {'n', 's', 'm'}) {
      const Reduction kind = reduction == 'n'   ? Reduction::none
                             : reduction == 's' ? Reduction::sum
                                                : Reduction::mean;
      op.cases.push_back(make_case(
          {logits},
          [target = target, ignore_index = ignore_index, kind](const auto& x) {
            return xgrad::cross_entropy(x[0], target, {.ignore_index = ignore_index, .reduction = kind});
          },
          naive_cross_entropy(target, reduction, ignore_index)));
    }
  }
  const auto summed = [](const auto& x) {
    return xgrad::cross_entropy(x[0], Ids(Array<std::int64_t>::from_shape({x[0].shape()[0]}) * 0 - 100),
                                {.reduction = Reduction::sum});
  };
  op.cases.push_back(make_case({{2, 3}}, summed, naive_cross_entropy(ids_of({2}, {-100, -100}), 's', -100)));
  op.cases.push_back(make_case({{0, 3}}, summed, naive_cross_entropy(ids_of({0}, {}), 's', -100)));
  const Ids classes = ids_of({3}, {2, 0, 1});
  op.cases.push_back(make_case(
      {{3, 3}},
      [classes](const auto& x) {
        return xgrad::cross_entropy(x[0], classes, {.weight = class_weights(x[0])});
      },
      soft_cross_entropy(classes, true, 0, true)));
  op.cases.push_back(make_case(
      {{3, 3}},
      [classes](const auto& x) {
        return xgrad::cross_entropy(x[0], classes, {.weight = class_weights(x[0]), .label_smoothing = 0.2});
      },
      soft_cross_entropy(classes, true, 0.2, true)));
  op.cases.push_back(make_case(
      {{3, 3}},
      [classes](const auto& x) {
        return xgrad::cross_entropy(x[0], classes, {.reduction = Reduction::none, .label_smoothing = 0.3});
      },
      soft_cross_entropy(classes, false, 0.3, false)));
  op.cases.push_back(make_case(
      {{3, 3}, {3, 3}},
      [](const auto& x) {
        return xgrad::cross_entropy(x[0], x[1], {.weight = class_weights(x[0]), .label_smoothing = 0.1});
      },
      soft_cross_entropy(classes, true, 0.1, true)));
  op.cases.push_back(make_case(
      {{3, 3}, {3, 3}},
      [](const auto& x) { return xgrad::cross_entropy(x[0], x[1], {.reduction = Reduction::none}); },
      soft_cross_entropy(classes, false, 0, false)));
  const Ids some = ids_of({4}, {2, -1, 1, -1});
  for (const Reduction kind : {Reduction::none, Reduction::mean}) {
    op.cases.push_back(make_case(
        {{4, 3}},
        [some, kind](const auto& x) {
          return xgrad::cross_entropy(
              x[0], some,
              {.weight = class_weights(x[0]), .ignore_index = -1, .reduction = kind, .label_smoothing = 0.2});
        },
        soft_cross_entropy(some, true, 0.2, kind == Reduction::mean)));
  }
  // probabilities of classes on an axis between others, and on the only one
  op.cases.push_back(make_case(
      {{2, 3, 2}, {2, 3, 2}},
      [](const auto& x) {
        return xgrad::cross_entropy(
            x[0], x[1],
            {.weight = class_weights(x[0]), .reduction = Reduction::none, .label_smoothing = 0.1});
      },
      [classes](const Arguments& x) {
        const auto rows = [](const Numbers& one) {
          return naive::reshaped(naive::permute({0, 2, 1})({one}), {4, 3});
        };
        return naive::reshaped(soft_cross_entropy(classes, true, 0.1, false)({rows(x[0]), rows(x[1])}),
                               {2, 2});
      }));
  op.cases.push_back(make_case(
      {{3}, {3}},
      [](const auto& x) {
        return xgrad::cross_entropy(x[0], x[1], {.weight = class_weights(x[0]), .reduction = Reduction::sum});
      },
      [classes](const Arguments& x) {
        const auto row = [](const Numbers& one) { return naive::reshaped(one, {1, 3}); };
        return naive::reshaped(soft_cross_entropy(classes, true, 0, false)({row(x[0]), row(x[1])}), {});
      }));
  op.cases.push_back(make_case(
      {{2, 3}, {2, 3}},
      [](const auto& x) { return xgrad::cross_entropy(x[0], x[1], {.reduction = Reduction::sum}); },
      [classes](const Arguments& x) {
        return naive::sum(0, false)({soft_cross_entropy(classes, false, 0, false)(x)});
      }));
  op.large = large_cases();
  op.errors = {
      error<ValueError>("cross_entropy: label_smoothing must be in [0, 1], got 1.5",
                        [] {
                          xgrad::cross_entropy(x(2, 3), ids_of({2}, {0, 0}), {.label_smoothing = 1.5});
                        }),
      error<ShapeError>("cross_entropy: weight must be (3), got (2)",
                        [] {
                          xgrad::cross_entropy(x(2, 3), ids_of({2}, {0, 0}), {.weight = x(2)});
                        }),
      error<ShapeError>(
          "cross_entropy: target probabilities must have the shape of logits, got logits (2, 3) "
          "and target (2, 2)",
          [] { xgrad::cross_entropy(x(2, 3), x(2, 2)); }),
      error<IndexError>("cross_entropy: target must be in [0, 3), got 5 (3 classes)",
                        [] {
                          xgrad::cross_entropy(x(2, 3), ids_of({2}, {0, 5}));
                        }),
      error<IndexError>("cross_entropy: target must be in [0, 3), got -1 (3 classes)",
                        [] {
                          xgrad::cross_entropy(x(2, 3), ids_of({2}, {-1, 0}));
                        }),
      error<ShapeError>("cross_entropy: target must have the shape of logits without the class "
                        "axis, got logits (2, 3) and target (3)",
                        [] {
                          xgrad::cross_entropy(x(2, 3), ids_of({3}, {0, 0, 0}));
                        }),
      error<ShapeError>("cross_entropy: target must have the shape of logits without the class "
                        "axis, got logits (2, 3, 2) and target (2, 1)",
                        [] {
                          xgrad::cross_entropy(x(2, 3, 2), ids_of({2, 1}, {0, 0}));
                        }),
      error<ShapeError>("cross_entropy: logits need an axis of classes, got ()",
                        [] { xgrad::cross_entropy(x(), ids_of({}, {0})); })};
  return op;
}

const Rows rows([] { return std::vector<Op>{cross_entropy_op()}; });

const Conformance conformance{
    {"cross_entropy", []<class T>(const Call<T>& c) {
       const xgrad::CrossEntropyOptions<T> options{.weight = c.optional(2),
                                                   .ignore_index = c.integer("ignore_index"),
                                                   .reduction = reduction(c),
                                                   .label_smoothing = c.number("label_smoothing")};
       return c.is_ids(1) ? cross_entropy(c.x(), c.ids(1), options) : cross_entropy(c.x(), c.x(1), options);
     }}};

void draw_cross_entropy(Drawing& d) {
  const Classes c = draw_classes(d);
  if (c.target.empty()) return;
  const bool probabilities = d.chance(0.3);
  const Name target = probabilities ? d.constant(d.shape(c.scores), {0.1, 1}) : c.target;
  d.call("cross_entropy", {c.scores, target, c.weight},
         {{"reduction", draw_reduction(d)},
          {"ignore_index", probabilities ? -100 : c.ignore_index},
          {"label_smoothing", d.one_of({0.0, 0.0, 0.1, 1.0})}});
}

const Draws draws{{"cross_entropy", draw_cross_entropy}};

TEST(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  const Variable<float> logits(Array<float>{{1000, 0}, {0, 1000}}, true);
  const Variable<float> loss = cross_entropy(logits, Ids{1, 1});
  EXPECT_EQ(loss.item(), 500);
  loss.backward();
  EXPECT_EQ(logits.grad().value(), (Array<float>{{0.5, -0.5}, {0, 0}}));
}

TEST(CrossEntropyTest, LogitsMayChangeBeforeBackward) {
  const Variable<float> logits(Array<float>{{0, 0}}, true);
  const Variable<float> loss = cross_entropy(logits, Ids{1});
  logits.assign(Array<float>{{5, -5}});
  loss.backward({.retain_graph = true});
  EXPECT_EQ(logits.grad().value(), (Array<float>{{0.5, -0.5}}));
  EXPECT_NE(message_of<xgrad::GraphError>([&] {
              grad(loss, {logits}, {.create_graph = true});
            }).find("was changed in place"),
            std::string::npos);
}

TEST(CrossEntropyTest, TheMeanOverNoTargetIsNanAndIgnoredRowsHaveNoGradient) {
  const Variable<float> logits(Array<float>{{1, nan}, {0, 0}}, true);
  EXPECT_TRUE(std::isnan(cross_entropy(logits, Ids{-100, -100}).item()));
  const Variable<float> loss = cross_entropy(logits, Ids{-100, 0});
  EXPECT_NEAR(loss.item(), std::log(2), 1e-6);
  loss.backward();
  EXPECT_EQ(logits.grad().value(), (Array<float>{{0, 0}, {-0.5, 0.5}}));
}

}  // namespace xgrad_tests::cross_entropy_rows
