#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../../base/detail/arrays/range.hpp"
#include "../communicator.hpp"

namespace xgrad::detail {

/// The nodes of each rank in the tree over all shards (TreeSum): rank r of R has the sums of the shards [S r
/// / R, S (r + 1) / R).
class ShardedTree {
 public:
  ShardedTree(std::size_t shards, std::size_t ranks);

  std::size_t shards() const { return shards_; }
  std::size_t ranks() const { return nodes_.size(); }

  /// The number of shards of each node of a rank.
  const std::vector<std::size_t>& nodes(std::size_t rank) const { return nodes_[rank]; }

  /// Whether the ranks are the lowest level of a complete tree: 2^k ranks with one node each, all of equal
  /// size.
  bool is_whole() const { return whole_; }

 private:
  std::size_t shards_;
  std::vector<std::vector<std::size_t>> nodes_;
  bool whole_;
};

/// The sum over all shards of an array of elements, on all ranks: every rank passes the sums of its nodes,
/// and the additions are those of the tree, on any rank. It does not block: several may be in progress.
///
/// For a complete tree, ranks pair up: each adds one half of the elements with the neighbour at distance 1, a
/// quarter with that at distance 2, and so on, and returns the sums in reverse (Rabenseifner 2004, in the
/// order of the tree): 2 log2(R) messages. Otherwise each rank adds one segment, of all nodes of all ranks: 2
/// (R - 1) messages. Both send 2 n (R - 1) / R elements, or a little more if ranks have several nodes.
template <class T>
class TreeReduction {
 public:
  /// For n elements, on a channel not used otherwise meanwhile. The communicator and the tree must outlive
  /// it.
  TreeReduction(mpi::Communicator& ranks, int channel, const ShardedTree& tree, std::size_t n);

  std::size_t size() const { return n_; }

  /// Destination of the sums of this rank's node i, before start().
  std::span<T> node(std::size_t i) { return {elements_.get() + i * n_, n_}; }

  void start();

  /// Advances as far as possible without waiting, and returns whether the sum is complete.
  bool advance();

  /// The sum, after advance() returned true.
  std::span<const T> sum() const { return {elements_.get(), n_}; }

  /// Number of bytes sent by this rank.
  std::size_t bytes_sent() const { return bytes_sent_; }

 private:
  std::size_t steps() const;
  void begin_step();
  void finish_step();
  void begin_meeting();
  void gather_segment();
  void share_segment();
  void add_gathered();
  void send(std::size_t rank, std::span<const T> elements);
  void receive(std::size_t rank, std::span<T> elements);

  std::span<T> sum_at(Range range) { return {elements_.get() + range.begin, range.size()}; }

  mpi::Communicator* ranks_;
  int channel_;
  const ShardedTree* tree_;
  std::size_t n_, bytes_sent_ = 0;
  std::size_t step_ = 0;           // the first half of the steps adds, the second distributes
  std::unique_ptr<T[]> elements_;  // of this rank's nodes, then the sum
  std::unique_ptr<T[]> received_;  // elements to add
  std::vector<Range> held_;  // for a complete tree: all elements, their half, its half, ... of this rank
  std::vector<mpi::Communicator::Outgoing> out_;
  std::vector<mpi::Communicator::Incoming> in_;
  std::unique_ptr<mpi::Communicator::Transfer> transfer_;
};

}  // namespace xgrad::detail
