#include "mt19937.hpp"

#include "vectorized.hpp"

namespace xgrad::kernels {

namespace {

constexpr std::size_t middle = 397;  // how far ahead the recurrence looks

/// The word that follows `upper`, `lower` and the one `middle` words after `upper`.
XGRAD_INLINE std::uint32_t twisted(std::uint32_t upper, std::uint32_t lower, std::uint32_t ahead) {
  const std::uint32_t y = (upper & 0x80000000U) | (lower & 0x7fffffffU);
  return ahead ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908b0dfU);
}

}  // namespace

/// In two loops, for the second one reads what the first has written, 227 words behind. Bound by the shifts.
XGRAD_VECTORIZED void mt19937_twist(std::uint32_t* state) {
  constexpr std::size_t behind = mt19937_size - middle;
  for (std::size_t i = 0; i < behind; ++i) state[i] = twisted(state[i], state[i + 1], state[i + middle]);
  for (std::size_t i = behind; i + 1 < mt19937_size; ++i)
    state[i] = twisted(state[i], state[i + 1], state[i - behind]);
  state[mt19937_size - 1] = twisted(state[mt19937_size - 1], state[0], state[middle - 1]);
}

/// Bound by the shifts.
XGRAD_VECTORIZED void mt19937_temper(const std::uint32_t* state, std::uint32_t* words) {
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < mt19937_size; ++i) {
    std::uint32_t y = state[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    words[i] = y ^ (y >> 18);
  }
}

/// Bound by putting the words together.
XGRAD_KERNEL(void, bernoulli, (const std::uint32_t* words, std::uint64_t bound, T* y, std::size_t n),
             (words, bound, y, n)) {
  constexpr std::uint32_t high_bits = (std::uint32_t{1} << 21) - 1;
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t high = words[2 * i] & high_bits, low = words[2 * i + 1];
    y[i] = ((high << 32) | low) < bound ? T(1) : T(0);
  }
}

}  // namespace xgrad::kernels
