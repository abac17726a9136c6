// What there is to test and to measure of mse_loss, binary_cross_entropy_with_logits and nll_loss.
#include <xgrad/ops/losses.hpp>

#ifndef XGRAD_BENCH_OPS

#include "common/losses.hpp"
#include "common/naive.hpp"
#include "common/op.hpp"

namespace xgrad_tests {
namespace {

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
  const Ids many = scattered_ids({tall[0]}, 3);
  op.large = {make_case(
      {tall}, [many](const auto& x) { return xgrad::nll_loss(x[0], many, {.weight = class_weights(x[0])}); },
      reference_of(many, true, 'm'))};
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

const Rows rows([] { return std::vector<Op>{mse_loss_op(), binary_cross_entropy_op(), nll_loss_op()}; });

const Conformance conformance{
    {"mse_loss", [](const auto& c) { return mse_loss(c.x(), c.x(1), reduction(c)); }},
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

void draw_nll_loss(Drawing& d) {
  const Classes c = draw_classes(d);
  if (c.target.empty()) return;
  d.call("nll_loss", {c.scores, c.target, c.weight},
         {{"reduction", draw_reduction(d)}, {"ignore_index", c.ignore_index}});
}

const Draws draws{{"mse_loss", draw_mse_loss},
                  {"binary_cross_entropy_with_logits", draw_binary_cross_entropy},
                  {"nll_loss", draw_nll_loss}};

}  // namespace
}  // namespace xgrad_tests

#else  // bench_ops

#include "common/bench.hpp"

namespace bench {
namespace {

const Rows rows("losses", [](const Sizes& s) -> std::vector<Row> {
  return {
      {"mse_loss", {{s.flat}, {s.flat}}, [](auto& a) { return mse_loss(a[0], a[1]); }},
      {"binary_cross_entropy_with_logits",
       {{s.flat}, {s.flat}},
       [](auto& a) { return binary_cross_entropy_with_logits(a[0], a[1]); }},
      {"nll_loss", {{s.matrix}}, [](auto& a) { return nll_loss(a[0], a.ids); }},
  };
});

}  // namespace
}  // namespace bench

#endif
