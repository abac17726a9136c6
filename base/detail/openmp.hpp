#pragma once

namespace xgrad::kernels {

/// While one lives, libraries that divide work by OpenMP do not divide what this thread asks of them.
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
