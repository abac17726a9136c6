#include "../detail/config/config_file.hpp"
#include "../detail/family.hpp"

// Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv:2407.10671): Llama with biases of queries, keys and values, and
// perhaps a window in its later layers.
namespace xgrad::pretrained::detail {

void qwen_window_fields(Fields& fields, Config& config) {
  bool is_used = config.sliding_window.has_value();
  fields.flag("use_sliding_window", is_used);
  std::size_t window = config.sliding_window.value_or(4096), full_layers = 28;
  const bool is_null = fields.json() != nullptr && fields.json()->is_null("sliding_window");
  if (const auto found = fields.found("sliding_window"))
    window = static_cast<std::size_t>(found->integer(1, 1 << 28));
  if (const auto found = fields.found("max_window_layers"))
    full_layers = static_cast<std::size_t>(found->integer(0, 1 << 20));
  const auto types = fields.found("layer_types");
  if (fields.json() != nullptr) {
    config.sliding_window.reset();
    config.slides.clear();
    if (is_used && !is_null) config.sliding_window = window;
    for (std::size_t i = 0; i < config.num_hidden_layers; ++i) config.slides.push_back(i >= full_layers);
  }
  if (types) read_layer_types(*types, config);
  fields.put("sliding_window", config.sliding_window ? std::to_string(*config.sliding_window) : "null");
  write_layer_types(fields, config);
}

void qwen_defaults(Config& config) {
  llama_defaults(config);
  config.vocab_size = 151936;
  config.intermediate_size = 22016;
  config.num_key_value_heads = 32;
  config.max_position_embeddings = 32768;
}

const FamilyInfo qwen2{.family = Family::qwen2,
                       .model_type = "qwen2",
                       .class_name = "Qwen2",
                       .is_causal = true,
                       .files = llama_files,
                       .body = llama_body,
                       .gguf_names = llama_in_gguf,
                       .defaults =
                           [](Config& config) {
                             qwen_defaults(config);
                             config.query_bias = true;
                           },
                       .fields =
                           [](Fields& fields, Config& config) {
                             llama_fields(fields, config);
                             qwen_window_fields(fields, config);
                             fields.must_be("use_mrope", false, "texts alone are supported");
                           },
                       .gguf_fields = llama_gguf_fields};

}  // namespace xgrad::pretrained::detail
