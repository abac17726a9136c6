#pragma once

#include <cstddef>

namespace xgrad_tests {

/// Lets an allocation of this thread throw std::bad_alloc: the one after so many more. Only in programs that
/// are linked with failing_memory.cpp.
class FailingMemory {
 public:
  explicit FailingMemory(std::size_t after, bool for_good = false);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// Whether an allocation has failed.
  bool failed() const;
  /// The number of allocations until the first that failed, or until now.
  std::size_t count() const;
};

}  // namespace xgrad_tests
