#include "product_precision.hpp"

namespace xgrad::detail {

constinit std::atomic<Parts> parts_of_process{0};
constinit thread_local std::int16_t parts_of_thread = -1;

}  // namespace xgrad::detail
