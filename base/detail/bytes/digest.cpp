#include "digest.hpp"

#include <bit>
#include <cstring>

namespace xgrad::detail {
namespace {

constexpr std::uint64_t prime_1 = 0x9E3779B185EBCA87, prime_2 = 0xC2B2AE3D27D4EB4F,
                        prime_3 = 0x165667B19E3779F9, prime_4 = 0x85EBCA77C2B2AE63,
                        prime_5 = 0x27D4EB2F165667C5;

/// The little-endian number at the front, which is taken off.
template <class Number>
std::uint64_t take(std::span<const std::byte>& bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes = bytes.subspan(sizeof number);
  return number;
}

std::uint64_t rounded(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * prime_2, 31) * prime_1;
}

}  // namespace

std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed) {
  const std::uint64_t size = bytes.size();
  std::uint64_t digest = seed + prime_5;
  if (bytes.size() >= 32) {
    std::uint64_t lanes[] = {seed + prime_1 + prime_2, seed + prime_2, seed, seed - prime_1};
    while (bytes.size() >= 32) {
      for (std::uint64_t& lane : lanes) lane = rounded(lane, take<std::uint64_t>(bytes));
    }
    digest =
        std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) digest = (digest ^ rounded(0, lane)) * prime_1 + prime_4;
  }
  digest += size;
  while (bytes.size() >= 8)
    digest = std::rotl(digest ^ rounded(0, take<std::uint64_t>(bytes)), 27) * prime_1 + prime_4;
  if (bytes.size() >= 4)
    digest = std::rotl(digest ^ (take<std::uint32_t>(bytes) * prime_1), 23) * prime_2 + prime_3;
  while (!bytes.empty()) digest = std::rotl(digest ^ (take<std::uint8_t>(bytes) * prime_5), 11) * prime_1;
  digest = (digest ^ (digest >> 33)) * prime_2;
  digest = (digest ^ (digest >> 29)) * prime_3;
  return digest ^ (digest >> 32);
}

std::string hexadecimal(std::uint64_t number) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (auto digit = text.rbegin(); number != 0; ++digit, number >>= 4) *digit = digits[number & 15];
  return text;
}

}  // namespace xgrad::detail
