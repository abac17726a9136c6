#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "../../base/detail/arrays/range.hpp"
#include "../communicator.hpp"
#include "tree_reduction.hpp"

namespace xgrad::detail {

/// Sums over ranks in a step of ShardedStep, from each rank's nodes of the tree over all shards: gradients,
/// and some numbers of the loss. Gradients are sent in buckets, in reverse order of the parameters, the order
/// of the backward pass; a bucket is sent when it is complete and all before it have been sent.
template <class T>
class GradientExchange {
 public:
  /// For parameters of these sizes. The communicator must outlive it.
  GradientExchange(mpi::Communicator& ranks, const std::vector<std::size_t>& sizes, std::size_t numbers,
                   std::size_t shards, std::size_t bucket_bytes);
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  std::size_t shards() const { return tree_.shards(); }

  /// Starts a new step.
  void begin();

  /// Passes the gradients of a parameter, one for each node of this rank. Sends complete buckets and advances
  /// transfers, without waiting.
  void give(std::size_t parameter, const std::vector<const T*>& nodes);

  /// Waits for completion, after give() for every parameter, and returns the sums of the numbers.
  std::span<const double> finish(const std::vector<const double*>& nodes);

  /// Calls f(range of the parameter's elements, their sum) for all of a parameter, after finish().
  template <class F>
  void take(std::size_t parameter, const F& f) const {
    each_piece(parameter, [&](std::size_t bucket, std::size_t at, Range range) {
      f(range, buckets_[bucket].reduction.sum().subspan(at, range.size()));
    });
  }

  /// Computing time of this rank while buckets were in transit, in seconds.
  double overlapping() const { return overlapping_; }

  /// Number of bytes sent by this rank in the last step.
  std::size_t bytes_sent() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Bucket {
    TreeReduction<T> reduction;
    std::size_t parameters = 0;  // in the bucket, as a whole or in part
    std::size_t missing = 0;     // parameters without a gradient so far
  };

  /// Calls f(bucket, offset in it, elements of the parameter) for all of a parameter.
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

  mpi::Communicator& ranks_;
  ShardedTree tree_;
  std::vector<std::size_t> sizes_, first_;  // of each parameter; the offset of its first element
  std::size_t length_;                      // of a bucket
  std::vector<Bucket> buckets_;
  TreeReduction<double> numbers_;
  std::size_t started_ = 0;
  std::vector<TreeReduction<T>*> under_way_;
  Clock::time_point noted_;
  double overlapping_ = 0;
};

}  // namespace xgrad::detail
