
#include "../../base/detail/text/json_tree.hpp"
#include "../detail/family.hpp"

// GPT-2 (Radford et al. 2019): learned positions, LayerNorm in front, an output tied to the words. Its files
// have queries, keys and values in one matrix, and all matrices of layers (in, out).
namespace xgrad::pretrained::detail {
namespace {

constexpr StoredAs gpt2_stored_as[]{
    {"h.*.attn.c_attn", {"h.*.attn.q_proj", "h.*.attn.k_proj", "h.*.attn.v_proj"}, true},
    {"h.*.attn.c_proj", {"h.*.attn.c_proj"}, true},
    {"h.*.mlp.c_fc", {"h.*.mlp.c_fc"}, true},
    {"h.*.mlp.c_proj", {"h.*.mlp.c_proj"}, true}};

constexpr StoredAs gpt2_in_gguf[]{
    {"token_embd", {"wte"}},
    {"position_embd", {"wpe"}},
    {"output_norm", {"ln_f"}},
    {"output", {"lm_head"}},
    {"blk.*.attn_norm", {"h.*.ln_1"}},
    {"blk.*.attn_qkv", {"h.*.attn.q_proj", "h.*.attn.k_proj", "h.*.attn.v_proj"}},
    {"blk.*.attn_output", {"h.*.attn.c_proj"}},
    {"blk.*.ffn_norm", {"h.*.ln_2"}},
    {"blk.*.ffn_up", {"h.*.mlp.c_fc"}},
    {"blk.*.ffn_down", {"h.*.mlp.c_proj"}}};

/// The causal mask, and the number that it wrote.
constexpr const char* gpt2_buffers[]{".attn.bias", ".attn.masked_bias"};

constexpr NamedPart gpt2_block[]{{BlockPart::attention_norm, "ln_1"}, {BlockPart::query, "attn.q_proj"},
                                 {BlockPart::key, "attn.k_proj"},     {BlockPart::value, "attn.v_proj"},
                                 {BlockPart::out, "attn.c_proj"},     {BlockPart::feed_forward_norm, "ln_2"},
                                 {BlockPart::up, "mlp.c_fc"},         {BlockPart::down, "mlp.c_proj"}};
constexpr BodyOptions gpt2_body{.words = "wte",
                                .positions = "wpe",
                                .layers = "h.",
                                .block = gpt2_block,
                                .last_norm = "ln_f",
                                .residual = Residual::pre_norm};

/// The names of other families, which its config class takes, too.
constexpr Spelling gpt2_spellings[]{{"n_embd", "hidden_size"},
                                    {"n_layer", "num_hidden_layers"},
                                    {"n_head", "num_attention_heads"},
                                    {"n_positions", "max_position_embeddings"}};

void gpt2_fields(Fields& fields, Config& config) {
  fields.size("n_positions", config.max_position_embeddings);
  fields.size("n_embd", config.hidden_size);
  fields.size("n_layer", config.num_hidden_layers, 0);
  fields.size("n_head", config.num_attention_heads);
  if (fields.json() != nullptr) config.intermediate_size = 4 * config.hidden_size;
  if (config.intermediate_size == 4 * config.hidden_size) {
    if (const auto inner = fields.found("n_inner"))
      config.intermediate_size = static_cast<std::size_t>(inner->integer(1, 1 << 24));
    fields.put("n_inner", "null");
  } else {
    fields.size("n_inner", config.intermediate_size);
  }
  fields.choice("activation_function", config.hidden_act, activation_names());
  fields.number("layer_norm_epsilon", config.layer_norm_eps);
  if (!config.embedding_dropout) config.embedding_dropout = config.hidden_dropout_prob;
  fields.probability("embd_pdrop", *config.embedding_dropout);
  fields.probability("attn_pdrop", config.attention_probs_dropout_prob);
  fields.probability("resid_pdrop", config.hidden_dropout_prob);
  fields.flag("scale_attn_weights", config.scale_attention);
  fields.flag("scale_attn_by_inverse_layer_idx", config.scale_attention_by_layer);
  fields.must_be("n_special", 0.0, "tokens beside the vocabulary are not supported");
  // The order of rounding in half precision, the head of multiple choices, the length of old masks, and an
  // option of old programs.
  fields.ignore({"reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj", "n_ctx",
                 "predict_special_tokens"});
}

void gpt2_gguf_fields(const GgufFields& file, xgrad::detail::JsonTree& config) {
  config.update({{"n_positions", file.size("context_length")},
                 {"n_embd", file.size("embedding_length")},
                 {"n_inner", file.size("feed_forward_length")},
                 {"n_layer", file.layers()},
                 {"n_head", file.size("attention.head_count")},
                 {"layer_norm_epsilon", file.at("attention.layer_norm_epsilon").number()}});
}

}  // namespace

const FamilyInfo gpt2{
    .family = Family::gpt2,
    .model_type = "gpt2",
    .class_name = "GPT2",
    .is_causal = true,
    .language_model = "LMHeadModel",
    .files = {.prefix = "transformer.", .stored_as = gpt2_stored_as, .buffers = gpt2_buffers},
    .body = gpt2_body,
    .other_fields = gpt2_spellings,
    .gguf_names = gpt2_in_gguf,
    .defaults =
        [](Config& config) {
          config.vocab_size = 50257;
          config.max_position_embeddings = 1024;
          config.type_vocab_size = 0;
          config.hidden_act = Activation::gelu_tanh;
          config.padding_row = false;
          config.layer_norm_eps = 1e-5;
          config.embedding_dropout = 0.1;
          config.pad_token_id.reset();
          config.bos_token_id = 50256;
          config.eos_token_ids = {50256};
        },
    .fields = gpt2_fields,
    .gguf_fields = gpt2_gguf_fields};

}  // namespace xgrad::pretrained::detail
