#include "sharded_step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "../graph/error.hpp"
#include "../graph/random.hpp"
#include "../kernels/binary.hpp"
#include "optimizer.hpp"
#include "tree_sum.hpp"

namespace xgrad {
namespace {

using detail::part, detail::Range;

void seed_for_shard(Generator& generator, std::uint64_t seed, std::uint64_t step, std::uint64_t shard) {
  std::array<std::uint32_t, 6> key;
  auto word = key.begin();
  for (const std::uint64_t number : {seed, step, shard}) {
    *word++ = static_cast<std::uint32_t>(number);
    *word++ = static_cast<std::uint32_t>(number >> 32);
  }
  generator.manual_seed(key);
}

void add_numbers(std::span<double> a, std::span<const double> b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::plus<>());
}

/// How many numbers a sum has before those of the parameters.
constexpr std::size_t of_loss = 3;

}  // namespace

/// Loss, weight, tokens, and for each parameter how many shards used it; and the gradients.
template <class T>
struct ShardedStep<T>::Sum {
  std::vector<double> numbers;
  std::vector<Variable<T>> gradients;

  void add(const Sum& more) {
    add_numbers(numbers, more.numbers);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      kernels::accumulate(detail::data(gradients[i]), detail::data(std::as_const(more.gradients[i])),
                          gradients[i].size());
    }
  }
};

namespace {

/// The elements of several arrays, one array after the other, as one sequence.
template <class T>
void copy_out(const std::vector<Variable<T>>& arrays, Range range, T* to) {
  std::size_t first = 0;
  for (const Variable<T>& array : arrays) {
    const std::size_t begin = std::clamp(range.begin, first, first + array.size());
    const std::size_t end = std::clamp(range.end, first, first + array.size());
    to = std::copy_n(detail::data(array) + (begin - first), end - begin, to);
    first += array.size();
  }
}

/// What one rank adds up of a node: all numbers, and its own segment of the elements.
template <class T>
struct Piece {
  std::span<double> numbers;
  std::span<T> elements;

  void add(const Piece& more) const {
    add_numbers(numbers, more.numbers);
    kernels::accumulate(elements.data(), more.elements.data(), elements.size());
  }
};

}  // namespace

template <class T>
ShardedStep<T>::ShardedStep(std::vector<Variable<T>> parameters, ShardedStepOptions options)
    : parameters_(std::move(parameters)), options_(options) {
  if (parameters_.empty()) detail::fail<ValueError>("ShardedStep: there must be parameters, got none");
  detail::check_parameters("ShardedStep", parameters_);
  for (const Variable<T>& parameter : parameters_) elements_ += parameter.size();
  if (options_.shards == 0) detail::fail<ValueError>("ShardedStep: shards must be at least 1, got 0");
  if (options_.shards < rank_count()) {
    detail::fail<ValueError>("ShardedStep: ", rank_count(), " ranks need at least ", rank_count(),
                             " shards, got ", options_.shards);
  }
  if (rank_count() == 1) return;
  std::string shapes;
  for (const Variable<T>& parameter : parameters_) shapes += to_string(parameter.shape());
  check_agreement(*options_.ranks,
                  {{"the number of shards", std::to_string(options_.shards)},
                   {"the seed of the shards", std::to_string(options_.seed)},
                   {"the type of the parameters", sizeof(T) == 4 ? "float" : "double"},
                   {"the shapes of the parameters", shapes},
                   {"the checksum of the parameters", std::to_string(parameters_checksum())}});
}

template <class T>
std::size_t ShardedStep<T>::rank_count() const {
  return options_.ranks != nullptr ? options_.ranks->size() : 1;
}

template <class T>
std::uint64_t ShardedStep<T>::parameters_checksum() const {
  std::uint64_t sum = detail::checksum({});
  for (const Variable<T>& parameter : parameters_)
    sum = detail::checksum(std::as_bytes(std::span(detail::data(parameter), parameter.size())), sum);
  return sum;
}

template <class T>
void ShardedStep<T>::check_agreement_in_step(std::size_t step, std::span<const std::size_t> examples) {
  constexpr std::size_t every = 100;  // a checksum takes about a millisecond for a million parameters
  const bool due = calls_++ % every == 0;
  const std::uint64_t mine[] = {step, detail::checksum(std::as_bytes(examples)),
                                due ? parameters_checksum() : 0};
  const std::vector<std::uint64_t> all = detail::all_gather_numbers(*options_.ranks, mine);
  for (std::size_t rank = 1; rank < rank_count(); ++rank) {
    const std::uint64_t* theirs = all.data() + 3 * rank;
    if (theirs[0] != all[0]) {
      detail::fail<ValueError>("ShardedStep: rank ", rank, " is in step ", theirs[0], ", rank 0 in step ",
                               all[0]);
    }
    if (theirs[1] != all[1]) {
      detail::fail<ValueError>("ShardedStep: in step ", step, " the batch of rank ", rank,
                               " is not that of rank 0; every rank has to give the whole batch");
    }
    if (theirs[2] != all[2]) {
      detail::fail<std::runtime_error>("ShardedStep: before step ", step, " the parameters of rank ", rank,
                                       " are not those of rank 0");
    }
  }
}

template <class T>
BatchLoss ShardedStep<T>::backward(std::size_t step, std::span<const std::size_t> examples,
                                   const Shard& shard) {
  if (!shard) detail::fail<ValueError>("ShardedStep: shard must be a function, got none");
  if (examples.empty()) detail::fail<ValueError>("ShardedStep: a batch must have examples, got none");
  const std::size_t shards = std::min(options_.shards, examples.size());
  if (rank_count() > 1) check_agreement_in_step(step, examples);
  const Range mine = part(shards, rank_count() > 1 ? options_.ranks->rank() : 0, rank_count());
  detail::TreeSum<Sum> tree(mine.begin);
  for (std::size_t s = mine.begin; s < mine.end; ++s) {
    const Range chosen = part(examples.size(), s, shards);
    tree.push({1, computed(step, s, examples.subspan(chosen.begin, chosen.size()), shard)});
  }
  Sum total = rank_count() == 1 ? std::move(tree.total()) : total_of_all(tree.nodes(), shards);
  const BatchLoss loss{total.numbers[0], total.numbers[1], static_cast<std::size_t>(total.numbers[2])};
  if (!(loss.weight > 0)) {
    detail::fail<ValueError>("ShardedStep: the weights of a batch must add up to more than 0, got ",
                             loss.weight);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Variable<T>& gradient = total.gradients[i];
    T* elements = detail::data(gradient);
    kernels::scale(static_cast<T>(1 / loss.weight), elements, elements, gradient.size());
    parameters_[i].zero_grad();
    if (total.numbers[of_loss + i] > 0) parameters_[i].set_grad(std::move(gradient));
  }
  return loss;
}

template <class T>
typename ShardedStep<T>::Sum ShardedStep<T>::computed(std::size_t step, std::size_t shard,
                                                      std::span<const std::size_t> examples,
                                                      const Shard& function) {
  for (const Variable<T>& parameter : parameters_) parameter.zero_grad();
  Generator generator;
  seed_for_shard(generator, options_.seed, step, shard);
  const UseGenerator use(generator);
  const WeightedLoss<T> loss = function(examples);
  if (!loss.sum.defined() || loss.sum.size() != 1) {
    detail::fail<ShapeError>(
        "ShardedStep: the loss of a shard must be one sum, got ",
        loss.sum.defined() ? "shape " + to_string(loss.sum.shape()) : "an undefined variable");
  }
  if (!(loss.weight >= 0 && std::isfinite(loss.weight))) {
    detail::fail<ValueError>("ShardedStep: the weight of a shard must be at least 0 and finite, got ",
                             loss.weight);
  }
  loss.sum.backward();
  Sum sum{{static_cast<double>(loss.sum.item()), loss.weight, static_cast<double>(loss.tokens)}, {}};
  for (const Variable<T>& parameter : parameters_) {
    const bool used = parameter.has_grad();
    sum.numbers.push_back(used ? 1 : 0);
    sum.gradients.push_back(used ? parameter.grad() : detail::empty<T>(parameter.shape()));
    if (!used) kernels::fill(0, detail::data(sum.gradients.back()), parameter.size());
    parameter.zero_grad();
  }
  return sum;
}

// Each rank adds up one segment of the elements, of all nodes of all ranks, and sends the sum to all others.
template <class T>
typename ShardedStep<T>::Sum ShardedStep<T>::total_of_all(std::vector<Node>& nodes, std::size_t shards) {
  Communicator& ranks = *options_.ranks;
  const std::size_t count = ranks.size(), me = ranks.rank(), n = of_loss + parameters_.size();
  const Range segment = part(elements_, me, count);
  std::vector<std::vector<std::size_t>> nodes_of(count);  // how many shards each has
  numbers_.resize(count);
  sent_.resize(count);
  received_.resize(count);
  all_.resize(elements_);
  numbers_[me].clear();
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  for (const Node& node : nodes)
    numbers_[me].insert(numbers_[me].end(), node.sum.numbers.begin(), node.sum.numbers.end());
  for (std::size_t rank = 0; rank < count; ++rank) {
    const Range theirs = part(elements_, rank, count), shards_of = part(shards, rank, count);
    nodes_of[rank] = detail::tree_nodes(shards_of.begin, shards_of.end);
    std::vector<T>& elements = rank == me ? received_[me] : sent_[rank];
    elements.resize(nodes.size() * theirs.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      copy_out(nodes[i].sum.gradients, theirs, elements.data() + i * theirs.size());
    if (rank == me) continue;
    numbers_[rank].resize(nodes_of[rank].size() * n);
    received_[rank].resize(nodes_of[rank].size() * segment.size());
    out.push_back({rank, std::as_bytes(std::span(numbers_[me]))});
    out.push_back({rank, std::as_bytes(std::span(sent_[rank]))});
    in.push_back({rank, std::as_writable_bytes(std::span(numbers_[rank]))});
    in.push_back({rank, std::as_writable_bytes(std::span(received_[rank]))});
  }
  ranks.exchange(out, in);

  detail::TreeSum<Piece<T>> tree;
  for (std::size_t rank = 0; rank < count; ++rank) {
    for (std::size_t i = 0; i < nodes_of[rank].size(); ++i) {
      tree.push({nodes_of[rank][i],
                 Piece<T>{std::span(numbers_[rank]).subspan(i * n, n),
                          std::span(received_[rank]).subspan(i * segment.size(), segment.size())}});
    }
  }
  const Piece<T> sum = tree.total();

  std::copy(sum.elements.begin(), sum.elements.end(),
            all_.begin() + static_cast<std::ptrdiff_t>(segment.begin));
  out.clear();
  in.clear();
  for (std::size_t rank = 0; rank < count; ++rank) {
    if (rank == me) continue;
    const Range theirs = part(elements_, rank, count);
    out.push_back({rank, std::as_bytes(sum.elements)});
    in.push_back({rank, std::as_writable_bytes(std::span(all_).subspan(theirs.begin, theirs.size()))});
  }
  ranks.exchange(out, in);

  Sum total{{sum.numbers.begin(), sum.numbers.end()}, {}};
  const T* from = all_.data();
  for (const Variable<T>& parameter : parameters_) {
    total.gradients.push_back(detail::empty<T>(parameter.shape()));
    std::copy_n(from, parameter.size(), detail::data(total.gradients.back()));
    from += parameter.size();
  }
  return total;
}

template class ShardedStep<float>;
template class ShardedStep<double>;

}  // namespace xgrad
