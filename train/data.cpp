#include "data.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <numeric>

#include "../base/error.hpp"

namespace xgrad {
namespace {

constexpr std::size_t group = 32;  // batches whose examples are sorted together

std::vector<std::size_t> shuffled(std::size_t count, Generator& generator) {
  const Ids order = randperm(static_cast<std::int64_t>(count), generator);
  return {order.begin(), order.end()};
}

/// As randint(0, 2^32) draws it, but without memory for an array.
std::size_t random_seed(Generator& generator) {
  return static_cast<std::size_t>(generator.random64() % (std::uint64_t{1} << 32));
}

std::vector<std::size_t> first_numbers(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

}  // namespace

Ids pad_sequence(const std::vector<std::vector<std::int64_t>>& sequences, std::int64_t padding_value) {
  std::size_t longest = 0;
  for (const auto& sequence : sequences) longest = std::max(longest, sequence.size());
  Ids ids = Ids::from_shape({sequences.size(), longest});
  std::fill(ids.begin(), ids.end(), padding_value);
  for (std::size_t row = 0; row < sequences.size(); ++row)
    std::copy(sequences[row].begin(), sequences[row].end(), ids.data() + row * longest);
  return ids;
}

std::vector<std::vector<std::size_t>> random_split(std::size_t count, const std::vector<std::size_t>& lengths,
                                                   Generator& generator) {
  std::size_t left = count;
  for (const std::size_t length : lengths) {
    if (length > left) left = count + 1;
    if (left <= count) left -= length;
  }
  if (left != 0)
    detail::fail<ValueError>("random_split: the lengths must add up to the number of examples, ", count);
  const std::vector<std::size_t> order = shuffled(count, generator);
  std::vector<std::vector<std::size_t>> parts;
  auto first = order.begin();
  for (const std::size_t length : lengths) {
    parts.emplace_back(first, first + static_cast<std::ptrdiff_t>(length));
    first += static_cast<std::ptrdiff_t>(length);
  }
  return parts;
}

BatchSampler::BatchSampler(std::size_t examples, BatchSamplerOptions options)
    : examples_(examples), options_(options) {
  if (examples == 0) detail::fail<ValueError>("BatchSampler: there must be examples, got none");
  if (options.batch_size == 0) detail::fail<ValueError>("BatchSampler: batch_size must be at least 1, got 0");
  if (batches_per_epoch() == 0) {
    detail::fail<ValueError>("BatchSampler: with drop_last there must be as many examples as batch_size ",
                             options.batch_size, ", got ", examples);
  }
}

BatchSampler::BatchSampler(std::vector<std::size_t> lengths, BatchSamplerOptions options)
    : BatchSampler(lengths.size(), options) {
  lengths_ = std::move(lengths);
}

std::size_t BatchSampler::batches_per_epoch() const {
  const std::size_t whole = examples_ / options_.batch_size;
  return whole + (options_.drop_last || examples_ % options_.batch_size == 0 ? 0 : 1);
}

std::vector<std::size_t> BatchSampler::next() {
  if (position_ == current_.starts.size()) {
    Generator& generator = default_generator();
    const std::lock_guard lock(generator.mutex());  // another thread must not draw the same seed
    Generator copy = generator;
    const std::size_t seed = options_.shuffle ? random_seed(copy) : seed_;
    Epoch next = arranged(seed);
    std::vector<std::size_t> batch = batch_at(next, 0);
    if (options_.shuffle) random_seed(generator);  // when nothing can throw any more
    seed_ = seed;
    current_ = std::move(next);
    ++epoch_;
    position_ = 1;
    return batch;
  }
  std::vector<std::size_t> batch = batch_at(current_, position_);
  ++position_;
  return batch;
}

std::vector<std::size_t> BatchSampler::batch_at(const Epoch& epoch, std::size_t position) const {
  const std::size_t start = epoch.starts[position];
  const std::size_t end = start + std::min(options_.batch_size, epoch.order.size() - start);
  return {epoch.order.begin() + static_cast<std::ptrdiff_t>(start),
          epoch.order.begin() + static_cast<std::ptrdiff_t>(end)};
}

BatchSampler::Epoch BatchSampler::arranged(std::size_t seed) const {
  Epoch epoch;
  auto& [order, starts] = epoch;
  Generator generator(seed);
  order = options_.shuffle ? shuffled(examples_, generator) : first_numbers(examples_);
  const std::size_t size = options_.batch_size;
  if (options_.drop_last) order.resize(batches_per_epoch() * size);
  if (!lengths_.empty()) {
    const std::size_t count = order.size();
    const std::size_t step = options_.shuffle && size <= count / group ? group * size : count;
    for (std::size_t first = 0; first < count; first += step) {
      const std::size_t last = std::min(first + step, count);
      std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first),
                       order.begin() + static_cast<std::ptrdiff_t>(last),
                       [this](std::size_t a, std::size_t b) { return lengths_[a] < lengths_[b]; });
    }
  }
  starts = options_.shuffle && !lengths_.empty() ? shuffled(batches_per_epoch(), generator)
                                                 : first_numbers(batches_per_epoch());
  for (std::size_t& start : starts) start *= size;
  return epoch;
}

void BatchSampler::list_state(StateArchive& state) {
  state.keep(epoch_, position_, seed_, current_);
  state.constant("examples", examples_);
  state.number("epoch", epoch_);
  state.number("position", position_, batches_per_epoch());
  state.number("seed", seed_, std::uint64_t{1} << 32);
  state.check([this] {
    if (epoch_ == 0 && position_ != 0) {
      detail::fail<ValueError>("BatchSampler: 'position' must be 0 before the first epoch, got ", position_);
    }
  });
  if (!state.loaded()) return;
  current_ = epoch_ != 0 ? arranged(seed_) : Epoch{};
}

}  // namespace xgrad
