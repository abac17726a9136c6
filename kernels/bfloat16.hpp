#pragma once

#include <cstdint>

#include "matrix.hpp"

// Products of float numbers that are rounded to bfloat16 first: 8 bits of each number's 24 are kept, so that
// processors with instructions for it multiply several at once.
namespace xgrad::kernels {

/// How many bfloat16 numbers stand for each float in a product; 0: the float itself.
using Parts = std::uint8_t;

/// What was asked for: on this thread, or else for the process, which begins with 0. A parallel_for hands it
/// on to its threads.
Parts parts_asked();
void set_parts_asked(Parts parts);

/// Asks on this thread, or not any more if `parts` is negative, and returns what was asked before.
std::int16_t ask_on_this_thread(std::int16_t parts);

/// While one lives, this thread asks for these parts.
class PartsScope {
 public:
  explicit PartsScope(Parts parts) : before_(ask_on_this_thread(parts)) {}
  ~PartsScope() { ask_on_this_thread(before_); }
  PartsScope(const PartsScope&) = delete;
  PartsScope& operator=(const PartsScope&) = delete;

 private:
  std::int16_t before_;
};

/// Those of `asked` that this processor multiplies faster than floats; else 0. Two are never: three products
/// take longer than one of floats unless the processor has a matrix unit.
Parts parts_in_use(Parts asked);

/// Whether one part is in use wherever it is asked for, also where that is slow; for tests.
void force_parts(bool forced);

/// bfloat16_gemm computes C in tiles of as many rows and columns; pieces that begin at their borders have the
/// bits of the whole.
constexpr std::size_t bfloat16_rows = 96, bfloat16_cols = 32;

/// True if the product is large enough to pay for rounding its operands.
bool pays_to_round(std::size_t m, std::size_t n, std::size_t k);

/// C = alpha A B + beta C as gemm computes it, on one thread, where each element of A and B is rounded to the
/// nearest bfloat16 and the products are added in float.
void bfloat16_gemm(float alpha, const Matrix<const float>& a, const Matrix<const float>& b, float beta,
                   const Matrix<float>& c);

}  // namespace xgrad::kernels
