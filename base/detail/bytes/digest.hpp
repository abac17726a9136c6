#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace xgrad::detail {

/// XXH64, a digest of 64 bits that tells changed files apart, but not forged ones.
/// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// A number as 16 hexadecimal digits.
std::string hexadecimal(std::uint64_t number);

}  // namespace xgrad::detail
