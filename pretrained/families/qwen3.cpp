#include "../detail/causal_family.hpp"

// Qwen3 (Yang et al. 2025, arXiv:2505.09388): Qwen2 with norms of queries and keys.
namespace xgrad::pretrained::detail {

const CausalFamilyInfo qwen3{.family = CausalFamily::qwen3,
                             .model_type = "qwen3",
                             .class_name = "Qwen3",
                             .defaults =
                                 [](CausalConfig& config) {
                                   config.vocab_size = 151936;
                                   config.intermediate_size = 22016;
                                   config.num_key_value_heads = 32;
                                   config.head_dim = 128;
                                   config.max_position_embeddings = 32768;
                                   config.query_key_norm = true;
                                 },
                             .fields =
                                 [](Fields& fields, CausalConfig& config) {
                                   llama_fields(fields, config);
                                   fields.flag("attention_bias", config.query_bias);
                                   config.output_bias = config.query_bias;
                                   qwen_window_fields(fields, config);
                                 }};

}  // namespace xgrad::pretrained::detail
