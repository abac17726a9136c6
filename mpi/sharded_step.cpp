#include "sharded_step.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "../autograd/grad_each.hpp"
#include "../base/detail/bytes/checksum.hpp"
#include "../base/error.hpp"
#include "../base/random.hpp"
#include "../graph/detail/element_sums.hpp"
#include "../train/optimizers/optimizer.hpp"
#include "detail/tree_sum.hpp"

namespace xgrad::mpi {
namespace {

using detail::part, detail::Range;

/// How many numbers a sum has before those of the parameters.
constexpr std::size_t of_loss = 3;

using Clock = std::chrono::steady_clock;

void add_times(RankTimes& times, const RankTimes& more) {
  times.computing += more.computing;
  times.waiting += more.waiting;
  times.overlapping += more.overlapping;
}

/// As a whole number, for all_gather_numbers().
std::uint64_t nanoseconds(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }
double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Loss, weight, tokens, and for each parameter how many shards used it.
struct Numbers {
  std::vector<double> all;

  void add(const Numbers& more) { detail::ElementSums<double>::add(all.data(), more.all.data(), all.size()); }
};

/// Of one parameter.
template <class T>
struct Gradient {
  Variable<T> sum;

  void add(const Gradient& more) {
    detail::ElementSums<T>::add(detail::data(sum), detail::data(more.sum), sum.size());
  }
  void add(const Gradient& b, const Gradient& c, const Gradient& d) {
    detail::ElementSums<T>::add(detail::data(sum), detail::data(b.sum), detail::data(c.sum),
                                detail::data(d.sum), sum.size());
  }
};

const double* elements_of(const Numbers& numbers) { return numbers.all.data(); }

template <class T>
const T* elements_of(const Gradient<T>& gradient) {
  return detail::data(gradient.sum);
}

template <class Node>
auto elements_of(const std::vector<Node>& nodes) {
  std::vector<decltype(elements_of(nodes[0].sum))> elements;
  elements.reserve(nodes.size());
  for (const Node& node : nodes) elements.push_back(elements_of(node.sum));
  return elements;
}

template <class T>
using GradientSum = detail::TreeSum<Gradient<T>>;

}  // namespace

/// Of some shards.
template <class T>
struct ShardedStep<T>::Sums {
  detail::TreeSum<Numbers> numbers;
  std::vector<GradientSum<T>> gradients;
};

std::string summary(const std::vector<RankTimes>& times) {
  if (times.empty()) detail::fail<ValueError>("summary: there must be ranks, got none");
  const auto extremes = [&times](double RankTimes::*part) {
    return std::minmax_element(times.begin(), times.end(),
                               [part](const RankTimes& a, const RankTimes& b) { return a.*part < b.*part; });
  };
  const auto [fastest, slowest] = extremes(&RankTimes::computing);
  const auto [least, most] = extremes(&RankTimes::waiting);
  const auto [shortest, longest] = extremes(&RankTimes::overlapping);
  char text[240];
  std::snprintf(
      text, sizeof text,
      "%zu rank%s computed %.3g to %.3g s (rank %zu), %.3g to %.3g s of it while gradients were on their "
      "way, and waited %.3g to %.3g s",
      times.size(), times.size() == 1 ? "" : "s", fastest->computing, slowest->computing,
      static_cast<std::size_t>(slowest - times.begin()), shortest->overlapping, longest->overlapping,
      least->waiting, most->waiting);
  return text;
}

template <class T>
ShardedStep<T>::ShardedStep(std::vector<Variable<T>> parameters, ShardedStepOptions options)
    : parameters_(std::move(parameters)), options_(options) {
  detail::check_parameters("ShardedStep", parameters_);
  std::erase_if(parameters_, [](const Variable<T>& parameter) { return !parameter.requires_grad(); });
  if (parameters_.empty())
    detail::fail<ValueError>("ShardedStep: there must be parameters that require gradients, got none");
  if (options_.shards == 0) detail::fail<ValueError>("ShardedStep: shards must be at least 1, got 0");
  if (options_.shards < rank_count()) {
    detail::fail<ValueError>("ShardedStep: ", rank_count(), " ranks need at least ", rank_count(),
                             " shards, got ", options_.shards);
  }
  if (options_.bucket_bytes == 0)
    detail::fail<ValueError>("ShardedStep: bucket_bytes must be at least 1, got 0");
  times_.resize(rank_count());
  if (rank_count() == 1) return;
  std::string shapes;
  for (const Variable<T>& parameter : parameters_) shapes += to_string(parameter.shape());
  check_agreement(*options_.ranks,
                  {{"the number of shards", std::to_string(options_.shards)},
                   {"the seed of the shards", std::to_string(options_.seed)},
                   {"the size of a bucket", std::to_string(options_.bucket_bytes)},
                   {"the type of the parameters", sizeof(T) == 4 ? "float" : "double"},
                   {"the shapes of the parameters", shapes},
                   {"the checksum of the parameters", std::to_string(parameters_checksum())}});
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
  const std::uint64_t mine[] = {step,
                                detail::checksum(std::as_bytes(examples)),
                                due ? parameters_checksum() : 0,
                                nanoseconds(last_.computing),
                                nanoseconds(last_.waiting),
                                nanoseconds(last_.overlapping)};
  const std::vector<std::uint64_t> all = all_gather_numbers(*options_.ranks, mine);
  for (std::size_t rank = 0; rank < rank_count(); ++rank) {
    const std::uint64_t* theirs = all.data() + std::size(mine) * rank;
    add_times(times_[rank], {seconds(theirs[3]), seconds(theirs[4]), seconds(theirs[5])});
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
  return rank_count() == 1 ? backward_alone(step, examples, shard)
                           : backward_with_ranks(step, examples, shard);
}

template <class T>
BatchLoss ShardedStep<T>::backward_alone(std::size_t step, std::span<const std::size_t> examples,
                                         const Shard& shard) {
  const Clock::time_point began = Clock::now();
  const std::size_t shards = shards_of(examples);
  Sums sums = summed(step, examples, shards, {0, shards}, shard, [](std::size_t, const auto&) {});
  const BatchLoss loss = set_gradients(sums.numbers.total().all, [&](std::size_t i, T factor) {
    Variable<T> gradient = std::move(sums.gradients[i].total().sum);
    T* elements = detail::data(gradient);
    detail::ElementSums<T>::scale(factor, elements, elements, gradient.size());
    return gradient;
  });
  add_times(times_[0], {.computing = seconds_between(began, Clock::now())});
  return loss;
}

template <class T>
BatchLoss ShardedStep<T>::backward_with_ranks(std::size_t step, std::span<const std::size_t> examples,
                                              const Shard& shard) {
  const Clock::time_point began = Clock::now();
  check_agreement_in_step(step, examples);
  last_ = {.waiting = seconds_between(began, Clock::now())};
  std::span<const double> numbers;
  try {
    numbers = exchanged(step, examples, shard);
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  } catch (...) {
    give_up("ended by an exception");
    throw;
  }
  last_.overlapping = exchange_->overlapping();
  bytes_sent_ = exchange_->bytes_sent();
  const BatchLoss loss = set_gradients(numbers, [&](std::size_t i, T factor) {
    Variable<T> gradient = detail::empty<T>(parameters_[i].shape());
    exchange_->take(i, [&](Range range, std::span<const T> sum) {
      detail::ElementSums<T>::scale(factor, sum.data(), detail::data(gradient) + range.begin, range.size());
    });
    return gradient;
  });
  last_.computing = seconds_between(began, Clock::now()) - last_.waiting;
  return loss;
}

/// Computes this rank's shards, and returns the numbers of all.
template <class T>
std::span<const double> ShardedStep<T>::exchanged(std::size_t step, std::span<const std::size_t> examples,
                                                  const Shard& shard) {
  const std::size_t shards = shards_of(examples), count = parameters_.size();
  if (exchange_ == nullptr || exchange_->shards() != shards) {
    std::vector<std::size_t> sizes;
    for (const Variable<T>& parameter : parameters_) sizes.push_back(parameter.size());
    exchange_.reset();
    exchange_ = std::make_unique<detail::GradientExchange<T>>(*options_.ranks, sizes, of_loss + count, shards,
                                                              options_.bucket_bytes);
  }
  exchange_->begin();
  const Range mine = part(shards, options_.ranks->rank(), rank_count());
  for (std::size_t i = 0; i < count && mine.size() == 0; ++i) exchange_->give(i, {});
  Sums sums = summed(step, examples, shards, mine, shard, [&](std::size_t i, GradientSum<T>& gradient) {
    exchange_->give(i, elements_of(gradient.nodes()));
    gradient.nodes().clear();
  });
  const Clock::time_point began = Clock::now();
  const std::span<const double> numbers = exchange_->finish(elements_of(sums.numbers.nodes()));
  last_.waiting += seconds_between(began, Clock::now());
  return numbers;
}

/// The others wait for what this rank does not send any more.
template <class T>
void ShardedStep<T>::give_up(const std::string& why) {
  options_.ranks->abort(why);
  exchange_.reset();
}

/// Of some shards; calls complete(parameter, gradient) when the last one adds nothing more to the gradient.
template <class T>
template <class F>
typename ShardedStep<T>::Sums ShardedStep<T>::summed(std::size_t step, std::span<const std::size_t> examples,
                                                     std::size_t shards, Range mine, const Shard& function,
                                                     const F& complete) const {
  const std::size_t count = parameters_.size();
  Sums sums{detail::TreeSum<Numbers>(mine.begin),
            std::vector<GradientSum<T>>(count, GradientSum<T>(mine.begin))};
  for (std::size_t s = mine.begin; s < mine.end; ++s) {
    const Range chosen = part(examples.size(), s, shards);
    const WeightedLoss<T> loss =
        loss_of_shard(step, s, examples.subspan(chosen.begin, chosen.size()), function);
    Numbers of_shard{std::vector<double>(of_loss + count)};
    const double of_this[of_loss] = {loss.sum.item(), loss.weight, static_cast<double>(loss.tokens)};
    std::copy(std::begin(of_this), std::end(of_this), of_shard.all.begin());
    const auto take = [&](std::size_t i, Variable<T> gradient) {
      of_shard.all[of_loss + i] = gradient.defined() ? 1 : 0;
      if (!gradient.defined()) {
        gradient = detail::empty<T>(parameters_[i].shape());
        std::fill_n(detail::data(gradient), gradient.size(), T(0));
      }
      sums.gradients[i].push({1, {std::move(gradient)}});
      if (s + 1 == mine.end) complete(i, sums.gradients[i]);
    };
    grad_each(loss.sum, parameters_, take, {.allow_unused = true});
    sums.numbers.push({1, std::move(of_shard)});
  }
  return sums;
}

/// Those of the parameters that a shard has used, from gradient_of(parameter, what to multiply the sum by).
template <class T>
template <class F>
BatchLoss ShardedStep<T>::set_gradients(std::span<const double> numbers, const F& gradient_of) {
  const BatchLoss loss{numbers[0], numbers[1], static_cast<std::size_t>(numbers[2])};
  if (!(loss.weight > 0)) {
    detail::fail<ValueError>("ShardedStep: the weights of a batch must add up to more than 0, got ",
                             loss.weight);
  }
  std::vector<Variable<T>> gradients(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (numbers[of_loss + i] > 0) gradients[i] = gradient_of(i, static_cast<T>(1 / loss.weight));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].zero_grad();
    if (gradients[i].defined()) parameters_[i].set_grad(std::move(gradients[i]));
  }
  return loss;
}

template <class T>
WeightedLoss<T> ShardedStep<T>::loss_of_shard(std::size_t step, std::size_t shard,
                                              std::span<const std::size_t> examples,
                                              const Shard& function) const {
  Generator generator(detail::key_of_shard(options_.seed, step, shard));
  const UseGenerator use(generator);
  WeightedLoss<T> loss = function(examples);
  if (!loss.sum.defined() || loss.sum.size() != 1) {
    detail::fail<ShapeError>(
        "ShardedStep: the loss of a shard must be one sum, got ",
        loss.sum.defined() ? "shape " + to_string(loss.sum.shape()) : "an undefined variable");
  }
  if (!(loss.weight >= 0 && std::isfinite(loss.weight))) {
    detail::fail<ValueError>("ShardedStep: the weight of a shard must be at least 0 and finite, got ",
                             loss.weight);
  }
  return loss;
}

template class ShardedStep<float>;
template class ShardedStep<double>;

}  // namespace xgrad::mpi
