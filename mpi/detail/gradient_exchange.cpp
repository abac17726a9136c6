#include "gradient_exchange.hpp"

#include <algorithm>
#include <numeric>

namespace xgrad::detail {
namespace {

// Channel 0 is exchange()'s, and every bucket has one of its own.
constexpr int numbers_channel = 1, first_bucket_channel = 2;
constexpr std::size_t most_buckets = 16384;

}  // namespace

template <class T>
GradientExchange<T>::GradientExchange(mpi::Communicator& ranks, const std::vector<std::size_t>& sizes,
                                      std::size_t numbers, std::size_t shards, std::size_t bucket_bytes)
    : ranks_(ranks),
      tree_(shards, ranks.size()),
      sizes_(sizes),
      first_(sizes.size()),
      numbers_(ranks, numbers_channel, tree_, numbers) {
  std::size_t elements = 0;
  for (std::size_t i = sizes.size(); i-- > 0; elements += sizes[i]) first_[i] = elements;
  length_ = std::max(bucket_bytes / sizeof(T), elements / most_buckets + 1);
  for (std::size_t begin = 0; begin < elements; begin += length_) {
    const int channel = first_bucket_channel + static_cast<int>(buckets_.size());
    buckets_.push_back({{ranks, channel, tree_, std::min(length_, elements - begin)}});
  }
  for (std::size_t i = 0; i < sizes.size(); ++i)
    each_piece(i, [&](std::size_t bucket, std::size_t, Range) { ++buckets_[bucket].parameters; });
}

template <class T>
void GradientExchange<T>::begin() {
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
  started_ = 0;
  under_way_.clear();
  overlapping_ = 0;
}

template <class T>
void GradientExchange<T>::give(std::size_t parameter, const std::vector<const T*>& nodes) {
  each_piece(parameter, [&](std::size_t number, std::size_t at, Range range) {
    Bucket& bucket = buckets_[number];
    for (std::size_t i = 0; i < nodes.size(); ++i)
      std::copy(nodes[i] + range.begin, nodes[i] + range.end, bucket.reduction.node(i).data() + at);
    --bucket.missing;
  });
  note_time();
  start_those_complete();
  go_on();
}

template <class T>
std::span<const double> GradientExchange<T>::finish(const std::vector<const double*>& nodes) {
  note_time();
  for (std::size_t i = 0; i < nodes.size(); ++i)
    std::copy_n(nodes[i], numbers_.size(), numbers_.node(i).data());
  numbers_.start();
  bool there = false;
  ranks_.wait_until([&] {
    there = there || numbers_.advance();
    return go_on() && there;
  });
  return numbers_.sum();
}

template <class T>
std::size_t GradientExchange<T>::bytes_sent() const {
  return std::accumulate(
      buckets_.begin(), buckets_.end(), numbers_.bytes_sent(),
      [](std::size_t sum, const Bucket& bucket) { return sum + bucket.reduction.bytes_sent(); });
}

template <class T>
void GradientExchange<T>::start_those_complete() {
  for (; started_ < buckets_.size() && buckets_[started_].missing == 0; ++started_) {
    under_way_.push_back(&buckets_[started_].reduction);
    under_way_.back()->start();
  }
}

/// Whether all that have been started are done.
template <class T>
bool GradientExchange<T>::go_on() {
  std::erase_if(under_way_, [](TreeReduction<T>* reduction) { return reduction->advance(); });
  return under_way_.empty();
}

template <class T>
void GradientExchange<T>::note_time() {
  const Clock::time_point now = Clock::now();
  if (!under_way_.empty()) overlapping_ += std::chrono::duration<double>(now - noted_).count();
  noted_ = now;
}

template class GradientExchange<float>;
template class GradientExchange<double>;

}  // namespace xgrad::detail
