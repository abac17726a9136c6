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

const Names<HiddenAct>& activation_names() {
  static const Names<HiddenAct> names{{"gelu", HiddenAct::gelu},
                                      {"gelu_new", HiddenAct::gelu_tanh},
                                      {"gelu_pytorch_tanh", HiddenAct::gelu_tanh},
                                      {"gelu_python", HiddenAct::gelu},
                                      {"gelu_fast", HiddenAct::gelu_fast},
                                      {"relu", HiddenAct::relu},
                                      {"silu", HiddenAct::silu},
                                      {"swish", HiddenAct::silu},
                                      {"tanh", HiddenAct::tanh}};
  return names;
}

}  // namespace xgrad::pretrained::detail
