// When gradients are sent: in buckets, each as soon as it is complete and those before it are on their way.

#include <xgrad/mpi/detail/gradient_exchange.hpp>

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ranks.hpp"

namespace gradient_exchange_test {

using xgrad::mpi::Communicator, xgrad::detail::GradientExchange, xgrad::detail::Range;

/// Notes the channels on which something is sent.
class Noting : public Communicator {
 public:
  explicit Noting(Communicator& ranks) : ranks_(ranks) {}
  std::size_t rank() const override { return ranks_.rank(); }
  std::size_t size() const override { return ranks_.size(); }
  std::unique_ptr<Transfer> start(int channel, std::span<const Outgoing> out,
                                  std::span<const Incoming> in) override {
    channels.push_back(channel);
    return ranks_.start(channel, out, in);
  }
  void wait_until(const std::function<bool()>& done) override { ranks_.wait_until(done); }
  void abort(const std::string& why) override { ranks_.abort(why); }

  std::vector<int> channels;

 private:
  Communicator& ranks_;
};

/// The channels that are new since the last call, each of which is started twice: to add, and to share.
std::vector<int> new_channels(Noting& ranks, std::vector<int>& seen) {
  std::vector<int> fresh;
  for (const int channel : std::exchange(ranks.channels, {})) {
    if (std::find(seen.begin(), seen.end(), channel) != seen.end()) continue;
    seen.push_back(channel);
    fresh.push_back(channel);
  }
  return fresh;
}

// Parameters 0, 1, 2, 3 of 3, 0, 2 and 4 elements lie as 3 3 3 3 | 2 2 0 0 | 0 in buckets of four.
constexpr int bucket_0 = 2, bucket_1 = 3, bucket_2 = 4;
const std::vector<std::size_t> sizes{3, 0, 2, 4};

TEST(GradientExchangeTest, ABucketIsSentWhenItIsCompleteAndThoseBeforeItAre) {
  for (const std::size_t shards : {2, 3}) {
    xgrad_tests::Ranks::run(2, [&](Communicator& both) {
      Noting ranks(both);
      GradientExchange<float> exchange(ranks, sizes, 1, shards, 4 * sizeof(float));
      for (int step = 0; step < 2; ++step) {
        std::vector<int> seen;
        const std::size_t nodes = shards == 3 && ranks.rank() == 1 ? 2 : 1;
        const std::vector<float> ones(4, 1.0F);
        const std::vector<const float*> gradient(nodes, ones.data());
        const std::vector<double> one{1.0};
        ranks.channels.clear();
        exchange.begin();
        EXPECT_EQ(new_channels(ranks, seen), std::vector<int>());
        exchange.give(2, gradient);
        EXPECT_EQ(new_channels(ranks, seen), std::vector<int>()) << "half of bucket 1 is not there";
        exchange.give(1, gradient);
        exchange.give(3, gradient);
        EXPECT_EQ(new_channels(ranks, seen), std::vector<int>{bucket_0});
        exchange.give(0, gradient);
        EXPECT_EQ(new_channels(ranks, seen), (std::vector<int>{bucket_1, bucket_2}));
        const auto numbers = exchange.finish(std::vector<const double*>(nodes, one.data()));
        EXPECT_EQ(numbers[0], static_cast<double>(shards));
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          std::size_t taken = 0;
          exchange.take(i, [&](Range range, std::span<const float> sum) {
            EXPECT_EQ(range.begin, taken);
            taken = range.end;
            EXPECT_EQ(sum.size(), range.size());
            for (const float x : sum) EXPECT_EQ(x, static_cast<float>(shards));
          });
          EXPECT_EQ(taken, sizes[i]);
        }
      }
    });
  }
}

TEST(GradientExchangeTest, OneThatIsCompleteWaitsForThoseBeforeIt) {
  xgrad_tests::Ranks::run(2, [](Communicator& both) {
    Noting ranks(both);
    GradientExchange<float> exchange(ranks, sizes, 1, 2, 4 * sizeof(float));
    std::vector<int> seen;
    const std::vector<float> ones(4, 1.0F);
    const double one = 1;
    exchange.begin();
    for (const std::size_t i : {0, 1, 2}) exchange.give(i, {ones.data()});
    EXPECT_EQ(new_channels(ranks, seen), std::vector<int>());
    exchange.give(3, {ones.data()});
    EXPECT_EQ(new_channels(ranks, seen), (std::vector<int>{bucket_0, bucket_1, bucket_2}));
    exchange.finish({&one});
  });
}

}  // namespace gradient_exchange_test
