#pragma once

// What bench_pretrained sends to the processes of the libraries, besides what bench_encoder does.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// BERT's sizes, with Hugging Face's names.
struct BertSize {
  std::size_t vocab_size, max_position_embeddings, hidden_size, num_hidden_layers, num_attention_heads,
      intermediate_size;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BertSize, vocab_size, max_position_embeddings, hidden_size,
                                   num_hidden_layers, num_attention_heads, intermediate_size)

/// Texts of so many tokens each, padded to the longest: ids and mask (lengths.size(), longest), 1 for tokens.
struct Batch {
  std::vector<std::size_t> lengths;
  std::size_t longest;
  std::vector<std::int64_t> ids, mask, labels;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Batch, lengths, longest, ids, mask, labels)

/// How all libraries train.
inline constexpr std::size_t label_count = 2;
inline constexpr double dropout = 0.1, learning_rate = 2e-5, weight_decay = 0.01, max_norm = 1,
                        layer_norm_eps = 1e-12;

/// A model that was started.
struct Classifier {
  std::string library;  ///< and its version, or the core that OpenBLAS chose its kernels for
  std::size_t params;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Classifier, library, params)

/// Of all texts, one after the other.
struct Logits {
  std::vector<double> logits;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Logits, logits)

}  // namespace bench
