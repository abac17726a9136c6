// What there is to test of ctc_loss.
#include <xgrad/ops/loss/ctc_loss.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include <xgrad/ops/index/indexing.hpp>
#include <xgrad/ops/reduce/reductions.hpp>

#include "../common/losses.hpp"
#include "../common/naive.hpp"
#include "../common/op.hpp"

namespace xgrad_tests::ctc_loss_rows {

using naive::Arguments, naive::Numbers;
using xgrad::CtcLossOptions, xgrad::Reduction;

using Labels = std::vector<std::int64_t>;

/// What a path spells.
Labels spelled(const Labels& path, std::int64_t blank) {
  Labels found;
  for (std::size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) found.push_back(path[t]);
  return found;
}

/// -ln of the sum over all paths of classes, one by one.
double loss_of_all_paths(const std::function<double(std::size_t, std::int64_t)>& log_prob, std::size_t steps,
                         std::int64_t classes, const Labels& target, std::int64_t blank) {
  double total = 0;
  Labels path(steps, 0);
  for (;;) {
    if (spelled(path, blank) == target) {
      double sum = 0;
      for (std::size_t t = 0; t < steps; ++t) sum += log_prob(t, path[t]);
      total += std::exp(sum);
    }
    std::size_t t = 0;
    while (t < steps && ++path[t] == classes) path[t++] = 0;
    if (t == steps) return -std::log(total);
  }
}

/// The same by the recursion over pairs of a step and a place, in probabilities scaled by their sum.
double loss_by_recursion(const std::function<double(std::size_t, std::int64_t)>& log_prob, std::size_t steps,
                         const Labels& target, std::int64_t blank) {
  const std::size_t places = 2 * target.size() + 1;
  const auto own = [&](std::size_t s) { return s % 2 == 0 ? blank : target[s / 2]; };
  std::vector<double> now(places, 0);
  double logarithm = 0;
  for (std::size_t t = 0; t < steps; ++t) {
    std::vector<double> next(places, 0);
    double sum = 0;
    for (std::size_t s = 0; s < places; ++s) {
      double from = t == 0 ? (s < 2 ? 1 : 0) : now[s];
      if (t > 0 && s > 0) from += now[s - 1];
      if (t > 0 && s > 1 && own(s) != blank && own(s) != own(s - 2)) from += now[s - 2];
      next[s] = from * std::exp(log_prob(t, own(s)));
      sum += next[s];
    }
    for (double& one : next) one /= sum;
    logarithm += std::log(sum);
    now = next;
  }
  return -std::log(now[places - 1] + (places > 1 ? now[places - 2] : 0)) - logarithm;
}

struct Batch {
  Shape shape;  // of log_probs (T, N, C)
  std::vector<Labels> targets;
  Labels input_lengths;
  std::int64_t blank = 0;

  Ids padded() const {
    std::size_t longest = 0;
    for (const Labels& one : targets) longest = std::max(longest, one.size());
    Ids ids({targets.size(), longest}, std::int64_t{-7});  // what is not read
    for (std::size_t n = 0; n < targets.size(); ++n)
      for (std::size_t i = 0; i < targets[n].size(); ++i) ids(n, i) = targets[n][i];
    return ids;
  }
  Ids joined() const {
    Labels all;
    for (const Labels& one : targets) all.insert(all.end(), one.begin(), one.end());
    return ids_from(all);
  }
  Ids lengths() const {
    Labels all;
    for (const Labels& one : targets) all.push_back(static_cast<std::int64_t>(one.size()));
    return ids_from(all);
  }
  static Ids ids_from(const Labels& list) {
    Ids ids = Ids::from_shape({list.size()});
    std::copy(list.begin(), list.end(), ids.begin());
    return ids;
  }
};

Case sample(const Batch& batch, bool joined, Reduction reduction, bool every_path) {
  return make_case(
      {{batch.shape, {-3, -0.1}}},
      [=](const auto& x) {
        return ctc_loss(x[0], joined ? batch.joined() : batch.padded(), Batch::ids_from(batch.input_lengths),
                        batch.lengths(), {.blank = batch.blank, .reduction = reduction});
      },
      [=](const Arguments& x) {
        Numbers losses = Numbers::from_shape({batch.targets.size()});
        double total = 0, share = 0;
        for (std::size_t n = 0; n < losses.size(); ++n) {
          const auto log_prob = [&](std::size_t t, std::int64_t c) {
            return x[0](t, n, static_cast<std::size_t>(c));
          };
          const auto steps = static_cast<std::size_t>(batch.input_lengths[n]);
          losses(n) = every_path
                          ? loss_of_all_paths(log_prob, steps, static_cast<std::int64_t>(batch.shape[2]),
                                              batch.targets[n], batch.blank)
                          : loss_by_recursion(log_prob, steps, batch.targets[n], batch.blank);
          total += losses(n);
          share += losses(n) / static_cast<double>(std::max<std::size_t>(batch.targets[n].size(), 1));
        }
        if (reduction == Reduction::none) return losses;
        return Numbers(reduction == Reduction::sum ? total : share / static_cast<double>(losses.size()));
      });
}

Op ctc_loss_op() {
  Op op{"ctc_loss"};
  const Batch batch{{5, 3, 3}, {{1, 2}, {1, 1}, {2}}, {5, 4, 3}};
  const Batch blank_last{{4, 2, 3}, {{0, 1, 0}, {}}, {4, 2}, 2};
  op.cases = {sample(batch, false, Reduction::none, true), sample(batch, true, Reduction::mean, true),
              sample(blank_last, false, Reduction::sum, true),
              sample(blank_last, true, Reduction::mean, true),
              make_case(
                  {{{3, 2}, {-3, -0.1}}},
                  [](const auto& x) {
                    return ctc_loss(x[0], ids_of({1}, {1}), ids_of({}, {3}), ids_of({}, {1}),
                                    {.reduction = Reduction::none});
                  },
                  [](const Arguments& x) {
                    return Numbers(loss_of_all_paths(
                        [&](std::size_t t, std::int64_t c) { return x[0](t, static_cast<std::size_t>(c)); },
                        3, 2, {1}, 0));
                  })};
  Batch large{{60, 40, 12}, {}, {}};
  for (std::int64_t n = 0; n < 40; ++n) {
    large.targets.emplace_back();
    for (std::int64_t i = 0; i < n % 20 + 5; ++i) large.targets.back().push_back(1 + (i * i + n) % 11);
    large.input_lengths.push_back(60 - n % 7);
  }
  op.large = {sample(large, false, Reduction::mean, false)};
  const Ids two = ids_of({2}, {2, 2}), four = ids_of({2}, {4, 4}), targets = ids_of({2, 2}, {1, 2, 2, 1});
  op.errors = {
      error<ShapeError>("ctc_loss: log_probs must be (T, N, C) or (T, C), got (3)",
                        [=] { xgrad::ctc_loss(x(3), targets, four, two); }),
      error<ShapeError>(
          "ctc_loss: targets must be (N, S) or joined, lengths (N), for N samples, got N 3, targets "
          "(2, 2), input_lengths (2) and target_lengths (2)",
          [=] { xgrad::ctc_loss(x(4, 3, 3), targets, four, two); }),
      error<IndexError>("ctc_loss: blank must be in [0, 3), got 3",
                        [=] { xgrad::ctc_loss(x(4, 2, 3), targets, four, two, {.blank = 3}); }),
      error<IndexError>("ctc_loss: targets must be in [0, 3) and not the blank 1, got 1",
                        [=] { xgrad::ctc_loss(x(4, 2, 3), targets, four, two, {.blank = 1}); }),
      error<IndexError>("ctc_loss: targets must be in [0, 2) and not the blank 0, got 2",
                        [=] { xgrad::ctc_loss(x(4, 2, 2), targets, four, two); }),
      error<ValueError>("ctc_loss: input_lengths must be in [0, 3], got 4",
                        [=] { xgrad::ctc_loss(x(3, 2, 3), targets, four, two); }),
      error<ValueError>("ctc_loss: target_lengths must be in [0, 2], got 4",
                        [=] { xgrad::ctc_loss(x(4, 2, 3), targets, four, four); }),
      error<ValueError>("ctc_loss: target_lengths must add up to the number of targets 5, got 4", [=] {
        xgrad::ctc_loss(x(4, 2, 3), ids_of({5}, {1, 1, 1, 1, 1}), four, two);
      })};
  return op;
}

const Rows rows([] { return std::vector<Op>{ctc_loss_op()}; });

const Conformance conformance{{"ctc_loss", [](const auto& c) {
                                 return ctc_loss(c.x(), c.ids(1), c.ids(2), c.ids(3),
                                                 {.blank = c.integer("blank"),
                                                  .reduction = reduction(c),
                                                  .zero_infinity = c.flag("zero_infinity")});
                               }}};

void draw_ctc_loss(Drawing& d) {
  const Name x = d.numbers(2);
  const Shape shape = d.shape(x);
  if (shape.size() > 3 || shape.back() < 2) return;
  const std::size_t samples = shape.size() == 2 ? 1 : shape[1], steps = shape[0];
  Ids targets = Ids::from_shape({samples, steps / 2}),
      inputs = Ids({samples}, static_cast<std::int64_t>(steps)), lengths = Ids::from_shape({samples});
  for (std::int64_t& label : targets) label = static_cast<std::int64_t>(1 + d.below(shape.back() - 1));
  for (std::int64_t& length : lengths)  // two equal labels need a step between them
    length = static_cast<std::int64_t>(d.below(steps / 2 + 1));
  const auto leaf = [&](Ids ids) { return d.leaf({.value = {.ids = std::move(ids)}}); };
  d.call("ctc_loss", {x, leaf(targets), leaf(inputs), leaf(lengths)},
         {{"blank", std::ptrdiff_t{0}}, {"reduction", draw_reduction(d)}, {"zero_infinity", true}});
}

const Draws draws{{"ctc_loss", draw_ctc_loss}};

TEST(CtcLossTest, TargetsTooLongAreInfiniteOrCountAsZero) {
  const Variable<double> log_probs(Array<double>({2, 2, 3}, std::log(1.0 / 3)), true);
  const Ids targets = ids_of({2, 2}, {1, 1, 1, 2}), inputs = ids_of({2}, {2, 2}),
            lengths = ids_of({2}, {2, 2});
  const Variable<double> loss = ctc_loss(log_probs, targets, inputs, lengths, {.reduction = Reduction::none});
  EXPECT_EQ(loss.value()(0), inf);  // a blank has no place between the two
  EXPECT_DOUBLE_EQ(loss.value()(1), 2 * std::log(3.0));
  EXPECT_TRUE(std::isnan(grad(sum(loss), {log_probs})[0].value()(0, 0, 1)));

  const Variable<double> finite =
      ctc_loss(log_probs, targets, inputs, lengths, {.reduction = Reduction::none, .zero_infinity = true});
  EXPECT_EQ(finite.value()(0), 0);
  Array<double> want({2, 2, 3}, 0.0);
  want(0, 1, 1) = want(1, 1, 2) = -1;
  EXPECT_EQ(grad(sum(finite), {log_probs}, {.retain_graph = true})[0].value(), want);
  EXPECT_EQ(grad(sum(finite), {log_probs}, {.create_graph = true})[0].value(), want);
}

TEST(CtcLossTest, WithoutStepsOnlyTheEmptyTargetIsPossible) {
  const Variable<double> log_probs(Array<double>({2, 2, 3}, -1.0), true);
  const Variable<double> loss = ctc_loss(log_probs, ids_of({1}, {1}), ids_of({2}, {0, 0}),
                                         ids_of({2}, {0, 1}), {.reduction = Reduction::none});
  EXPECT_EQ(loss.value(), (Array<double>{0, inf}));
  EXPECT_EQ(grad(select(loss, 0, 0), {log_probs})[0].value()(0, 0, 0), 0);
}

TEST(CtcLossTest, AnImpossibleClassLeavesTheOtherPaths) {
  Array<double> log_probs({3, 1, 2}, std::log(0.5));
  log_probs(0, 0, 0) = -inf;  // no blank in the first step
  const Variable<double> x(log_probs, true);
  const Variable<double> loss = ctc_loss(x, ids_of({1, 1}, {1}), ids_of({1}, {3}), ids_of({1}, {1}));
  EXPECT_DOUBLE_EQ(loss.item(), -std::log(3.0 / 8));  // 1 0 0, 1 1 0 and 1 1 1
  const Array<double> slope = grad(loss, {x})[0].value();
  EXPECT_EQ(slope(0, 0, 0), 0);
  EXPECT_EQ(slope(0, 0, 1), -1);
}

TEST(CtcLossTest, ALongInputFarFromZeroNeitherOverflowsNorVanishes) {
  const std::size_t steps = 400;
  const Variable<float> x(Array<float>({steps, 1, 3}, -90.0F), true);
  const Variable<float> loss = ctc_loss(x, ids_of({1, 2}, {1, 2}), ids_of({1}, {400}), ids_of({1}, {2}),
                                        {.reduction = Reduction::sum});
  const double paths = 402.0 * 401 * 400 * 399 / 24;  // the ways to choose the ends of both labels
  EXPECT_NEAR(loss.item(), 400 * 90 - std::log(paths), 0.01);
  const Array<float> slope = grad(loss, {x})[0].value();
  for (std::size_t t = 0; t < steps; ++t)
    EXPECT_NEAR(slope(t, 0, 0) + slope(t, 0, 1) + slope(t, 0, 2), -1, 1e-5) << t;
}

}  // namespace xgrad_tests::ctc_loss_rows
