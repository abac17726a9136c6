#pragma once

// What bench_gpt sends to the processes of the libraries, besides what bench_encoder does.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// The sizes of a GPT and of its batch.
struct GptSize {
  std::size_t vocab, seq, batch, d_model, heads, layers;
  bool biases;  ///< of linear layers; norms have them
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GptSize, vocab, seq, batch, d_model, heads, layers, biases)

inline constexpr std::size_t gpt_positions = 1024;

/// The matrices that each token is multiplied with.
inline std::size_t matrix_numbers(const GptSize& size) {
  return 12 * size.layers * size.d_model * size.d_model + size.vocab * size.d_model;
}

/// What is read to decode a token, beside the caches.
inline std::size_t decoded_bytes(const GptSize& size, bool bfloat16) {
  return matrix_numbers(size) * (bfloat16 ? 2 : 4);
}

/// A model that trains, and its batch: ids, and what comes behind each.
struct Gpt {
  std::string library;  ///< and its version, or the core that OpenBLAS chose its kernels for
  std::size_t params;
  double loss;
  std::vector<std::int64_t> ids, targets;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Gpt, library, params, loss, ids, targets)

/// Another library's model with the same weights, or one that decodes.
struct GptPeer {
  std::string library;
  double loss;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GptPeer, library, loss)

struct GptDecoder {
  std::string library;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GptDecoder, library)

}  // namespace bench
