#include "../../base/error.hpp"
#include "../detail/family.hpp"

namespace xgrad::pretrained::detail {

const std::vector<const FamilyInfo*>& all_families() {
  static const std::vector<const FamilyInfo*> all{
      &albert,   &bert, &camembert,          &deberta,    &deberta_v2, &distilbert, &electra,
      &eurobert, &gte,  &jina_embeddings_v3, &modernbert, &mpnet,      &gte_new,    &nomic_bert,
      &roberta,  &t5,   &xlm_roberta};
  return all;
}

const FamilyInfo& info_of(Family family) {
  for (const FamilyInfo* const one : all_families())
    if (one->family == family) return *one;
  throw ValueError("there is no such family of encoders");
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
