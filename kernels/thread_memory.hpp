#pragma once

#include <cstddef>
#include <vector>

namespace xgrad::kernels {

/// Memory of this thread for `size` numbers, kept until it ends; each Use, a type, has its own.
template <typename T, typename Use>
T* thread_memory(std::size_t size) {
  thread_local std::vector<T> memory;
  if (memory.size() < size) memory.resize(size);
  return memory.data();
}

}  // namespace xgrad::kernels
