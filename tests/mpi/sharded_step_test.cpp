// Gradients of a batch in parts: the same bits for any number of ranks and threads, and the gradient of the
// whole.

#include <xgrad/mpi/sharded_step.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include <xgrad/base/creation.hpp>
#include <xgrad/base/random.hpp>
#include <xgrad/mpi/detail/tree_sum.hpp>
#include <xgrad/ops.hpp>

#include "expect_error.hpp"
#include "keep_num_threads.hpp"
#include "ranks.hpp"
#include "sharded_training.hpp"

namespace sharded_step_test {

using xgrad::Array, xgrad::Shape, xgrad::mpi::ShardedStep, xgrad::Variable, xgrad::WeightedLoss;
using xgrad_tests::first_examples, xgrad_tests::message_of, xgrad_tests::trained;
using Examples = std::vector<std::size_t>;
using Chosen = std::span<const std::size_t>;

/// The sum of brackets that a tree makes: "((0+1)+2)".
struct Brackets {
  std::string text;
  void add(const Brackets& more) { text = "(" + text + "+" + more.text + ")"; }
  void add(const Brackets& b, Brackets c, const Brackets& d) {
    add(b);
    c.add(d);
    add(c);
  }
};

using Tree = xgrad::detail::TreeSum<Brackets>;

std::string brackets(std::size_t parts) {
  Tree tree;
  for (std::size_t i = 0; i < parts; ++i) tree.push({1, {std::to_string(i)}});
  return tree.total().text;
}

TEST(TreeSumTest, IsBalanced) {
  EXPECT_EQ(brackets(1), "0");
  EXPECT_EQ(brackets(2), "(0+1)");
  EXPECT_EQ(brackets(3), "((0+1)+2)");
  EXPECT_EQ(brackets(8), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(brackets(7), "(((0+1)+(2+3))+((4+5)+6))");
  EXPECT_EQ(brackets(12), "((((0+1)+(2+3))+((4+5)+(6+7)))+((8+9)+(10+11)))");
}

TEST(TreeSumTest, PiecesGiveTheSameSumWhereverTheyEnd) {
  for (std::size_t parts = 1; parts <= 12; ++parts) {
    for (std::size_t first = 0; first <= parts; ++first) {
      for (std::size_t second = first; second <= parts; ++second) {
        Tree whole;
        for (const auto& [begin, end] :
             {std::pair{std::size_t{0}, first}, std::pair{first, second}, std::pair{second, parts}}) {
          Tree piece(begin);
          for (std::size_t i = begin; i < end; ++i) piece.push({1, {std::to_string(i)}});
          std::vector<std::size_t> counts;
          for (const Tree::Node& node : piece.nodes()) counts.push_back(node.count);
          EXPECT_EQ(counts, xgrad::detail::tree_nodes(begin, end));
          for (const Tree::Node& node : piece.nodes()) whole.push(node);
        }
        EXPECT_EQ(whole.total().text, brackets(parts)) << first << " " << second;
      }
    }
  }
}

TEST(TreeSumTest, APieceIsAsFewNodesAsThereCanBe) {
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(xgrad::detail::tree_nodes(0, 8), (Counts{8}));
  EXPECT_EQ(xgrad::detail::tree_nodes(3, 6), (Counts{1, 2}));
  EXPECT_EQ(xgrad::detail::tree_nodes(1, 8), (Counts{1, 2, 4}));
  EXPECT_EQ(xgrad::detail::tree_nodes(4, 4), Counts());
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(ShardedStepTest, HasTheSameBitsForAnyNumberOfRanksAndThreads) {
  const xgrad_tests::KeepNumThreads keep;
  for (const std::size_t shards : {1, 2, 6, 8, 12}) {
    xgrad::set_num_threads(1);
    const std::vector<float> expected = trained(shards);
    for (const std::size_t threads : {1, 2, 3}) {
      xgrad::set_num_threads(threads);
      EXPECT_TRUE(same_bits(trained(shards), expected)) << shards << " shards, " << threads << " threads";
      for (std::size_t count = 1; count <= std::min<std::size_t>(shards, 8); ++count) {
        xgrad_tests::Ranks::run(count, [&](xgrad::mpi::Communicator& ranks) {
          EXPECT_TRUE(same_bits(trained(shards, &ranks), expected))
              << shards << " shards, " << threads << " threads, rank " << ranks.rank() << " of " << count;
        });
      }
    }
  }
}

TEST(ShardedStepTest, HasTheSameBitsForAnySizeOfBuckets) {
  for (const std::size_t shards : {3, 4}) {
    const std::vector<float> expected = trained(shards);
    for (const std::size_t bytes : {1, 40, 4096, 1 << 20}) {
      for (const std::size_t count : {2, 3, 4}) {
        if (count > shards) continue;
        xgrad_tests::Ranks::run(count, [&](xgrad::mpi::Communicator& ranks) {
          EXPECT_TRUE(same_bits(trained(shards, &ranks, bytes), expected))
              << shards << " shards, buckets of " << bytes << " bytes, rank " << ranks.rank() << " of "
              << count;
        });
      }
    }
  }
}

TEST(ShardedStepTest, ShardsAreASettingOfTheRun) { EXPECT_FALSE(same_bits(trained(2), trained(3))); }

/// y = x w + b, of which each example uses what it wants.
struct Line {
  Variable<double> w{2.0, true}, b{1.0, true};
  std::vector<Variable<double>> parameters() const { return {w, b}; }
};

TEST(ShardedStepTest, TheGradientIsThatOfTheMeanLossOfTheWholeBatch) {
  const Line line;
  const Array<double> x{1, 2, 3, 4, 5}, weights{1, 0, 0.5, 2, 1};
  const auto weighted = [&](Chosen examples) {
    Variable<double> sum(0.0);
    double weight = 0;
    for (const std::size_t i : examples) {
      sum = sum + exp(line.w * (x(i) / 10) + line.b) * weights(i);
      weight += weights(i);
    }
    return WeightedLoss<double>{sum, weight};
  };
  const WeightedLoss<double> whole = weighted(first_examples(5));
  (whole.sum / whole.weight).backward();
  const double w = line.w.grad().item(), b = line.b.grad().item();
  for (const std::size_t shards : {1, 2, 3, 5, 8}) {
    ShardedStep<double> sharded(line.parameters(), {.shards = shards});
    const xgrad::BatchLoss loss = sharded.backward(0, first_examples(5), weighted);
    EXPECT_NEAR(loss.sum, whole.sum.item(), 1e-12);
    EXPECT_EQ(loss.weight, 4.5);
    EXPECT_NEAR(loss.mean(), whole.sum.item() / 4.5, 1e-12);
    EXPECT_NEAR(line.w.grad().item(), w, 1e-12);
    EXPECT_NEAR(line.b.grad().item(), b, 1e-12);
  }
}

TEST(ShardedStepTest, CutsTheBatchEvenlyIntoAsManyShardsAsItHasExamples) {
  const Line line;
  const auto cut = [&](std::size_t examples, std::size_t shards) {
    std::vector<std::size_t> sizes;
    Examples seen;
    ShardedStep<double> sharded(line.parameters(), {.shards = shards});
    sharded.backward(0, first_examples(examples), [&](Chosen chosen) {
      sizes.push_back(chosen.size());
      seen.insert(seen.end(), chosen.begin(), chosen.end());
      return WeightedLoss<double>{line.w, 1};
    });
    EXPECT_EQ(seen, first_examples(examples));
    return sizes;
  };
  EXPECT_EQ(cut(16, 4), (Examples{4, 4, 4, 4}));
  EXPECT_EQ(cut(13, 4), (Examples{3, 3, 3, 4}));
  EXPECT_EQ(cut(3, 8), (Examples{1, 1, 1}));
  EXPECT_EQ(cut(1, 1), (Examples{1}));
}

TEST(ShardedStepTest, AddsInTheOrderOfTheTree) {
  const Variable<float> w(1.0f, true);
  const Array<float> slopes{1e8f, 1, -1e8f, 1};
  ShardedStep<float> sharded({w}, {.shards = 4});
  const auto slope = [&](Chosen examples) { return WeightedLoss<float>{w * slopes(examples[0]), 1}; };
  const xgrad::BatchLoss loss = sharded.backward(0, first_examples(4), slope);
  EXPECT_EQ(w.grad().item(), 0) << "(1e8 + 1) + (-1e8 + 1) in float";
  EXPECT_EQ(loss.sum, 2) << "losses are added in double";
}

TEST(ShardedStepTest, AParameterThatSomeShardsDoNotUseIsZeroThereAndNoneIfNoneUsesIt) {
  for (const std::size_t count : {1, 2, 3}) {
    xgrad_tests::Ranks::run(count, [](xgrad::mpi::Communicator& ranks) {
      const Line line;
      ShardedStep<double> sharded(line.parameters(), {.shards = 4, .ranks = &ranks});
      line.b.set_grad(7.0);
      sharded.backward(0, first_examples(4), [&](Chosen examples) {
        return WeightedLoss<double>{examples[0] == 3 ? line.w * 8.0 : line.w * 0.0 + line.b * 0.0, 1};
      });
      EXPECT_EQ(line.w.grad().item(), 2);
      EXPECT_TRUE(line.b.has_grad());
      EXPECT_EQ(line.b.grad().item(), 0);
      sharded.backward(1, first_examples(4), [&](Chosen) { return WeightedLoss<double>{line.w * 8.0, 1}; });
      EXPECT_EQ(line.w.grad().item(), 8);
      EXPECT_FALSE(line.b.has_grad());
    });
  }
}

TEST(ShardedStepTest, SkipsFrozenParameters) {
  const xgrad::Linear<double> layer(3, 2);
  layer.requires_grad("weight", false);
  ShardedStep<double> sharded(layer.parameters(), {.shards = 1});
  const Variable<double> x(xgrad::ones<double>({1, 3}));
  sharded.backward(0, std::vector<std::size_t>{0},
                   [&](auto) { return WeightedLoss<double>{.sum = sum(layer(x)), .weight = 1}; });
  EXPECT_FALSE(layer.parameters()[0].has_grad());
  EXPECT_TRUE(layer.parameters()[1].has_grad());
}

TEST(ShardedStepTest, GradientsStayAsTheyAreUntilTheNewOnesAreThere) {
  const Line line;
  ShardedStep<double> sharded(line.parameters(), {.shards = 2});
  line.w.set_grad(7.0);
  const std::string error = message_of([&] {
    sharded.backward(0, first_examples(2), [&](Chosen examples) {
      EXPECT_EQ(line.w.grad().item(), 7);
      if (examples[0] == 1) throw std::runtime_error("no more");
      return WeightedLoss<double>{line.w, 1};
    });
  });
  EXPECT_EQ(error, "no more");
  EXPECT_EQ(line.w.grad().item(), 7);
}

/// What shard() does on rank 1 of three, where somebody catches it, ends the run of the others.
template <class F>
void expect_others_end(const F& shard) {
  std::size_t caught = 0;
  xgrad_tests::Ranks::run(3, [&](xgrad::mpi::Communicator& ranks) {
    const Line line;
    ShardedStep<double> sharded(line.parameters(), {.shards = 3, .ranks = &ranks});
    const auto one = [&](Chosen) {
      return ranks.rank() == 1 ? shard(line) : WeightedLoss<double>{line.w, 1};
    };
    try {
      sharded.backward(0, first_examples(3), one);
      ADD_FAILURE() << "rank " << ranks.rank();
    } catch (const std::runtime_error&) {
      ++caught;
    } catch (const xgrad::ValueError&) {
      ++caught;
    } catch (int) {
      ++caught;
    }
  });
  EXPECT_EQ(caught, 1u);
}

TEST(ShardedStepTest, WhatGoesWrongOnOneRankEndsTheOthers) {
  expect_others_end([](const Line&) -> WeightedLoss<double> { throw std::runtime_error("no more"); });
  expect_others_end([](const Line&) -> WeightedLoss<double> { throw 7; });
  expect_others_end([](const Line& line) { return WeightedLoss<double>{line.w, -1}; });
}

TEST(ShardedStepTest, WhatAllRanksKnowCanBeCaughtAndTheNextStepMade) {
  for (const std::size_t count : {1, 2}) {
    xgrad_tests::Ranks::run(count, [](xgrad::mpi::Communicator& ranks) {
      const Line line;
      ShardedStep<double> sharded(line.parameters(), {.shards = 2, .ranks = &ranks});
      const auto of_weight = [&](std::size_t step, double weight) {
        sharded.backward(step, first_examples(2), [&](Chosen) {
          return WeightedLoss<double>{line.w, weight};
        });
      };
      EXPECT_EQ(message_of<xgrad::ValueError>([&] { of_weight(0, 0); }),
                "ShardedStep: the weights of a batch must add up to more than 0, got 0");
      of_weight(1, 0.5);
      EXPECT_EQ(line.w.grad().item(), 2);
    });
  }
}

TEST(ShardedStepTest, EveryRankHasTheTimesOfAll) {
  const Line line;
  ShardedStep<double> alone(line.parameters());
  EXPECT_EQ(alone.rank_times().size(), 1u);
  EXPECT_EQ(alone.rank_times()[0].computing, 0);
  const auto half = [](Chosen examples, const Line& of) {
    return WeightedLoss<double>{of.w * static_cast<double>(examples.size()), 1};
  };
  alone.backward(0, first_examples(4), [&](Chosen examples) { return half(examples, line); });
  EXPECT_GT(alone.rank_times()[0].computing, 0);
  EXPECT_EQ(alone.bytes_sent(), 0u);
  std::vector<std::vector<double>> told(2);
  xgrad_tests::Ranks::run(2, [&](xgrad::mpi::Communicator& ranks) {
    const Line mine;
    ShardedStep<double> sharded(mine.parameters(), {.shards = 2, .ranks = &ranks});
    for (std::size_t step = 0; step < 3; ++step)
      sharded.backward(step, first_examples(4), [&](Chosen examples) { return half(examples, mine); });
    for (const xgrad::mpi::RankTimes& times : sharded.rank_times()) {
      EXPECT_GT(times.computing, 0);
      EXPECT_GT(times.waiting, 0);
      EXPECT_LT(times.overlapping, times.computing);
      told[ranks.rank()].insert(told[ranks.rank()].end(),
                                {times.computing, times.waiting, times.overlapping});
    }
    // Of two gradients, and of loss, weight, tokens and two counts, 2 n (R - 1) / R.
    EXPECT_NEAR(static_cast<double>(sharded.bytes_sent()), 2.0 * 7 * sizeof(double) / 2, sizeof(double));
  });
  EXPECT_EQ(told[0], told[1]);
}

TEST(ShardedStepTest, ASummaryOfTimesNamesTheSlowestRank) {
  EXPECT_EQ(
      xgrad::mpi::summary({{.computing = 12.31, .waiting = 0.42, .overlapping = 2.3},
                           {.computing = 12.8, .waiting = 0.02, .overlapping = 0.2},
                           {.computing = 12.5, .waiting = 0.06, .overlapping = 0.33}}),
      "3 ranks computed 12.3 to 12.8 s (rank 1), 0.2 to 2.3 s of it while gradients were on their way, and "
      "waited 0.02 to 0.42 s");
  EXPECT_EQ(
      xgrad::mpi::summary({{.computing = 1}}),
      "1 rank computed 1 to 1 s (rank 0), 0 to 0 s of it while gradients were on their way, and waited 0 to "
      "0 s");
  EXPECT_EQ(message_of([] { xgrad::mpi::summary({}); }), "summary: there must be ranks, got none");
}

TEST(ShardedStepTest, EachShardOfEachStepDrawsFromAStreamOfItsOwn) {
  const Line line;
  const auto drawn = [&](std::uint64_t seed, std::size_t step) {
    std::vector<double> numbers;
    ShardedStep<double> sharded(line.parameters(), {.shards = 3, .seed = seed});
    sharded.backward(step, first_examples(3), [&](Chosen) {
      numbers.push_back(xgrad::uniform<double>({1})(0));
      return WeightedLoss<double>{line.w, 1};
    });
    return numbers;
  };
  xgrad::manual_seed(1);
  const std::string before = xgrad::get_rng_state();
  constexpr std::uint64_t high = std::uint64_t{1} << 32;
  std::vector<double> all;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, high}) {
    for (const std::size_t step : {std::size_t{0}, std::size_t{1}, std::size_t{high}}) {
      const std::vector<double> numbers = drawn(seed, step);
      EXPECT_EQ(drawn(seed, step), numbers);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(xgrad::get_rng_state(), before);
}

/// What two ranks say that do not do the same.
template <class F>
std::string disagreement(const F& f) {
  return message_of([&] { xgrad_tests::Ranks::run(2, f); });
}

TEST(ShardedStepTest, RanksHaveToAgree) {
  using xgrad::mpi::Communicator;
  EXPECT_EQ(disagreement([](Communicator& ranks) {
              const Line line;
              ShardedStep<double>(line.parameters(),
                                  {.shards = 2 + ranks.rank(), .seed = ranks.rank(), .ranks = &ranks});
            }),
            "rank 1 differs from rank 0: the number of shards is '3', not '2'; the seed of the shards is "
            "'1', not '0'");
  EXPECT_NE(disagreement([](Communicator& ranks) {
              ShardedStep<float>({Variable<float>(xt::zeros<float>({2ul, 1 + ranks.rank()}), true)},
                                 {.ranks = &ranks});
            }).find("the shapes of the parameters is '(2, 2)', not '(2, 1)'"),
            std::string::npos);
  const std::string other_values = disagreement([](Communicator& ranks) {
    ShardedStep<float>({Variable<float>(static_cast<float>(ranks.rank()), true)}, {.ranks = &ranks});
  });
  EXPECT_TRUE(other_values.starts_with("rank 1 differs from rank 0: the checksum of the parameters is '"))
      << other_values;
}

TEST(ShardedStepTest, RanksHaveToAgreeInEachStep) {
  using xgrad::mpi::Communicator;
  const auto line_loss = [](const Line& line) {
    return [&line](Chosen) { return WeightedLoss<double>{line.w + line.b, 1}; };
  };
  EXPECT_EQ(disagreement([&](Communicator& ranks) {
              const Line line;
              ShardedStep<double> sharded(line.parameters(), {.ranks = &ranks});
              sharded.backward(ranks.rank(), first_examples(4), line_loss(line));
            }),
            "ShardedStep: rank 1 is in step 1, rank 0 in step 0");
  EXPECT_EQ(disagreement([&](Communicator& ranks) {
              const Line line;
              ShardedStep<double> sharded(line.parameters(), {.ranks = &ranks});
              sharded.backward(0, first_examples(4), line_loss(line));
              sharded.backward(1, first_examples(4 + ranks.rank()), line_loss(line));
            }),
            "ShardedStep: in step 1 the batch of rank 1 is not that of rank 0; every rank has to give the "
            "whole batch");
  EXPECT_EQ(disagreement([&](Communicator& ranks) {
              const Line line;
              ShardedStep<double> sharded(line.parameters(), {.ranks = &ranks});
              for (std::size_t step = 0; step < 1000; ++step) {
                sharded.backward(step, first_examples(4), line_loss(line));
                if (step == 250 && ranks.rank() == 1) line.w.assign(Array<double>(3.0));
              }
            }),
            "ShardedStep: before step 300 the parameters of rank 1 are not those of rank 0");
}

TEST(ShardedStepTest, RefusesWhatIsNoBatch) {
  const Line line;
  EXPECT_EQ(message_of([&] { ShardedStep<double>(std::vector<Variable<double>>{}); }),
            "ShardedStep: there must be parameters that require gradients, got none");
  EXPECT_EQ(message_of([&] {
              ShardedStep<double>({line.w, line.w * 2.0});
            }),
            "ShardedStep: every parameter must be a leaf that requires a gradient, parameter 1 is not");
  EXPECT_EQ(message_of([&] {
              ShardedStep<double>({line.w, line.b, line.w});
            }),
            "ShardedStep: every parameter must be given once, parameter 2 is parameter 0");
  EXPECT_EQ(message_of([&] { ShardedStep<double>(line.parameters(), {.shards = 0}); }),
            "ShardedStep: shards must be at least 1, got 0");
  EXPECT_EQ(message_of([&] { ShardedStep<double>(line.parameters(), {.bucket_bytes = 0}); }),
            "ShardedStep: bucket_bytes must be at least 1, got 0");
  EXPECT_EQ(message_of([&] {
              xgrad_tests::Ranks::run(3, [&](xgrad::mpi::Communicator& ranks) {
                ShardedStep<double>(Line().parameters(), {.shards = 2, .ranks = &ranks});
              });
            }),
            "ShardedStep: 3 ranks need at least 3 shards, got 2");
  ShardedStep<double> sharded(line.parameters());
  EXPECT_EQ(sharded.shards(), 8u);
  const auto error = [&](const Variable<double>& sum, double weight) {
    return message_of([&] {
      sharded.backward(0, first_examples(2), [&](Chosen) { return WeightedLoss<double>{sum, weight}; });
    });
  };
  EXPECT_EQ(error(line.w, 0), "ShardedStep: the weights of a batch must add up to more than 0, got 0");
  EXPECT_EQ(error(line.w, -1), "ShardedStep: the weight of a shard must be at least 0 and finite, got -1");
  EXPECT_EQ(error(line.w, std::nan("")),
            "ShardedStep: the weight of a shard must be at least 0 and finite, got nan");
  EXPECT_EQ(error(Variable<double>({1.0, 2.0}), 1),
            "ShardedStep: the loss of a shard must be one sum, got shape (2)");
  EXPECT_EQ(error({}, 1), "ShardedStep: the loss of a shard must be one sum, got an undefined variable");
  EXPECT_EQ(message_of([&] {
              sharded.backward(0, Examples(), [&](Chosen) { return WeightedLoss<double>{line.w, 1}; });
            }),
            "ShardedStep: a batch must have examples, got none");
  EXPECT_EQ(message_of([&] { sharded.backward(0, first_examples(2), {}); }),
            "ShardedStep: shard must be a function, got none");
}

}  // namespace sharded_step_test
