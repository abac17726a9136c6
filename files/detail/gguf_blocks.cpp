#include "gguf_blocks.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "half.hpp"

// Layouts and numbers as in https://github.com/ggml-org/llama.cpp (ggml-common.h, ggml-quants.c). All
// products are exact in float, as their factors have 22 bits at most: whether a sum is fused with one changes
// nothing.

namespace xgrad::detail {
namespace {

using Half = std::uint16_t;  // its bits

// ---- 32 numbers in a block; the low half of a byte is one of the first 16, the high half one of the others
// ----

struct Q4_0 {
  static constexpr std::size_t size = 32;
  Half d;
  std::uint8_t q[16];
};

/// y = d (q - 8)
inline void to_floats(const Q4_0& block, float* y) {
  const float d = float_of_half(block.d);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>((block.q[i] & 15) - 8);
    y[i + 16] = d * static_cast<float>((block.q[i] >> 4) - 8);
  }
}

struct Q4_1 {
  static constexpr std::size_t size = 32;
  Half d, m;
  std::uint8_t q[16];
};

/// y = d q + m
inline void to_floats(const Q4_1& block, float* y) {
  const float d = float_of_half(block.d), m = float_of_half(block.m);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(block.q[i] & 15) + m;
    y[i + 16] = d * static_cast<float>(block.q[i] >> 4) + m;
  }
}

struct Q5_0 {
  static constexpr std::size_t size = 32;
  Half d;
  std::uint8_t high[4];  // bit i is the fifth bit of number i
  std::uint8_t q[16];
};

/// The 32 numbers of four bits in q and a fifth.
inline std::array<std::uint8_t, 32> five_bits(const std::uint8_t (&q)[16], const std::uint8_t (&high)[4]) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  std::array<std::uint8_t, 32> numbers, fifth;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t apart = high[i] * ones & 0x8040201008040201,  // byte i has bit i
        bits = (apart + 0x7f * ones) >> 3 & 0x10 * ones;              // bit 7 is set unless the byte is 0
    std::memcpy(fifth.data() + 8 * i, &bits, 8);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    numbers[i] = static_cast<std::uint8_t>((q[i] & 15) | fifth[i]);
    numbers[i + 16] = static_cast<std::uint8_t>(q[i] >> 4 | fifth[i + 16]);
  }
  return numbers;
}

/// y = d (q - 16)
inline void to_floats(const Q5_0& block, float* y) {
  const float d = float_of_half(block.d);
  const auto q = five_bits(block.q, block.high);
  for (std::size_t i = 0; i < 32; ++i) y[i] = d * static_cast<float>(q[i] - 16);
}

struct Q5_1 {
  static constexpr std::size_t size = 32;
  Half d, m;
  std::uint8_t high[4];
  std::uint8_t q[16];
};

/// y = d q + m
inline void to_floats(const Q5_1& block, float* y) {
  const float d = float_of_half(block.d), m = float_of_half(block.m);
  const auto q = five_bits(block.q, block.high);
  for (std::size_t i = 0; i < 32; ++i) y[i] = d * static_cast<float>(q[i]) + m;
}

struct Q8_0 {
  static constexpr std::size_t size = 32;
  Half d;
  std::int8_t q[32];
};

/// y = d q
inline void to_floats(const Q8_0& block, float* y) {
  const float d = float_of_half(block.d);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(block.q[i]);
}

/// IQ4_NL's and IQ4_XS's numbers, with steps that grow towards both ends.
constexpr float steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// y = d table[q]
inline void look_up(const std::uint8_t* q, float d, const float (&table)[16], float* y) {
  for (int i = 0; i < 16; ++i) {
    y[i] = d * table[q[i] & 15];
    y[i + 16] = d * table[q[i] >> 4];
  }
}

struct IQ4_NL {
  static constexpr std::size_t size = 32;
  Half d;
  std::uint8_t q[16];
};

inline void to_floats(const IQ4_NL& block, float* y) { look_up(block.q, float_of_half(block.d), steps, y); }

struct MXFP4 {
  static constexpr std::size_t size = 32;
  std::uint8_t exponent;  // 2^(exponent - 127)
  std::uint8_t q[16];
};

/// Twice the numbers of F4 (E2M1), but without -0.
constexpr float doubled_f4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

inline void to_floats(const MXFP4& block, float* y) {
  const unsigned e = block.exponent;  // half its power of two: below 2^-126, the numbers have no leading bit
  look_up(block.q, kernels::bit_cast<float>(e < 2 ? 0x200000U << e : (e - 1) << 23), doubled_f4, y);
}

// ---- 256 numbers in a block: groups of 16 or 32 have scales of their own ----

struct Q2_K {
  static constexpr std::size_t size = 256;
  std::uint8_t scales[16];  // the low half of each is its group's scale, the high half its minimum
  std::uint8_t q[64];
  Half d, dmin;
};

/// y = d scale q - dmin minimum
inline void to_floats(const Q2_K& block, float* y) {
  const float d = float_of_half(block.d), dmin = float_of_half(block.dmin);
  for (int group = 0; group < 16; ++group, y += 16) {
    const float scale = d * static_cast<float>(block.scales[group] & 15),
                minimum = dmin * static_cast<float>(block.scales[group] >> 4);
    const std::uint8_t* const q = block.q + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) y[i] = scale * static_cast<float>(q[i] >> shift & 3) - minimum;
  }
}

struct Q3_K {
  static constexpr std::size_t size = 256;
  std::uint8_t high[32];
  std::uint8_t q[64];
  std::uint8_t scales[12];  // 16 of 6 bits
  Half d;
};

/// y = d (scale - 32) (q - 4)
inline void to_floats(const Q3_K& block, float* y) {
  const float d = float_of_half(block.d);
  for (int group = 0; group < 16; ++group, y += 16) {
    const int low = block.scales[group % 8] >> group / 8 * 4 & 15,
              high = block.scales[8 + group % 4] >> group / 4 * 2 & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const std::uint8_t *const q = block.q + group / 8 * 32 + group % 2 * 16, *const third =
                                                                                 block.high + group % 2 * 16;
    const int shift = group % 8 / 2 * 2, bit = group / 2;
    for (int i = 0; i < 16; ++i)
      y[i] = scale * static_cast<float>(((q[i] >> shift & 3) | (third[i] >> bit & 1) << 2) - 4);
  }
}

/// What q is multiplied by in a group of 32, and what is taken off.
struct Scale {
  float scale, minimum;
};

/// Of a group: 8 scales and 8 minima of 6 bits each.
inline Scale scale_of(const std::uint8_t (&packed)[12], int group, float d, float dmin) {
  const int scale = group < 4 ? packed[group] & 63 : (packed[group + 4] & 15) | packed[group - 4] >> 6 << 4,
            minimum = group < 4 ? packed[group + 4] & 63 : packed[group + 4] >> 4 | packed[group] >> 6 << 4;
  return {d * static_cast<float>(scale), dmin * static_cast<float>(minimum)};
}

struct Q4_K {
  static constexpr std::size_t size = 256;
  Half d, dmin;
  std::uint8_t scales[12];
  std::uint8_t q[128];
};

/// y = d scale q - dmin minimum
inline void to_floats(const Q4_K& block, float* y) {
  const float d = float_of_half(block.d), dmin = float_of_half(block.dmin);
  const std::uint8_t* q = block.q;
  for (int group = 0; group < 8; group += 2, q += 32, y += 64) {
    const Scale low = scale_of(block.scales, group, d, dmin),
                high = scale_of(block.scales, group + 1, d, dmin);
    for (int i = 0; i < 32; ++i) {
      y[i] = low.scale * static_cast<float>(q[i] & 15) - low.minimum;
      y[i + 32] = high.scale * static_cast<float>(q[i] >> 4) - high.minimum;
    }
  }
}

struct Q5_K {
  static constexpr std::size_t size = 256;
  Half d, dmin;
  std::uint8_t scales[12];
  std::uint8_t high[32];
  std::uint8_t q[128];
};

/// y = d scale q - dmin minimum
inline void to_floats(const Q5_K& block, float* y) {
  const float d = float_of_half(block.d), dmin = float_of_half(block.dmin);
  const std::uint8_t* q = block.q;
  for (int group = 0; group < 8; group += 2, q += 32, y += 64) {
    const Scale low = scale_of(block.scales, group, d, dmin),
                high = scale_of(block.scales, group + 1, d, dmin);
    for (int i = 0; i < 32; ++i) {
      const int fifth = block.high[i] >> group;
      y[i] = low.scale * static_cast<float>((q[i] & 15) | (fifth & 1) << 4) - low.minimum;
      y[i + 32] = high.scale * static_cast<float>(q[i] >> 4 | (fifth & 2) << 3) - high.minimum;
    }
  }
}

struct Q6_K {
  static constexpr std::size_t size = 256;
  std::uint8_t q[128], high[64];
  std::int8_t scales[16];
  Half d;
};

/// y = d scale (q - 32)
inline void to_floats(const Q6_K& block, float* y) {
  const float d = float_of_half(block.d);
  for (int group = 0; group < 16; ++group, y += 16) {
    const float scale = d * static_cast<float>(block.scales[group]);
    const std::uint8_t *const q = block.q + group / 8 * 64 + group % 4 * 16, *const high = block.high +
                                                                                           group / 8 * 32 +
                                                                                           group % 2 * 16;
    const int shift = group % 8 / 4 * 4, high_shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i)
      y[i] = scale * static_cast<float>(((q[i] >> shift & 15) | (high[i] >> high_shift & 3) << 4) - 32);
  }
}

struct IQ4_XS {
  static constexpr std::size_t size = 256;
  Half d;
  std::uint16_t high;   // two bits of each scale
  std::uint8_t low[4];  // four
  std::uint8_t q[128];
};

/// y = d (scale - 32) steps[q]
inline void to_floats(const IQ4_XS& block, float* y) {
  const float d = float_of_half(block.d);
  for (int group = 0; group < 8; ++group, y += 32) {
    const int low = block.low[group / 2] >> group % 2 * 4 & 15, high = block.high >> 2 * group & 3;
    look_up(block.q + group * 16, d * static_cast<float>((low | high << 4) - 32), steps, y);
  }
}

template <class Block>
void all_to_floats(const std::byte* blocks, std::size_t count, float* y) {
  for (; count > 0; --count, blocks += sizeof(Block), y += Block::size) {
    Block block;
    std::memcpy(&block, blocks, sizeof block);
    to_floats(block, y);
  }
}

struct Row {
  DType dtype;
  BlocksToFloats to_floats;
};
constexpr Row rows[] = {{DType::Q4_0, all_to_floats<Q4_0>},     {DType::Q4_1, all_to_floats<Q4_1>},
                        {DType::Q5_0, all_to_floats<Q5_0>},     {DType::Q5_1, all_to_floats<Q5_1>},
                        {DType::Q8_0, all_to_floats<Q8_0>},     {DType::Q2_K, all_to_floats<Q2_K>},
                        {DType::Q3_K, all_to_floats<Q3_K>},     {DType::Q4_K, all_to_floats<Q4_K>},
                        {DType::Q5_K, all_to_floats<Q5_K>},     {DType::Q6_K, all_to_floats<Q6_K>},
                        {DType::IQ4_NL, all_to_floats<IQ4_NL>}, {DType::IQ4_XS, all_to_floats<IQ4_XS>},
                        {DType::MXFP4, all_to_floats<MXFP4>}};

}  // namespace

BlocksToFloats blocks_to_floats(DType dtype) {
  for (const Row& row : rows) {
    if (row.dtype == dtype) return row.to_floats;
  }
  return nullptr;
}

}  // namespace xgrad::detail
