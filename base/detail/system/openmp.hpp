#pragma once

namespace xgrad::kernels {

/// Limits OpenMP in calls from this thread to one thread, for the lifetime of the object.
class OneOpenMpThread {
 public:
  OneOpenMpThread();
  ~OneOpenMpThread();
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int threads_before_;  ///< 0 in a process without OpenMP
};

}  // namespace xgrad::kernels
