#include "capture.hpp"

namespace xgrad::kernels {

constinit thread_local Capturer* capturer = nullptr;

}  // namespace xgrad::kernels
