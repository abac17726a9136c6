#pragma once

#include <cstddef>

namespace xgrad {

/// How many threads one computation may use (torch.set_num_threads), for the whole process. At first as many
/// as OPENBLAS_NUM_THREADS or OMP_NUM_THREADS says, else all processors that it may run on. They start with
/// the first computation that is large enough and sleep in between. Results do not depend on their number,
/// with OpenBLAS: another BLAS may add in an order that depends on how many rows a product has. Throws
/// ValueError unless the count is from 1 to 1024.
void set_num_threads(std::size_t count);

/// The number that set_num_threads() or the environment gave.
std::size_t num_threads();

}  // namespace xgrad
