#pragma once

#include <cstdint>

#include "../../array.hpp"
#include "../ref.hpp"

namespace xgrad::detail {

/// The array shared by one or more handles. Values are recycled by shape: constructing an xarray's shape and
/// strides costs several times as much as reusing one.
template <class T>
struct Value {
  explicit Value(Array<T>&& contents);

  static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { pool_release(block, bytes); }

  RefCount refs;
  std::uint32_t version = 0;  ///< counts changes in place
  std::uint64_t key;          ///< encodes the shape; 0 if the value is not recyclable
  Value* next = nullptr;      ///< in a list of recycled values
  Array<T> array;
};

/// A value of this shape with unspecified elements, for a result of `op`. Throws ShapeError as check_count
/// does.
template <class T>
Ref<Value<T>> make_value(const Shape& shape, const char* op);

template <class T>
void dispose(Value<T>* value) noexcept;

/// Frees the calling thread's recycled values.
void release_cached_values() noexcept;

}  // namespace xgrad::detail
