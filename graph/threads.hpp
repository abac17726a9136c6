#pragma once

#include <cstddef>

namespace xgrad {

/// How many threads one computation may use (torch.set_num_threads), for the whole process. At first as many
/// as OPENBLAS_NUM_THREADS or OMP_NUM_THREADS says, else all processors. They start with the first
/// computation that is large enough and sleep in between; results do not depend on their number.
/// Throws ValueError for 0.
void set_num_threads(std::size_t count);

std::size_t num_threads();

}  // namespace xgrad
