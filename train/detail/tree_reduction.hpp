#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../communicator.hpp"

namespace xgrad::detail {

/// Which nodes of the tree over all shards (TreeSum) each rank has: rank r of R has added up the shards
/// [S r / R, S (r + 1) / R).
class ShardedTree {
 public:
  ShardedTree(std::size_t shards, std::size_t ranks);

  std::size_t shards() const { return shards_; }
  std::size_t ranks() const { return nodes_.size(); }

  /// How many shards each node of a rank has.
  const std::vector<std::size_t>& nodes(std::size_t rank) const { return nodes_[rank]; }

  /// Whether the ranks are the lowest level of a tree that is whole: each has one node, all are as large, and
  /// there are 2^k of them.
  bool is_whole() const { return whole_; }

 private:
  std::size_t shards_;
  std::vector<std::vector<std::size_t>> nodes_;
  bool whole_;
};

/// The sum over all shards of an array of elements, on all ranks: every rank gives the sums of its nodes, and
/// the additions are those of the tree, on whichever rank they happen. It does not wait: others can be under
/// way.
///
/// If the tree is whole, ranks meet in pairs: each adds up one half of the elements with the neighbour at
/// distance 1, a quarter with that at distance 2, and so on, and they go the same way back (Rabenseifner
/// 2004, in the order of the tree): 2 log2(R) messages. Else each rank adds up one segment, of all nodes of
/// all ranks: 2 (R - 1) messages. Both send 2 n (R - 1) / R elements, or a little more where ranks have
/// several nodes.
template <class T>
class TreeReduction {
 public:
  /// Of n elements, on a channel that no other uses meanwhile. The communicator and the tree have to live as
  /// long.
  TreeReduction(Communicator& ranks, int channel, const ShardedTree& tree, std::size_t n);

  std::size_t size() const { return n_; }

  /// Where the sums of this rank's node i go, before start().
  std::span<T> node(std::size_t i) { return {elements_.get() + i * n_, n_}; }

  void start();

  /// Goes on as far as that is possible without waiting, and says whether the sum is there.
  bool advance();

  /// What it is, once advance() has been true.
  std::span<const T> sum() const { return {elements_.get(), n_}; }

  /// That this rank has sent.
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

  Communicator* ranks_;
  int channel_;
  const ShardedTree* tree_;
  std::size_t n_, bytes_sent_ = 0;
  std::size_t step_ = 0;           // the first half of the steps adds, the second shares
  std::unique_ptr<T[]> elements_;  // of this rank's nodes, then the sum
  std::unique_ptr<T[]> received_;  // what is to be added
  std::vector<Range> held_;        // of a whole tree: all elements, their half, its half, ... of this rank
  std::vector<Communicator::Outgoing> out_;
  std::vector<Communicator::Incoming> in_;
  std::unique_ptr<Communicator::Transfer> transfer_;
};

}  // namespace xgrad::detail
