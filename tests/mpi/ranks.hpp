#pragma once

#include <algorithm>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <xgrad/mpi/communicator.hpp>

namespace xgrad_tests {

/// Ranks that are threads of this process.
class Ranks {
 public:
  /// Calls f in a thread for each of `count` ranks, and throws what the first of them has thrown.
  static void run(std::size_t count, const std::function<void(xgrad::mpi::Communicator&)>& f) {
    Ranks ranks(count);
    std::vector<std::exception_ptr> errors(count);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        Rank mine(ranks, rank);
        try {
          f(mine);
        } catch (const Ended&) {
        } catch (...) {
          errors[rank] = std::current_exception();
          ranks.end();
        }
        ranks.leave(rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
    if (!ranks.ended_ && ranks.sent_ != ranks.received_)
      throw std::logic_error("a message that nobody has received");
  }

 private:
  using Bytes = std::vector<std::byte>;

  /// Another rank has thrown.
  struct Ended {};

  class Rank : public xgrad::mpi::Communicator {
   public:
    Rank(Ranks& ranks, std::size_t rank) : ranks_(ranks), rank_(rank) {}

    std::size_t rank() const override { return rank_; }
    std::size_t size() const override { return ranks_.count_; }

    std::unique_ptr<Transfer> start(int channel, std::span<const Outgoing> out,
                                    std::span<const Incoming> in) override {
      for (const Outgoing& message : out)
        ranks_.send({rank_, message.rank, channel}, {message.bytes.begin(), message.bytes.end()});
      return std::make_unique<Arrivals>(*this, channel, in);
    }

    void wait_until(const std::function<bool()>& done) override {
      for (;;) {
        const std::size_t seen = ranks_.changes();
        if (done()) return;
        ranks_.wait_for_change(seen);
      }
    }

    void abort(const std::string&) override { ranks_.end(); }

   private:
    /// What was expected when.
    class Arrivals : public Transfer {
     public:
      Arrivals(Rank& rank, int channel, std::span<const Incoming> in)
          : rank_(rank), channel_(channel), in_(in.begin(), in.end()) {
        for (const Incoming& message : in_) numbers_.push_back(rank.expected_[{message.rank, channel}]++);
      }

      bool done() override {
        for (; next_ < in_.size(); ++next_) {
          const Incoming& message = in_[next_];
          const std::optional<Bytes> bytes =
              rank_.ranks_.receive({message.rank, rank_.rank_, channel_}, numbers_[next_]);
          if (!bytes) return false;
          if (bytes->size() != message.bytes.size()) throw std::logic_error("a message of another length");
          std::copy(bytes->begin(), bytes->end(), message.bytes.begin());
        }
        return true;
      }

     private:
      Rank& rank_;
      int channel_;
      std::vector<Incoming> in_;
      std::vector<std::size_t> numbers_;
      std::size_t next_ = 0;
    };

    Ranks& ranks_;
    std::size_t rank_;
    std::map<std::pair<std::size_t, int>, std::size_t> expected_;  // so far, from a rank on a channel
  };

  explicit Ranks(std::size_t count) : count_(count) {}

  struct Way {
    std::size_t from, to;
    int channel;
    auto operator<=>(const Way&) const = default;
  };

  void send(Way way, Bytes bytes) {
    change([&] {
      messages_[way].push_back(std::move(bytes));
      ++sent_;
    });
  }

  /// Message `number` on this way, once it is there.
  std::optional<Bytes> receive(Way way, std::size_t number) {
    const std::lock_guard lock(mutex_);
    std::vector<Bytes>& messages = messages_[way];
    if (number < messages.size()) {
      ++received_;
      return std::move(messages[number]);
    }
    if (ended_) throw Ended();
    if (left_.contains(way.from))
      throw std::logic_error("rank " + std::to_string(way.from) + " has nothing more to send");
    return std::nullopt;
  }

  void leave(std::size_t rank) {
    change([&] { left_.insert(rank); });
  }

  void end() {
    change([&] { ended_ = true; });
  }

  template <class F>
  void change(const F& f) {
    const std::lock_guard lock(mutex_);
    f();
    ++changes_;
    changed_.notify_all();
  }

  std::size_t changes() {
    const std::lock_guard lock(mutex_);
    return changes_;
  }

  void wait_for_change(std::size_t seen) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return changes_ != seen; });
  }

  const std::size_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t changes_ = 0, sent_ = 0, received_ = 0;
  std::map<Way, std::vector<Bytes>> messages_;
  std::set<std::size_t> left_;
  bool ended_ = false;
};

}  // namespace xgrad_tests
