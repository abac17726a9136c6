#pragma once

#include <cstddef>

#include <xgrad/base/threads.hpp>

namespace xgrad_tests {

/// Sets the number of threads back at its end.
class KeepNumThreads {
 public:
  KeepNumThreads() = default;
  KeepNumThreads(const KeepNumThreads&) = delete;
  KeepNumThreads& operator=(const KeepNumThreads&) = delete;
  ~KeepNumThreads() { xgrad::set_num_threads(before_); }

 private:
  std::size_t before_ = xgrad::num_threads();
};

}  // namespace xgrad_tests
