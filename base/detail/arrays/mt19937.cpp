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

/// Whether words 2 i (high) and 2 i + 1 (low), cut to 53 bits, are below `bound`.
XGRAD_INLINE bool is_below(const std::uint32_t* words, std::size_t i, std::uint64_t bound) {
  constexpr std::uint32_t high_bits = (std::uint32_t{1} << 21) - 1;
  const std::uint64_t high = words[2 * i] & high_bits, low = words[2 * i + 1];
  return ((high << 32) | low) < bound;
}

}  // namespace

/// In two loops, for the second one reads what the first has written, 227 words behind. Bound by the shifts.
XGRAD_VECTORIZED(void, mt19937_twist, (std::uint32_t * state), (state)) {
  constexpr std::size_t behind = mt19937_size - middle;
  for (std::size_t i = 0; i < behind; ++i) state[i] = twisted(state[i], state[i + 1], state[i + middle]);
  for (std::size_t i = behind; i + 1 < mt19937_size; ++i)
    state[i] = twisted(state[i], state[i + 1], state[i - behind]);
  state[mt19937_size - 1] = twisted(state[mt19937_size - 1], state[0], state[middle - 1]);
}

/// Bound by the shifts.
XGRAD_VECTORIZED(void, mt19937_temper, (const std::uint32_t* state, std::uint32_t* words), (state, words)) {
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
  XGRAD_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = is_below(words, i, bound) ? T(1) : T(0);
}

/// In bytes first, which the compiler can vectorise; a product moves the low bit of each of 8 into one.
XGRAD_VECTORIZED(void, bernoulli_bits,
                 (const std::uint32_t* words, std::uint64_t bound, std::uint8_t* y, std::size_t n),
                 (words, bound, y, n)) {
  constexpr std::size_t group = 64;
  constexpr std::uint64_t gather = 0x0102040810204080;  // bit 8 i goes to bit 56 + i
  for (; n > 0; words += 2 * group) {
    const std::size_t size = n < group ? n : group;
    std::uint8_t chosen[group] = {};
    for (std::size_t i = 0; i < size; ++i) chosen[i] = is_below(words, i, bound) ? 1 : 0;
    for (std::size_t i = 0; i < size; i += 8, ++y) {
      std::uint64_t eight = 0;
      for (std::size_t j = 0; j < 8; ++j) eight |= std::uint64_t{chosen[i + j]} << 8 * j;
      *y = static_cast<std::uint8_t>(eight * gather >> 56);
    }
    n -= size;
  }
}

}  // namespace xgrad::kernels
