
#include "../../base/detail/text/json_tree.hpp"
#include "../detail/config/rotary_fields.hpp"
#include "../detail/family.hpp"

// Llama (Touvron et al. 2023, arXiv:2302.13971): norms by the mean square, rotary positions, a gated
// feed-forward network, from its second version on fewer heads of keys and values.
namespace xgrad::pretrained::detail {

void llama_defaults(Config& config) {
  config.vocab_size = 32000;
  config.hidden_size = 4096;
  config.num_hidden_layers = config.num_attention_heads = 32;
  config.intermediate_size = 11008;
  config.max_position_embeddings = 2048;
  config.type_vocab_size = 0;
  config.hidden_act = Activation::silu;
  config.gated_mlp = config.rms_norm = true;
  config.query_bias = config.output_bias = config.mlp_bias = false;
  config.layer_norm_eps = 1e-6;
  config.rotary.emplace();
  config.tie_word_embeddings = false;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  config.pad_token_id.reset();
}

void llama_fields(Fields& fields, Config& config) {
  fields.size("hidden_size", config.hidden_size);
  fields.size("intermediate_size", config.intermediate_size);
  fields.size("num_hidden_layers", config.num_hidden_layers, 0);
  fields.size("num_attention_heads", config.num_attention_heads);
  if (fields.json() != nullptr && fields.json()->is_null("num_key_value_heads"))
    config.num_key_value_heads = 0;
  if (const auto heads = fields.found("num_key_value_heads"))
    config.num_key_value_heads = static_cast<std::size_t>(heads->integer(1, 1 << 20));
  fields.put("num_key_value_heads", std::to_string(config.key_value_heads()));
  head_dim_field(fields, config);
  fields.size("max_position_embeddings", config.max_position_embeddings);
  fields.choice("hidden_act", config.hidden_act, activation_names());
  fields.number("rms_norm_eps", config.layer_norm_eps);
  fields.probability("attention_dropout", config.attention_probs_dropout_prob);
  rotary_fields(fields, config.max_position_embeddings, *config.rotary);
  write_rotary(fields, *config.rotary);
}

void llama_gguf_fields(const GgufFields& file, xgrad::detail::JsonTree& config) {
  const std::int64_t hidden = file.size("embedding_length"), heads = file.size("attention.head_count");
  const std::int64_t head = file.size_or("attention.key_length", hidden / heads);
  for (const char* const key : {"attention.value_length", "rope.dimension_count"}) {
    if (file.size_or(key, head) != head) file.at(key).refuse("the size of a head, " + std::to_string(head));
  }
  config.update({{"max_position_embeddings", file.size("context_length")},
                 {"hidden_size", hidden},
                 {"intermediate_size", file.size("feed_forward_length")},
                 {"num_hidden_layers", file.layers()},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads", file.size_or("attention.head_count_kv", heads)},
                 {"head_dim", head},
                 {"rms_norm_eps", file.at("attention.layer_norm_rms_epsilon").number()},
                 {"rope_parameters", file.rotary(static_cast<std::size_t>(head))}});
}

const FamilyInfo llama{.family = Family::llama,
                       .model_type = "llama",
                       .class_name = "Llama",
                       .is_causal = true,
                       .files = llama_files,
                       .body = llama_body,
                       .gguf_names = llama_in_gguf,
                       .gguf_has_pairs = true,
                       .defaults =
                           [](Config& config) {
                             llama_defaults(config);
                             config.bos_token_id = 1;
                             config.eos_token_ids = {2};
                           },
                       .fields =
                           [](Fields& fields, Config& config) {
                             llama_fields(fields, config);
                             fields.flag("attention_bias", config.query_bias);
                             config.output_bias = config.query_bias;
                             fields.flag("mlp_bias", config.mlp_bias);
                             fields.must_be("pretraining_tp", 1.0, "layers in parts are not supported");
                             fields.must_be("rope_interleaved", false,
                                            "transformers rotates halves of heads");
                             fields.ignore({"is_llama_config"});
                           },
                       .gguf_fields =
                           [](const GgufFields& file, xgrad::detail::JsonTree& config) {
                             llama_gguf_fields(file, config);
                             config["attention_bias"] = file.has_tensor("blk.0.attn_q.bias");
                             config["mlp_bias"] = file.has_tensor("blk.0.ffn_up.bias");
                           }};

}  // namespace xgrad::pretrained::detail
