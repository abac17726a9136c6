#include "../../base/detail/bytes/digest.hpp"

#include <string>

#include <gtest/gtest.h>

namespace digest_test {

std::string xxh64_of(const std::string& text, std::uint64_t seed = 0) {
  return xgrad::detail::hexadecimal(xgrad::detail::xxh64(std::as_bytes(std::span(text)), seed));
}

/// "abc...zabc...", so many letters.
std::string alphabet(std::size_t size) {
  std::string text;
  while (text.size() < size) text += static_cast<char>('a' + text.size() % 26);
  return text;
}

// The expected digests are those of xxhash.xxh64(text, seed).hexdigest() of Python's package xxhash.
TEST(Digest, IsThatOfTheReference) {
  EXPECT_EQ(xxh64_of(""), "ef46db3751d8e999");
  EXPECT_EQ(xxh64_of("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(xxh64_of("abc"), "44bc2cf5ad770999");
  EXPECT_EQ(xxh64_of(alphabet(4)), "de0327b0d25d92cc");
  EXPECT_EQ(xxh64_of(alphabet(7)), "1860940e2902822d");
  EXPECT_EQ(xxh64_of(alphabet(8)), "3ad351775b4634b7");
  EXPECT_EQ(xxh64_of(alphabet(12)), "4b09b7d3a233d4b3");
  EXPECT_EQ(xxh64_of(alphabet(31)), "f7d421c242541ac9");
  EXPECT_EQ(xxh64_of(alphabet(32)), "4da6cbe536cf55c7");
  EXPECT_EQ(xxh64_of(alphabet(33)), "9ac581034b031f72");
  EXPECT_EQ(xxh64_of(alphabet(63)), "a12b47d9d143a6bc");
  EXPECT_EQ(xxh64_of(alphabet(64)), "14696b774542d718");
  EXPECT_EQ(xxh64_of(alphabet(100)), "79c9fa152bb53c71");
  EXPECT_EQ(xxh64_of(alphabet(77), 12345), "7744c4664cb2587b");
}

TEST(Digest, IsSixteenHexadecimalDigits) {
  EXPECT_EQ(xgrad::detail::hexadecimal(0), "0000000000000000");
  EXPECT_EQ(xgrad::detail::hexadecimal(0x1A), "000000000000001a");
  EXPECT_EQ(xgrad::detail::hexadecimal(~std::uint64_t{0}), "ffffffffffffffff");
}

}  // namespace digest_test
