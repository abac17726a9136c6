#include "sizes.hpp"

#include "../../base/error.hpp"

namespace xgrad::detail {

std::size_t checked_size(const char* module, const char* name, std::size_t size) {
  constexpr std::size_t largest = 0x7fffffff;  // so that the product of two sizes is a size
  if (size == 0) fail<ValueError>(module, ": ", name, " must be at least 1, got 0");
  if (size > static_cast<std::size_t>(-1) / 2)  // a negative number
    fail<ValueError>(module, ": ", name, " must be at least 1, got ", static_cast<std::ptrdiff_t>(size));
  if (size > largest) fail<ValueError>(module, ": ", name, " must be at most ", largest, ", got ", size);
  return size;
}

double checked_probability(const char* module, const char* name, double p) {
  if (!(p >= 0 && p <= 1)) fail<ValueError>(module, ": ", name, " must be in [0, 1], got ", p);
  return p;
}

}  // namespace xgrad::detail
