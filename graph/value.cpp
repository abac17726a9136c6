#include <xgrad/graph/value.hpp>

#include <xgrad/graph/error.hpp>
#include <xgrad/ops/kernels/vectorized.hpp>

namespace xgrad::detail {
namespace {

constexpr std::size_t bucket_count = 256;
constexpr std::uint32_t values_per_bucket = 32;
#ifdef XGRAD_SANITIZED
constexpr std::size_t largest_recycled = 0;  // so that the sanitizer sees every use after disposal
#else
constexpr std::size_t largest_recycled = 1024;  // elements; above, building the shape no longer counts
#endif

/// Values of one shape.
template <class T>
struct Bucket {
  Value<T>* first;
  std::uint32_t count;
};

template <class T>
constinit thread_local Bucket<T> buckets[bucket_count]{};

template <class T>
Bucket<T>& bucket_of(const Shape& shape) {
  std::size_t hash = shape.size();
  for (const std::size_t length : shape) hash = hash * 0x9E3779B97F4A7C15u + length;
  return buckets<T>[(hash ^ (hash >> 29)) % bucket_count];
}

template <class T>
void clear(Bucket<T>& bucket) noexcept {
  while (bucket.first != nullptr) {
    Value<T>* value = bucket.first;
    bucket.first = value->next;
    delete value;
  }
  bucket.count = 0;
}

template <class T>
void clear_all() noexcept {
  for (Bucket<T>& bucket : buckets<T>) clear(bucket);
}

}  // namespace

template <class T>
Ref<Value<T>> make_value(const Shape& shape, const char* op) {
  Bucket<T>& bucket = bucket_of<T>(shape);
  Value<T>* value = bucket.first;
  if (value == nullptr || !same_shape(value->array.shape(), shape)) {
    check_count(op, shape);  // a shape that was there before passed
    return Ref<Value<T>>(new Value<T>(Array<T>::from_shape(shape)));
  }
  bucket.first = value->next;
  --bucket.count;
  value->version = 0;
  return Ref<Value<T>>(value);
}

template <class T>
void dispose(Value<T>* value) noexcept {
  if (!may_keep() || value->array.size() >= largest_recycled) {
    delete value;
    return;
  }
  Bucket<T>& bucket = bucket_of<T>(value->array.shape());
  if (bucket.first != nullptr && !same_shape(bucket.first->array.shape(), value->array.shape()))
    clear(bucket);
  if (bucket.count == values_per_bucket) {
    delete value;
    return;
  }
  value->next = bucket.first;
  bucket.first = value;
  ++bucket.count;
}

void release_cached_values() noexcept {
  clear_all<float>();
  clear_all<double>();
}

template Ref<Value<float>> make_value(const Shape&, const char*);
template Ref<Value<double>> make_value(const Shape&, const char*);
template void dispose(Value<float>*) noexcept;
template void dispose(Value<double>*) noexcept;

}  // namespace xgrad::detail
