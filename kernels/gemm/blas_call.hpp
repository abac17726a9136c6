#pragma once

#include <mutex>
#include <optional>

#include "../../base/detail/system/openmp.hpp"

namespace xgrad::kernels {

/// While one lives, calls of BLAS and LAPACK are single-threaded, and safe beside those of other threads.
class BlasCall {
 public:
  BlasCall();
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;

  /// True if calls can run beside each other.
  static bool is_concurrent();

 private:
  std::optional<OneOpenMpThread> one_thread_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace xgrad::kernels
