#include "../../base/error.hpp"
#include "../detail/family.hpp"

namespace xgrad::pretrained::detail {

const std::vector<const FamilyInfo*>& all_families() {
  static const std::vector<const FamilyInfo*> all{
      &albert,  &bert,       &camembert, &deberta,    &deberta_v2,         &distilbert,
      &electra, &eurobert,   &gpt2,      &gte,        &jina_embeddings_v3, &llama,
      &mistral, &modernbert, &mpnet,     &gte_new,    &nomic_bert,         &qwen2,
      &qwen3,   &roberta,    &t5,        &xlm_roberta};
  return all;
}

const FamilyInfo& info_of(Family family) {
  for (const FamilyInfo* const one : all_families())
    if (one->family == family) return *one;
  throw ValueError("there is no such family");
}

std::size_t first_position(const Config& config) {
  if (!info_of(config.model_type).body.positions_after_padding) return 0;
  return static_cast<std::size_t>(config.pad_token_id.value_or(0)) + 1;
}

const Names<Activation>& activation_names() {
  static const Names<Activation> names{{"gelu", Activation::gelu},
                                       {"gelu_new", Activation::gelu_tanh},
                                       {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                       {"gelu_python", Activation::gelu},
                                       {"gelu_fast", Activation::gelu_fast},
                                       {"relu", Activation::relu},
                                       {"silu", Activation::silu},
                                       {"swish", Activation::silu},
                                       {"tanh", Activation::tanh}};
  return names;
}

}  // namespace xgrad::pretrained::detail
