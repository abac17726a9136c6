// The sum over all shards by ranks together: the additions of the tree, in one process or many, and no more
// bytes than there have to be.

#include <xgrad/mpi/detail/tree_reduction.hpp>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/base/random.hpp>
#include <xgrad/mpi/detail/tree_sum.hpp>

#include "ranks.hpp"

namespace tree_reduction_test {

using xgrad::mpi::Communicator, xgrad::detail::ShardedTree, xgrad::detail::TreeReduction;
using Elements = std::vector<double>;

/// Of one shard, many magnitudes, so that the order of additions can be seen.
Elements shard(std::size_t number, std::size_t n) {
  xgrad::Generator generator(number);
  Elements elements(n);
  for (double& x : elements) x = std::exp(20 * generator.normal());
  return elements;
}

struct Sum {
  Elements elements;
  void add(const Sum& more) {
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] += more.elements[i];
  }
};
using Tree = xgrad::detail::TreeSum<Sum>;

Tree sum_of(std::size_t begin, std::size_t end, std::size_t n) {
  Tree tree(begin);
  for (; begin < end; ++begin) tree.push({1, {shard(begin, n)}});
  return tree;
}

/// What a rank has after a reduction, twice with the same object.
void expect_sum(Communicator& ranks, std::size_t shards, std::size_t n) {
  const ShardedTree tree(shards, ranks.size());
  const auto mine = xgrad::detail::part(shards, ranks.rank(), ranks.size());
  TreeReduction<double> reduction(ranks, 3, tree, n);
  for (int times = 0; times < 2; ++times) {
    Tree given = sum_of(mine.begin, mine.end, n);
    for (std::size_t i = 0; i < given.nodes().size(); ++i)
      std::copy_n(given.nodes()[i].sum.elements.begin(), n, reduction.node(i).begin());
    reduction.start();
    ranks.wait_until([&] { return reduction.advance(); });
    const Elements sum(reduction.sum().begin(), reduction.sum().end());
    EXPECT_EQ(sum, sum_of(0, shards, n).total().elements)
        << shards << " shards, " << n << " elements, rank " << ranks.rank() << " of " << ranks.size();
  }
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) most = std::max(most, tree.nodes(rank).size());
  const std::size_t others = ranks.size() - 1, segment = n / ranks.size() + 1;
  EXPECT_LE(reduction.bytes_sent(), sizeof(double) * (most + 1) * others * segment);
}

TEST(TreeReductionTest, HasTheBitsOfTheTreeOnEveryRank) {
  for (const std::size_t shards : {1, 2, 3, 4, 6, 8, 12, 16}) {
    for (std::size_t count = 1; count <= shards; ++count) {
      for (const std::size_t n : {1, 3, 50}) {
        xgrad_tests::Ranks::run(count, [&](Communicator& ranks) { expect_sum(ranks, shards, n); });
      }
    }
  }
}

TEST(TreeReductionTest, RanksMayHaveNothingToAdd) {
  for (const std::size_t shards : {1, 2, 3, 4})
    for (const std::size_t count : {5, 8})
      xgrad_tests::Ranks::run(count, [&](Communicator& ranks) { expect_sum(ranks, shards, 7); });
}

TEST(TreeReductionTest, AWholeTreeTakesAsFewBytesAndMessagesAsThereCanBe) {
  /// Counts what goes out.
  class Counting : public Communicator {
   public:
    explicit Counting(Communicator& ranks) : ranks_(ranks) {}
    std::size_t rank() const override { return ranks_.rank(); }
    std::size_t size() const override { return ranks_.size(); }
    std::unique_ptr<Transfer> start(int channel, std::span<const Outgoing> out,
                                    std::span<const Incoming> in) override {
      messages += out.size();
      for (const Outgoing& message : out) bytes += message.bytes.size();
      return ranks_.start(channel, out, in);
    }
    void wait_until(const std::function<bool()>& done) override { ranks_.wait_until(done); }
    void abort(const std::string& why) override { ranks_.abort(why); }

    std::size_t messages = 0, bytes = 0;

   private:
    Communicator& ranks_;
  };
  for (const auto& [shards, count, messages] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{16, 16, 8}, {16, 8, 6}, {8, 2, 2}, {12, 4, 9}}) {
    xgrad_tests::Ranks::run(count, [&, shards = shards, count = count, messages = messages](Communicator& r) {
      Counting ranks(r);
      const ShardedTree tree(shards, count);
      TreeReduction<double> reduction(ranks, 1, tree, 48);
      for (std::size_t i = 0; i < tree.nodes(ranks.rank()).size(); ++i)
        std::ranges::fill(reduction.node(i), 1.0);
      reduction.start();
      ranks.wait_until([&] { return reduction.advance(); });
      EXPECT_EQ(ranks.messages, messages) << count << " ranks";
      EXPECT_EQ(reduction.bytes_sent(), ranks.bytes);
      if (tree.is_whole()) {
        EXPECT_EQ(ranks.bytes, 2 * 48 * sizeof(double) * (count - 1) / count);
      }
    });
  }
}

TEST(TreeReductionTest, SeveralAreUnderWayAtOnce) {
  xgrad_tests::Ranks::run(4, [](Communicator& ranks) {
    const ShardedTree tree(4, 4);
    std::vector<TreeReduction<double>> reductions;
    for (int i = 0; i < 5; ++i) reductions.emplace_back(ranks, i + 1, tree, std::size_t{8});
    // Each rank begins with another one.
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t place = (i + ranks.rank()) % 5;
      std::ranges::fill(reductions[place].node(0), std::pow(10.0, ranks.rank()) * (1.0 + place));
      reductions[place].start();
    }
    for (std::size_t i = 5; i-- > 0;) {
      ranks.wait_until([&] { return reductions[i].advance(); });
      for (const double x : reductions[i].sum()) EXPECT_EQ(x, 1111.0 * (1.0 + i));
    }
  });
}

}  // namespace tree_reduction_test
