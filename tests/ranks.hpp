#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <xgrad/train/communicator.hpp>

namespace xgrad_tests {

/// Ranks that are threads of this process.
class Ranks {
 public:
  /// Calls f in a thread for each of `count` ranks, and throws what the first of them has thrown.
  static void run(std::size_t count, const std::function<void(xgrad::Communicator&)>& f) {
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
  }

 private:
  using Bytes = std::vector<std::byte>;

  /// Another rank has thrown.
  struct Ended {};

  class Rank : public xgrad::Communicator {
   public:
    Rank(Ranks& ranks, std::size_t rank) : ranks_(ranks), rank_(rank) {}

    std::size_t rank() const override { return rank_; }
    std::size_t size() const override { return ranks_.count_; }

    void exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
      for (const Outgoing& message : out)
        ranks_.send(rank_, message.rank, {message.bytes.begin(), message.bytes.end()});
      for (const Incoming& message : in) {
        const Bytes bytes = ranks_.receive(message.rank, rank_);
        if (bytes.size() != message.bytes.size()) throw std::logic_error("a message of another length");
        std::copy(bytes.begin(), bytes.end(), message.bytes.begin());
      }
    }

    void abort(const std::string&) override { ranks_.end(); }

   private:
    Ranks& ranks_;
    std::size_t rank_;
  };

  explicit Ranks(std::size_t count) : count_(count) {}

  void send(std::size_t from, std::size_t to, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    messages_[{from, to}].push_back(std::move(bytes));
    changed_.notify_all();
  }

  Bytes receive(std::size_t from, std::size_t to) {
    std::unique_lock lock(mutex_);
    std::deque<Bytes>& waiting = messages_[{from, to}];
    changed_.wait(lock, [&] { return ended_ || left_.contains(from) || !waiting.empty(); });
    if (waiting.empty() && ended_) throw Ended();
    if (waiting.empty()) throw std::logic_error("rank " + std::to_string(from) + " has nothing more to send");
    Bytes bytes = std::move(waiting.front());
    waiting.pop_front();
    return bytes;
  }

  void leave(std::size_t rank) {
    const std::lock_guard lock(mutex_);
    left_.insert(rank);
    changed_.notify_all();
  }

  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  const std::size_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Bytes>> messages_;
  std::set<std::size_t> left_;
  bool ended_ = false;
};

}  // namespace xgrad_tests
