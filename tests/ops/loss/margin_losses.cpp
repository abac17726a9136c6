// What there is to test of the losses with a margin.
#include <xgrad/ops/loss/margin_losses.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/losses.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::margin_losses_rows {

using naive::Arguments, naive::Numbers;
using xgrad::Reduction;

/// Losses reduced by a letter: none, mean or sum.
Numbers reduced(const Numbers& losses, char reduction) {
  if (reduction == 'n') return losses;
  const Numbers flat = naive::reshaped(losses, {losses.size()});
  return reduction == 's' ? naive::sum(0, false)({flat}) : naive::mean(0, false)({flat});
}

Reduction reduction_of(char letter) {
  return letter == 'n' ? Reduction::none : letter == 's' ? Reduction::sum : Reduction::mean;
}

/// 1, -1, -1, 1, -1, -1, ...: numbers of the type of the argument, without a gradient.
template <class V>
V labels(const V&, const Shape& shape) {
  xgrad::Array<typename V::value_type> target = xgrad::Array<typename V::value_type>::from_shape(shape);
  for (std::size_t i = 0; i < target.size(); ++i) target.data()[i] = i % 3 == 0 ? 1 : -1;
  return V(std::move(target));
}

double label(std::size_t i) { return i % 3 == 0 ? 1 : -1; }

Op margin_ranking_loss_op() {
  Op op{"margin_losses.margin_ranking_loss"};
  // input1 is above 1, input2 below -1, so that no element is near a kink
  const Range high{1, 2}, low{-2, -1};
  const auto sample = [&](const Shape& shape, char reduction) {
    return make_case(
        {{shape, high}, {shape, low}},
        [=](const auto& x) {
          return margin_ranking_loss(x[0], x[1], labels(x[0], shape),
                                     {.margin = 0.5, .reduction = reduction_of(reduction)});
        },
        [=](const Arguments& x) {
          Numbers losses = Numbers::from_shape(shape);
          for (std::size_t i = 0; i < losses.size(); ++i)
            losses.data()[i] = std::max(0.5 - label(i) * (x[0].data()[i] - x[1].data()[i]), 0.0);
          return reduced(losses, reduction);
        });
  };
  op.cases = {sample({2, 3}, 'n'), sample({7}, 's'), sample({7}, 'm'), sample({}, 'm')};
  op.large = {sample(plane, 'm')};
  op.errors = {error<ShapeError>("margin_ranking_loss: shapes must broadcast, got input1 (2) and input2 (3)",
                                 [] { xgrad::margin_ranking_loss(x(2), x(3), x(2)); })};
  return op;
}

Op cosine_embedding_loss_op() {
  Op op{"margin_losses.cosine_embedding_loss"};
  const auto sample = [](const Shape& shape, double margin, char reduction) {
    const Shape rows(shape.begin(), shape.end() - 1);
    return make_case(
        {{shape, {0.5, 2}}, {shape, {0.5, 2}}},  // cosines are far above the margin
        [=](const auto& x) {
          return cosine_embedding_loss(x[0], x[1], labels(x[0], rows),
                                       {.margin = margin, .reduction = reduction_of(reduction)});
        },
        [=](const Arguments& x) {
          const std::size_t cols = shape.back();
          Numbers losses = Numbers::from_shape(rows);
          for (std::size_t r = 0; r < losses.size(); ++r) {
            double product = 0, a = 0, b = 0;
            for (std::size_t c = r * cols; c < (r + 1) * cols; ++c) {
              product += x[0].data()[c] * x[1].data()[c];
              a += x[0].data()[c] * x[0].data()[c];
              b += x[1].data()[c] * x[1].data()[c];
            }
            const double cosine = product / std::sqrt(a * b);
            losses.data()[r] = label(r) > 0 ? 1 - cosine : std::max(cosine - margin, 0.0);
          }
          return reduced(losses, reduction);
        });
  };
  op.cases = {sample({4, 3}, 0, 'n'), sample({4, 3}, 0.25, 's'), sample({5, 2}, -0.5, 'm'),
              sample({3}, 0, 'm')};
  op.large = {sample(plane, 0.1, 'm')};
  op.errors = {
      error<ShapeError>(
          "cosine_embedding_loss: input1 and input2 must be (N, D) and target (N), or (D) and (), got input1 "
          "(2, 3), input2 (2, 3) and target (3)",
          [] { xgrad::cosine_embedding_loss(x(2, 3), x(2, 3), x(3)); }),
      error<ValueError>("cosine_embedding_loss: target must be 1 or -1, got 0", [] {
        xgrad::cosine_embedding_loss(x(2, 3), x(2, 3), Variable<float>(Array<float>{1, 0}));
      })};
  return op;
}

Op hinge_embedding_loss_op() {
  Op op{"margin_losses.hinge_embedding_loss"};
  const auto sample = [](const Shape& shape, char reduction, Range range) {
    return make_case(
        {{shape, range}},
        [=](const auto& x) {
          return hinge_embedding_loss(x[0], labels(x[0], shape),
                                      {.margin = 0.75, .reduction = reduction_of(reduction)});
        },
        [=](const Arguments& x) {
          Numbers losses = Numbers::from_shape(shape);
          for (std::size_t i = 0; i < losses.size(); ++i) {
            const double one = x[0].data()[i];
            losses.data()[i] = label(i) > 0 ? one : std::max(0.75 - one, 0.0);
          }
          return reduced(losses, reduction);
        });
  };
  op.cases = {sample({2, 3}, 'n', {-1, 0.7}), sample({7}, 's', {0.8, 2}), sample({7}, 'm', {-1, 0.7})};
  op.large = {sample(long_vector, 'm', {-1, 0.7})};
  op.errors = {error<ValueError>("hinge_embedding_loss: target must be 1 or -1, got 2",
                                 [] {
                                   xgrad::hinge_embedding_loss(x(2), Variable<float>(Array<float>{1, 2}));
                                 }),
               error<ShapeError>("hinge_embedding_loss: shapes must broadcast, got input (2) and target (3)",
                                 [] { xgrad::hinge_embedding_loss(x(2), x(3)); })};
  return op;
}

Op soft_margin_loss_op() {
  Op op{"margin_losses.soft_margin_loss"};
  const auto sample = [](const Shape& shape, char reduction) {
    return make_case(
        {{shape}, {shape}},
        [=](const auto& x) { return soft_margin_loss(x[0], x[1], reduction_of(reduction)); },
        [=](const Arguments& x) {
          Numbers losses = Numbers::from_shape(shape);
          for (std::size_t i = 0; i < losses.size(); ++i)
            losses.data()[i] = std::log1p(std::exp(-x[1].data()[i] * x[0].data()[i]));
          return reduced(losses, reduction);
        });
  };
  op.cases = {sample({2, 3}, 'n'), sample({7}, 's'), sample({7}, 'm')};
  op.large = {sample(long_vector, 'm')};
  op.errors = {error<ShapeError>("soft_margin_loss: shapes must broadcast, got input (2) and target (3)",
                                 [] { xgrad::soft_margin_loss(x(2), x(3)); })};
  return op;
}

Op triplet_margin_loss_op() {
  Op op{"margin_losses.triplet_margin_loss"};
  const auto distance = [](const Numbers& a, const Numbers& b, std::size_t row, double p) {
    const std::size_t cols = a.shape().back();
    double sum = 0;
    for (std::size_t c = row * cols; c < (row + 1) * cols; ++c)
      sum += std::pow(std::abs(a.data()[c] - b.data()[c] + 1e-6), p);
    return std::pow(sum, 1 / p);
  };
  // anchors in [0, 1], what is near to them in [-0.9, -0.1], what is far in [3, 4]: losses above and below 0
  const auto sample = [distance](const Shape& shape, double margin, double p, bool swap, char reduction) {
    return make_case(
        {{shape, {0, 1}}, {shape, {-0.9, -0.1}}, {shape, {3, 4}}},
        [=](const auto& x) {
          return triplet_margin_loss(
              x[0], x[1], x[2],
              {.margin = margin, .p = p, .swap = swap, .reduction = reduction_of(reduction)});
        },
        [=](const Arguments& x) {
          Numbers losses = Numbers::from_shape(Shape(shape.begin(), shape.end() - 1));
          for (std::size_t r = 0; r < losses.size(); ++r) {
            double far = distance(x[0], x[2], r, p);
            if (swap) far = std::min(far, distance(x[1], x[2], r, p));
            losses.data()[r] = std::max(margin + distance(x[0], x[1], r, p) - far, 0.0);
          }
          return reduced(losses, reduction);
        });
  };
  op.cases = {sample({4, 3}, 9, 2, false, 'n'), sample({4, 3}, 0, 2, false, 's'),
              sample({4, 3}, 20, 1, true, 's'), sample({2, 2, 3}, 12, 3, true, 'm'),
              sample({3}, 9, 2, false, 'm')};
  op.large = {sample(plane, 200, 2, false, 'm')};
  op.errors = {error<ShapeError>(
      "triplet_margin_loss: operands need an axis, got anchor (2), positive () and negative (2)",
      [] { xgrad::triplet_margin_loss(x(2), x(), x(2)); })};
  return op;
}

TEST(MultiMarginLossTest, OneSampleMayHaveNoAxis) {
  const Variable<double> one(0.3, true), row(Array<double>{0.3, 0.2}, true);
  EXPECT_EQ(multi_margin_loss(one, Ids(Shape{}, 0)).item(), 0);
  EXPECT_EQ(multi_margin_loss(one, Ids{0}, {.reduction = Reduction::none}).value(), (Array<double>{0}));
  EXPECT_NEAR(multi_margin_loss(row, Ids{0}).item(), 0.45, 1e-12);
  EXPECT_EQ(multi_margin_loss(row, Ids{1}, {.reduction = Reduction::none}).shape(), Shape{1});
}

Op multi_margin_loss_op() {
  Op op{"margin_losses.multi_margin_loss"};
  const auto sample = [](const Shape& shape, const Ids& target, int p, double margin, bool weighted,
                         char reduction) {
    return make_case(
        {{shape, {0, 1}}},
        [=](const auto& x) {
          using V = std::decay_t<decltype(x[0])>;
          return multi_margin_loss(x[0], target,
                                   {.p = p,
                                    .margin = margin,
                                    .weight = weighted ? class_weights(x[0]) : V(),
                                    .reduction = reduction_of(reduction)});
        },
        [=](const Arguments& x) {
          const std::size_t classes = shape.back();
          Numbers losses = Numbers::from_shape(target.shape());
          for (std::size_t r = 0; r < losses.size(); ++r) {
            const auto own = static_cast<std::size_t>(target.data()[r]);
            losses.data()[r] = 0;
            for (std::size_t c = 0; c < classes; ++c) {
              const double over = margin - x[0].data()[r * classes + own] + x[0].data()[r * classes + c];
              if (c != own)
                losses.data()[r] += std::pow(std::max(over, 0.0), p) * (weighted ? double(own + 1) : 1);
            }
            losses.data()[r] /= static_cast<double>(classes);
          }
          return reduced(losses, reduction);
        });
  };
  const Ids target = ids_of({4}, {2, 1, 0, 1});
  op.cases = {sample({4, 3}, target, 1, 1.1, false, 'n'), sample({4, 3}, target, 2, 1.1, true, 's'),
              sample({4, 3}, target, 1, -1.1, true, 'm'), sample({3}, ids_of({}, {1}), 2, 1.5, false, 'm')};
  op.large = {sample(tall, scattered_ids({tall[0]}, 3), 2, 1.1, true, 'm')};
  op.errors = {error<IndexError>("multi_margin_loss: target must be in [0, 3), got 3",
                                 [] {
                                   xgrad::multi_margin_loss(x(2, 3), ids_of({2}, {0, 3}));
                                 }),
               error<ShapeError>(
                   "multi_margin_loss: input must be (N, C) and target (N), or (C) and (), with C above 0, "
                   "got input (2, 3) and target (3)",
                   [] {
                     xgrad::multi_margin_loss(x(2, 3), ids_of({3}, {0, 0, 0}));
                   }),
               error<ShapeError>("multi_margin_loss: weight must be (3), got (2)",
                                 [] {
                                   xgrad::multi_margin_loss(x(2, 3), ids_of({2}, {0, 0}), {.weight = x(2)});
                                 }),
               error<ValueError>("multi_margin_loss: p must be 1 or 2, got 3", [] {
                 xgrad::multi_margin_loss(x(2, 3), ids_of({2}, {0, 0}), {.p = 3});
               })};
  return op;
}

const Rows rows([] {
  return std::vector<Op>{margin_ranking_loss_op(), cosine_embedding_loss_op(), hinge_embedding_loss_op(),
                         soft_margin_loss_op(),    triplet_margin_loss_op(),   multi_margin_loss_op()};
});

const Conformance conformance{
    {"margin_ranking_loss",
     [](const auto& c) {
       return margin_ranking_loss(c.x(), c.x(1), c.x(2),
                                  {.margin = c.number("margin"), .reduction = reduction(c)});
     }},
    {"cosine_embedding_loss",
     [](const auto& c) {
       return cosine_embedding_loss(c.x(), c.x(1), c.x(2),
                                    {.margin = c.number("margin"), .reduction = reduction(c)});
     }},
    {"hinge_embedding_loss",
     [](const auto& c) {
       return hinge_embedding_loss(c.x(), c.x(1), {.margin = c.number("margin"), .reduction = reduction(c)});
     }},
    {"soft_margin_loss", [](const auto& c) { return soft_margin_loss(c.x(), c.x(1), reduction(c)); }},
    {"triplet_margin_loss",
     [](const auto& c) {
       return triplet_margin_loss(c.x(), c.x(1), c.x(2),
                                  {.margin = c.number("margin"),
                                   .p = c.number("p"),
                                   .eps = c.number("eps"),
                                   .swap = c.flag("swap"),
                                   .reduction = reduction(c)});
     }},
    {"multi_margin_loss", [](const auto& c) {
       return multi_margin_loss(c.x(), c.ids(1),
                                {.p = static_cast<int>(c.integer("p")),
                                 .margin = c.number("margin"),
                                 .weight = c.optional(2),
                                 .reduction = reduction(c)});
     }}};

/// 1 and -1.
Name draw_labels(Drawing& d, const Shape& shape) {
  Array<double> target = Array<double>::from_shape(shape);
  for (double& one : target) one = d.chance(0.5) ? 1 : -1;
  return d.leaf({.value = {.numbers = Variable<double>(std::move(target))}});
}

/// Whether the losses are clear of the kink where they become 0.
bool is_smooth(Drawing& d, const std::string& op, const std::vector<Name>& inputs, std::vector<Attr> attrs) {
  attrs.push_back({"reduction", "none"});
  const Array<double> losses = d.result(op, inputs, attrs);
  return std::none_of(losses.begin(), losses.end(), [](double loss) { return loss < 0.05; });
}

/// Calls the loss where all are above 0.
void draw_smooth(Drawing& d, const std::string& op, const std::vector<Name>& inputs,
                 std::vector<Attr> attrs) {
  if (!is_smooth(d, op, inputs, attrs)) return;
  attrs.push_back({"reduction", draw_reduction(d)});
  d.call(op, inputs, attrs);
}

void draw_margin_ranking_loss(Drawing& d) {
  const Name a = d.numbers(), b = d.numbers(d.shape(a));
  draw_smooth(d, "margin_ranking_loss", {a, b, draw_labels(d, d.shape(a))},
              {{"margin", d.one_of({0.0, 4.0, 10.0})}});
}

void draw_cosine_embedding_loss(Drawing& d) {
  const Name a = d.numbers(1);
  if (d.rank(a) > 2) return;
  const Shape shape = d.shape(a), rows(shape.begin(), shape.end() - 1);
  draw_smooth(d, "cosine_embedding_loss",
              {d.within(a, {0.3, 2}), d.within(d.numbers(shape), {0.3, 2}), draw_labels(d, rows)},
              {{"margin", d.one_of({-1.0, 0.0, 0.5})}});
}

void draw_hinge_embedding_loss(Drawing& d) {
  const Name a = d.numbers();
  draw_smooth(d, "hinge_embedding_loss", {a, draw_labels(d, d.shape(a))}, {{"margin", d.one_of({1.0, 6.0})}});
}

void draw_soft_margin_loss(Drawing& d) {
  const auto [a, b] = broadcasting(d);
  d.call("soft_margin_loss", {a, b}, {{"reduction", draw_reduction(d)}});
}

void draw_triplet_margin_loss(Drawing& d) {
  const Name a = d.within(d.numbers(1), {0.2, 1});
  const Shape shape = d.shape(a);
  draw_smooth(d, "triplet_margin_loss",
              {a, d.within(d.numbers(shape), {-1, -0.2}), d.within(d.numbers(shape), {2, 3})},
              {{"margin", 50.0}, {"p", d.one_of({1.0, 2.0, 3.0})}, {"eps", 1e-6}, {"swap", false}});
}

void draw_multi_margin_loss(Drawing& d) {
  const Name scores = d.within(d.numbers(1), {0, 1});
  const Shape shape = d.shape(scores);
  if (shape.size() > 2 || shape.back() == 0) return;
  const std::size_t classes = shape.back();
  const Name target = d.ids(Shape(shape.begin(), shape.end() - 1), classes);
  const Name weight = d.chance(0.5) ? d.constant({classes}, {0.5, 2}) : Name();
  d.call("multi_margin_loss", {scores, target, weight},
         {{"p", static_cast<std::ptrdiff_t>(d.one_of({1, 2}))},
          {"margin", 1.5},
          {"reduction", draw_reduction(d)}});
}

const Draws draws{{"margin_ranking_loss", draw_margin_ranking_loss},
                  {"cosine_embedding_loss", draw_cosine_embedding_loss},
                  {"hinge_embedding_loss", draw_hinge_embedding_loss},
                  {"soft_margin_loss", draw_soft_margin_loss},
                  {"triplet_margin_loss", draw_triplet_margin_loss},
                  {"multi_margin_loss", draw_multi_margin_loss}};

TEST(MarginLossesTest, ASoftMarginDoesNotOverflow) {
  const Variable<float> input(Array<float>{1000, -1000}, true), target(Array<float>{-1, 1});
  const Variable<float> loss = soft_margin_loss(input, target, Reduction::none);
  EXPECT_EQ(loss.value(), (Array<float>{1000, 1000}));
  EXPECT_EQ(grad(sum(loss), {input})[0].value(), (Array<float>{1, -1}));
}

TEST(MarginLossesTest, VectorsOfZerosHaveNoAngleAndNoNan) {
  const Variable<double> zeros(Array<double>({2, 3}, 0.0), true), target(Array<double>{1, -1});
  const Variable<double> loss = cosine_embedding_loss(zeros, zeros, target, {.reduction = Reduction::none});
  EXPECT_EQ(loss.value(), (Array<double>{1, 0}));
  EXPECT_EQ(grad(sum(loss), {zeros})[0].value(), (Array<double>({2, 3}, 0.0)));
}

TEST(MarginLossesTest, TheAngleOfLongAndOfParallelVectorsIsThere) {
  const Variable<float> long_rows(Array<float>{{3e20F, 4e20F}}, true), unit(Array<float>{{4e20F, 3e20F}});
  const Variable<float> target(Array<float>{1});
  const Variable<float> loss = cosine_embedding_loss(long_rows, unit, target);
  EXPECT_NEAR(loss.item(), 0.04, 1e-6);
  const Array<float> dx = grad(loss, {long_rows})[0].value();
  EXPECT_NEAR(dx(0, 0) * 1e20, -0.8 * 0.28 / 5, 1e-6);
  EXPECT_NEAR(dx(0, 1) * 1e20, 0.6 * 0.28 / 5, 1e-6);
}

}  // namespace xgrad_tests::margin_losses_rows
