#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "../attention/key_value_cache.hpp"

namespace xgrad::detail {

/// Removes from caches what a call has appended to them, unless it has succeeded.
template <class T>
class CachesGuard {
 public:
  explicit CachesGuard(std::span<KeyValueCache<T>> caches) : caches_(caches) {
    for (const KeyValueCache<T>& cache : caches) lengths_.push_back(cache.length());
  }
  CachesGuard(const CachesGuard&) = delete;
  CachesGuard& operator=(const CachesGuard&) = delete;
  ~CachesGuard() {
    for (std::size_t i = 0; i < lengths_.size(); ++i) caches_[i].undo(lengths_[i]);
  }

  void succeeded() noexcept { lengths_.clear(); }

 private:
  std::span<KeyValueCache<T>> caches_;
  std::vector<std::size_t> lengths_;
};

}  // namespace xgrad::detail
