#include "../detail/config/rotary_fields.hpp"
#include "../detail/family.hpp"

// Jina Embeddings v3 (Sturua et al. 2024, arXiv:2409.10173): XLM-RoBERTa's blocks and heads with rotary
// positions.
namespace xgrad::pretrained::detail {
namespace {

constexpr NamedPart jina_block[]{{BlockPart::query, "self_attn.q_proj"},
                                 {BlockPart::key, "self_attn.k_proj"},
                                 {BlockPart::value, "self_attn.v_proj"},
                                 {BlockPart::out, "self_attn.o_proj"},
                                 {BlockPart::attention_norm, "post_attention_layernorm"},
                                 {BlockPart::up, "mlp.fc1"},
                                 {BlockPart::down, "mlp.fc2"},
                                 {BlockPart::feed_forward_norm, "post_mlp_layernorm"}};

constexpr StoredAs jina_stored_as[]{
    {"emb_ln", {"embeddings.LayerNorm"}},
    {"encoder.layers.*.mixer.Wqkv",
     {"layers.*.self_attn.q_proj", "layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj"}},
    {"encoder.layers.*.mixer.out_proj", {"layers.*.self_attn.o_proj"}},
    {"encoder.layers.*.mlp.fc1", {"layers.*.mlp.fc1"}},
    {"encoder.layers.*.mlp.fc2", {"layers.*.mlp.fc2"}},
    {"encoder.layers.*.norm1", {"layers.*.post_attention_layernorm"}},
    {"encoder.layers.*.norm2", {"layers.*.post_mlp_layernorm"}}};

constexpr Spelling jina_spellings[]{{"rope_theta", "rotary_emb_base"}};

}  // namespace

const FamilyInfo jina_embeddings_v3{
    .family = Family::jina_embeddings_v3,
    .model_type = "jina_embeddings_v3",
    .class_name = "JinaEmbeddingsV3",
    .files = {.prefix = "roberta.", .stored_as = jina_stored_as},
    .body = bert_body_of("layers.", jina_block),
    .other_fields = jina_spellings,
    .defaults =
        [](Config& config) {
          config.vocab_size = 250002;
          config.hidden_size = 1024;
          config.num_hidden_layers = 24;
          config.num_attention_heads = 16;
          config.intermediate_size = 4096;
          config.max_position_embeddings = 8194;
          config.type_vocab_size = 1;
          config.pad_token_id = 1;
          config.layer_norm_eps = 1e-5;
          config.rotary = {.theta = 20000};
        },
    .fields =
        [](Fields& fields, Config& config) {
          bert_fields(fields, config);
          rotary_fields(fields, config.max_position_embeddings, *config.rotary);
          fields.must_be("position_embedding_type", "rotary", "learned positions are not supported");
          fields.must_be_null("lora_adaptations", "adapters of tasks are not supported");
          // of adapters, of kernels, and of other outputs
          fields.ignore({"emb_pooler", "load_trained_adapters", "lora_alpha", "lora_dropout_p",
                         "lora_main_params_trainable", "lora_rank", "matryoshka_dimensions",
                         "task_instructions", "truncate_dim", "use_flash_attn", "use_reentrant"});
        },
    .pooler = "pooler.dense",
    .prediction = dense_prediction,
    .prediction_bias = "lm_head.bias",
    .decoder = "lm_head.decoder.weight",
    .sequences = [](const Config& config) { return dense_sequences(config, Activation::tanh); },
    .tokens = plain_tokens,
    .answers = plain_answers};

}  // namespace xgrad::pretrained::detail
