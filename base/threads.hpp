#pragma once

#include <cstddef>

namespace xgrad {

/// Sets the maximum number of threads of a computation (torch.set_num_threads), for the whole process.
/// Default: OPENBLAS_NUM_THREADS or OMP_NUM_THREADS, otherwise all processors available to the process, at
/// most quota / period, rounded up, of the CPU quota of its control groups (a container's --cpus).
/// Threads start with the first large computation and sleep in between. With OpenBLAS, results do not depend
/// on their number: another BLAS may add in an order that depends on the number of rows of a product. Throws
/// ValueError unless the count is from 1 to 1024.
void set_num_threads(std::size_t count);

/// The maximum number of threads, from set_num_threads() or the default.
[[nodiscard]] std::size_t num_threads();

}  // namespace xgrad
