#pragma once

#include <optional>
#include <vector>

#include "../../base/random.hpp"
#include "../attention/multi_head_attention.hpp"

namespace xgrad::detail {

/// make_layer(i) for i from 0 to count - 1; all have the numbers of the first if so initialized.
template <class MakeLayer>
auto layer_stack(std::size_t count, InitialWeights initial, const MakeLayer& make_layer) {
  std::vector<decltype(make_layer(count))> layers;
  Generator unused;
  for (std::size_t i = 0; i < count; ++i) {
    std::optional<UseGenerator> use;
    const bool copies = i > 0 && initial == InitialWeights::pytorch;
    if (copies) use.emplace(unused);  // what is drawn is not kept
    layers.push_back(make_layer(i));
    if (copies) layers.back().load_state_dict(layers.front().state_dict());
  }
  return layers;
}

}  // namespace xgrad::detail
