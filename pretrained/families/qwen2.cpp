#include "../detail/causal_family.hpp"

// Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv:2407.10671): Llama with biases of queries, keys and values, and
// perhaps a window in its later layers.
namespace xgrad::pretrained::detail {

void qwen_window_fields(Fields& fields, CausalConfig& config) {
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
  if (types) {
    config.slides.clear();
    for (const Json& type : types->items()) {
      const bool slides = type.text() == "sliding_attention";
      if (!slides && type.text() != "full_attention") type.refuse("full_attention or sliding_attention");
      if (slides && !config.sliding_window)
        type.refuse("full_attention, as there is no sliding_window or use_sliding_window is false");
      config.slides.push_back(slides);
    }
    if (config.slides.size() != config.num_hidden_layers)
      types->refuse(std::to_string(config.num_hidden_layers) + " types, as num_hidden_layers says");
  }
  fields.put("sliding_window", config.sliding_window ? std::to_string(*config.sliding_window) : "null");
  std::string list;
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i)
    list += std::string(list.empty() ? "" : ", ") +
            (config.window(i) ? "\"sliding_attention\"" : "\"full_attention\"");
  fields.put("layer_types", "[" + list + "]");
}

const CausalFamilyInfo qwen2{.family = CausalFamily::qwen2,
                             .model_type = "qwen2",
                             .class_name = "Qwen2",
                             .gguf_names = llama_in_gguf,
                             .defaults =
                                 [](CausalConfig& config) {
                                   config.vocab_size = 151936;
                                   config.intermediate_size = 22016;
                                   config.num_key_value_heads = 32;
                                   config.max_position_embeddings = 32768;
                                   config.query_bias = true;
                                 },
                             .fields =
                                 [](Fields& fields, CausalConfig& config) {
                                   llama_fields(fields, config);
                                   qwen_window_fields(fields, config);
                                   fields.must_be("use_mrope", false, "texts alone are supported");
                                 },
                             .gguf_fields = llama_gguf_fields};

}  // namespace xgrad::pretrained::detail
