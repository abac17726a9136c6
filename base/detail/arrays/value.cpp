#include "value.hpp"

#include <algorithm>

#include "../../error.hpp"

namespace xgrad::detail {
namespace {

constexpr int bucket_bits = 8;
constexpr std::size_t bucket_count = std::size_t{1} << bucket_bits;
constexpr std::size_t values_per_bucket = 32;
constexpr std::size_t largest_recycled = 1024;  // elements; above, building the shape no longer counts

/// The shape as a number, without a loop whose end the processor would have to guess: the rank, and four
/// lengths, of which the last repeats. 0 for a shape that does not fit.
std::uint64_t key_of(const Shape& shape) noexcept {
  constexpr std::uint64_t bits = 15;
  const std::size_t rank = shape.size(), last = rank - 1;
  if (rank == 0) return 7;  // no rank below: (0) is another shape
  if (rank > 4) return 0;
  const std::size_t* lengths = shape.data();
  const std::uint64_t a = lengths[0], b = lengths[std::min<std::size_t>(1, last)];
  const std::uint64_t c = lengths[std::min<std::size_t>(2, last)], d = lengths[last];
  if ((a | b | c | d) >> bits != 0) return 0;
  return (((a << bits | b) << bits | c) << bits | d) << 3 | rank;
}

/// Values of one shape. A bucket without a shape has no room.
template <class T>
struct Bucket {
  std::uint64_t key;
  Value<T>* first;
  std::size_t room;
};

template <class T>
constinit thread_local Bucket<T> buckets[bucket_count]{};

/// Each shape has two buckets to be in, as two of the few shapes of a training step may share one: the bucket
/// that it has, or else the one that it would take.
template <class T>
Bucket<T>& bucket_of(std::uint64_t key) noexcept {
  Bucket<T>* const first = buckets<T> + ((key * 0x9E3779B97F4A7C15u) >> (64 - bucket_bits));
  if (first->key == key) [[likely]]
    return *first;
  Bucket<T>* const second = buckets<T> + ((first - buckets<T>)^1);
  return second->key == key || (first->key != 0 && second->key == 0) ? *second : *first;
}

template <class T>
void clear(Bucket<T>& bucket) noexcept {
  while (bucket.first != nullptr) {
    Value<T>* value = bucket.first;
    bucket.first = value->next;
    delete value;
  }
  bucket = {};
}

template <class T>
[[gnu::noinline]] Ref<Value<T>> make_fresh(const Shape& shape, const char* op) {
  check_count(op, shape);
  return Ref<Value<T>>(new Value<T>(Array<T>::from_shape(shape)));
}

template <class T>
void keep(Value<T>* value, Bucket<T>& bucket) noexcept {
  value->next = bucket.first;
  bucket.first = value;
  --bucket.room;
}

/// For a value whose bucket is full or another shape's.
template <class T>
[[gnu::noinline]] void dispose_displaced(Value<T>* value, Bucket<T>& bucket) noexcept {
  if (value->key == 0 || value->key == bucket.key || !may_keep()) {
    delete value;
    return;
  }
  clear(bucket);
  bucket = {value->key, nullptr, values_per_bucket};
  keep(value, bucket);
}

template <class T>
void clear_all() noexcept {
  for (Bucket<T>& bucket : buckets<T>) clear(bucket);
}

}  // namespace

template <class T>
Value<T>::Value(Array<T>&& contents)
    : key(contents.size() < largest_recycled ? key_of(contents.shape()) : 0), array(std::move(contents)) {}

template <class T>
Ref<Value<T>> make_value(const Shape& shape, const char* op) {
  const std::uint64_t key = key_of(shape);
  Bucket<T>& bucket = bucket_of<T>(key);
  Value<T>* value = bucket.first;
  if (value == nullptr || bucket.key != key) return make_fresh<T>(shape, op);
  bucket.first = value->next;
  ++bucket.room;
  value->version = 0;
  return Ref<Value<T>>(value);
}

template <class T>
void dispose(Value<T>* value) noexcept {
  Bucket<T>& bucket = bucket_of<T>(value->key);
  if (bucket.room == 0 || bucket.key != value->key) return dispose_displaced(value, bucket);
  keep(value, bucket);
}

void release_cached_values() noexcept {
  clear_all<float>();
  clear_all<double>();
}

template Value<float>::Value(Array<float>&&);
template Value<double>::Value(Array<double>&&);
template Ref<Value<float>> make_value(const Shape&, const char*);
template Ref<Value<double>> make_value(const Shape&, const char*);
template void dispose(Value<float>*) noexcept;
template void dispose(Value<double>*) noexcept;

}  // namespace xgrad::detail
