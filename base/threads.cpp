#include "threads.hpp"

#include "detail/system/parallel.hpp"
#include "error.hpp"

namespace xgrad {

void set_num_threads(std::size_t count) {
  if (count == 0 || count > kernels::most_threads) {
    detail::fail<ValueError>("set_num_threads: the count must be from 1 to ", kernels::most_threads, ", got ",
                             count);
  }
  kernels::set_thread_count(count);
}

std::size_t num_threads() { return kernels::thread_count(); }

}  // namespace xgrad
