#pragma once

#include <cstddef>
#include <cstdint>

/// The 32-bit Mersenne Twister (Matsumoto and Nishimura 1998), one block at a time.
namespace xgrad::kernels {

inline constexpr std::size_t mt19937_size = 624;  ///< words of the state

/// Replaces the state with the next `mt19937_size` words of the recurrence.
void mt19937_twist(std::uint32_t* state);

/// words[i] = the random number of state[i].
void mt19937_temper(const std::uint32_t* state, std::uint32_t* words);

/// y[i] = 1 if words 2 i (high) and 2 i + 1 (low), truncated to 53 bits, are below `bound`, else 0.
template <typename T>
void bernoulli(const std::uint32_t* words, std::uint64_t bound, T* y, std::size_t n);

/// The number of bytes of n bits.
constexpr std::size_t bytes_of_bits(std::size_t n) { return (n + 7) / 8; }

/// bernoulli as n bits, least significant first; the rest of the last byte is 0.
void bernoulli_bits(const std::uint32_t* words, std::uint64_t bound, std::uint8_t* y, std::size_t n);

}  // namespace xgrad::kernels
