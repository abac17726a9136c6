#include "tree_reduction.hpp"

#include <algorithm>
#include <bit>

#include "../../graph/detail/element_sums.hpp"
#include "tree_sum.hpp"

namespace xgrad::detail {
namespace {

/// Elements of one node.
template <class T>
struct Piece {
  std::span<T> elements;

  void add(const Piece& more) const {
    ElementSums<T>::add(elements.data(), more.elements.data(), elements.size());
  }
  void add(const Piece& b, const Piece& c, const Piece& d) const {
    ElementSums<T>::add(elements.data(), b.elements.data(), c.elements.data(), d.elements.data(),
                        elements.size());
  }
};

struct Halves {
  Range lower, upper;
};

Halves halves(Range range) {
  const std::size_t middle = range.begin + range.size() / 2;
  return {{range.begin, middle}, {middle, range.end}};
}

}  // namespace

ShardedTree::ShardedTree(std::size_t shards, std::size_t ranks) : shards_(shards) {
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Range of_rank = part(shards, rank, ranks);
    nodes_.push_back(tree_nodes(of_rank.begin, of_rank.end));
  }
  whole_ = std::has_single_bit(shards) && std::has_single_bit(ranks) && ranks <= shards;
}

template <class T>
TreeReduction<T>::TreeReduction(mpi::Communicator& ranks, int channel, const ShardedTree& tree, std::size_t n)
    : ranks_(&ranks), channel_(channel), tree_(&tree), n_(n) {
  const std::size_t nodes = tree.nodes(ranks.rank()).size();
  std::size_t received = (n + 1) / 2;
  if (!tree.is_whole()) {
    received = 0;
    for (std::size_t rank = 0; rank < tree.ranks(); ++rank)
      received += tree.nodes(rank).size() * part(n, ranks.rank(), tree.ranks()).size();
  }
  elements_.reset(new T[std::max<std::size_t>(nodes, 1) * n]);
  received_.reset(new T[received]);
}

template <class T>
void TreeReduction<T>::start() {
  step_ = 0;
  bytes_sent_ = 0;
  held_.assign(1, {0, n_});
  advance();
}

template <class T>
bool TreeReduction<T>::advance() {
  for (;;) {
    if (transfer_ != nullptr) {
      if (!transfer_->done()) return false;
      transfer_.reset();
      finish_step();
      ++step_;
    }
    if (step_ == steps()) return true;
    out_.clear();
    in_.clear();
    begin_step();
    transfer_ = ranks_->start(channel_, out_, in_);
  }
}

template <class T>
std::size_t TreeReduction<T>::steps() const {
  return tree_->is_whole() ? 2 * static_cast<std::size_t>(std::countr_zero(tree_->ranks())) : 2;
}

template <class T>
void TreeReduction<T>::begin_step() {
  if (tree_->is_whole()) {
    begin_meeting();
  } else if (step_ == 0) {
    gather_segment();
  } else {
    share_segment();
  }
}

template <class T>
void TreeReduction<T>::finish_step() {
  if (!tree_->is_whole()) {
    if (step_ == 0) add_gathered();
  } else if (step_ < steps() / 2) {
    const std::span<T> mine = sum_at(held_.back());
    ElementSums<T>::add(mine.data(), received_.get(), mine.size());
  } else {
    held_.pop_back();
  }
}

template <class T>
void TreeReduction<T>::begin_meeting() {
  const bool adding = step_ < steps() / 2;
  const std::size_t distance = std::size_t{1} << (adding ? step_ : steps() - 1 - step_);
  const std::size_t other = ranks_->rank() ^ distance;
  const Halves half = halves(adding ? held_.back() : held_[held_.size() - 2]);
  const bool low = ranks_->rank() < other;
  const Range mine = low ? half.lower : half.upper, theirs = low ? half.upper : half.lower;
  if (adding) {
    send(other, sum_at(theirs));
    receive(other, {received_.get(), mine.size()});
    held_.push_back(mine);
  } else {
    send(other, sum_at(mine));
    receive(other, sum_at(theirs));
  }
}

template <class T>
void TreeReduction<T>::gather_segment() {
  const std::size_t me = ranks_->rank(), length = part(n_, me, tree_->ranks()).size();
  T* next = received_.get();
  for (std::size_t rank = 0; rank < tree_->ranks(); ++rank) {
    if (rank == me) continue;
    const Range theirs = part(n_, rank, tree_->ranks());
    for (std::size_t i = 0; i < tree_->nodes(me).size(); ++i)
      send(rank, node(i).subspan(theirs.begin, theirs.size()));
    for (std::size_t i = 0; i < tree_->nodes(rank).size(); ++i, next += length) receive(rank, {next, length});
  }
}

template <class T>
void TreeReduction<T>::add_gathered() {
  const std::size_t me = ranks_->rank();
  const Range mine = part(n_, me, tree_->ranks());
  T* next = received_.get();
  TreeSum<Piece<T>> sum;
  for (std::size_t rank = 0; rank < tree_->ranks(); ++rank) {
    const std::vector<std::size_t>& counts = tree_->nodes(rank);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (rank == me) {
        sum.push({counts[i], {node(i).subspan(mine.begin, mine.size())}});
      } else {
        sum.push({counts[i], {{next, mine.size()}}});
        next += mine.size();
      }
    }
  }
  const std::span<const T> total = sum.total().elements;
  if (total.data() != sum_at(mine).data()) std::copy(total.begin(), total.end(), sum_at(mine).begin());
}

template <class T>
void TreeReduction<T>::share_segment() {
  for (std::size_t rank = 0; rank < tree_->ranks(); ++rank) {
    if (rank == ranks_->rank()) continue;
    send(rank, sum_at(part(n_, ranks_->rank(), tree_->ranks())));
    receive(rank, sum_at(part(n_, rank, tree_->ranks())));
  }
}

template <class T>
void TreeReduction<T>::send(std::size_t rank, std::span<const T> elements) {
  if (elements.empty()) return;
  out_.push_back({rank, std::as_bytes(elements)});
  bytes_sent_ += elements.size_bytes();
}

template <class T>
void TreeReduction<T>::receive(std::size_t rank, std::span<T> elements) {
  if (!elements.empty()) in_.push_back({rank, std::as_writable_bytes(elements)});
}

template class TreeReduction<float>;
template class TreeReduction<double>;

}  // namespace xgrad::detail
