#include "../detail/family.hpp"

// Mistral (Jiang et al. 2023, arXiv:2310.06825): Llama whose layers see a window of the last tokens.
namespace xgrad::pretrained::detail {

const FamilyInfo mistral{
    .family = Family::mistral,
    .model_type = "mistral",
    .class_name = "Mistral",
    .is_causal = true,
    .files = llama_files,
    .body = llama_body,
    .defaults =
        [](Config& config) {
          llama_defaults(config);
          config.intermediate_size = 14336;
          config.num_key_value_heads = 8;
          config.max_position_embeddings = 131072;
          config.sliding_window = 4096;
          config.bos_token_id = 1;
          config.eos_token_ids = {2};
        },
    .fields =
        [](Fields& fields, Config& config) {
          llama_fields(fields, config);
          if (fields.json() != nullptr && fields.json()->is_null("sliding_window"))
            config.sliding_window.reset();
          if (const auto window = fields.found("sliding_window"))
            config.sliding_window = static_cast<std::size_t>(window->integer(1, 1 << 28));
          fields.put("sliding_window",
                     config.sliding_window ? std::to_string(*config.sliding_window) : "null");
        }};

}  // namespace xgrad::pretrained::detail
