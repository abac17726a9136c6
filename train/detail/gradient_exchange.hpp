#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "../communicator.hpp"
#include "tree_reduction.hpp"

namespace xgrad::detail {

/// What ranks add up in a step of ShardedStep, each having the sums of its nodes of the tree over all shards:
/// gradients, and some numbers of the loss. The gradients go in buckets, one parameter after the other and
/// the last one first, as backward passes come to them in this order; a bucket is sent as soon as all before
/// it have been and all its elements are there.
template <class T>
class GradientExchange {
 public:
  /// Of parameters of these sizes. The communicator has to live as long.
  GradientExchange(Communicator& ranks, const std::vector<std::size_t>& sizes, std::size_t numbers,
                   std::size_t shards, std::size_t bucket_bytes);
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  std::size_t shards() const { return tree_.shards(); }

  /// A new step.
  void begin();

  /// The gradient of a parameter, of each node of this rank. Sends what can be sent, and goes on with what is
  /// on its way, without waiting.
  void give(std::size_t parameter, const std::vector<const T*>& nodes);

  /// Waits for all, once every parameter was given, and returns the sums of the numbers.
  std::span<const double> finish(const std::vector<const double*>& nodes);

  /// Calls f(which elements of the parameter, their sum) for all of a parameter, after finish().
  template <class F>
  void take(std::size_t parameter, const F& f) const {
    each_piece(parameter, [&](std::size_t bucket, std::size_t at, Range range) {
      f(range, buckets_[bucket].reduction.sum().subspan(at, range.size()));
    });
  }

  /// How long this rank has computed while buckets were on their way, in seconds.
  double overlapping() const { return overlapping_; }

  /// That this rank has sent in the last step.
  std::size_t bytes_sent() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Bucket {
    TreeReduction<T> reduction;
    std::size_t parameters = 0;  // that are in it, as a whole or in part
    std::size_t missing = 0;     // of those
  };

  /// Calls f(bucket, place in it, elements of the parameter) for all of a parameter.
  template <class F>
  void each_piece(std::size_t parameter, const F& f) const {
    const std::size_t size = sizes_[parameter];
    for (Range range{0, 0}; range.begin < size; range.begin = range.end) {
      const std::size_t first = first_[parameter] + range.begin, at = first % length_;
      range.end = std::min(size, range.begin + length_ - at);
      f(first / length_, at, range);
    }
  }

  void start_those_complete();
  bool go_on();
  void note_time();

  Communicator& ranks_;
  ShardedTree tree_;
  std::vector<std::size_t> sizes_, first_;  // of each parameter; the place of its first element
  std::size_t length_;                      // of a bucket
  std::vector<Bucket> buckets_;
  TreeReduction<double> numbers_;
  std::size_t started_ = 0;
  std::vector<TreeReduction<T>*> under_way_;
  Clock::time_point noted_;
  double overlapping_ = 0;
};

}  // namespace xgrad::detail
