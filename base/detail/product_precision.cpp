#include "product_precision.hpp"

namespace xgrad::detail {

constinit std::atomic<bool> process_rounds_products{false};
constinit thread_local Rounding rounding_of_thread = Rounding::of_process;

}  // namespace xgrad::detail
