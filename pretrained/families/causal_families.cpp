#include "../../base/error.hpp"
#include "../detail/causal_family.hpp"

namespace xgrad::pretrained::detail {

const std::vector<const CausalFamilyInfo*>& all_causal_families() {
  static const std::vector<const CausalFamilyInfo*> all{&gpt2, &llama, &mistral, &qwen2, &qwen3};
  return all;
}

const CausalFamilyInfo& info_of(CausalFamily family) {
  for (const CausalFamilyInfo* const one : all_causal_families())
    if (one->family == family) return *one;
  throw ValueError("there is no such family of decoders");
}

std::string prefix_of(CausalFamily family) { return info_of(family).files.prefix; }

}  // namespace xgrad::pretrained::detail
