#include "../detail/family.hpp"

// Qwen3 (Yang et al. 2025, arXiv:2505.09388): Qwen2 with norms of queries and keys.
namespace xgrad::pretrained::detail {

const FamilyInfo qwen3{.family = Family::qwen3,
                       .model_type = "qwen3",
                       .class_name = "Qwen3",
                       .is_causal = true,
                       .files = llama_files,
                       .body = llama_body,
                       .defaults =
                           [](Config& config) {
                             qwen_defaults(config);
                             config.head_dim = 128;
                             config.query_key_norm = QueryKeyNorm::head;
                           },
                       .fields =
                           [](Fields& fields, Config& config) {
                             llama_fields(fields, config);
                             fields.flag("attention_bias", config.query_bias);
                             config.output_bias = config.query_bias;
                             qwen_window_fields(fields, config);
                           }};

}  // namespace xgrad::pretrained::detail
