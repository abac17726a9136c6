#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace xgrad::detail {

/// A checksum of bytes, continued from another: FNV-1a (Fowler, Noll and Vo 1991) of 64 bits.
inline std::uint64_t checksum(std::span<const std::byte> bytes,
                              std::uint64_t before = 14695981039346656037U) {
  for (const std::byte byte : bytes) before = (before ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;
  return before;
}

}  // namespace xgrad::detail
