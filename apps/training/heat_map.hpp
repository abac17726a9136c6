#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include <xgrad/graph/variable.hpp>

namespace apps {

/// Prints the attention weights of one word of the first sentence, a line for each head of each layer, as
/// numbers and shades of grey. `weights` has an array (batch, heads, queries, keys) for each layer.
void print_attention_from(std::ostream& out, const std::vector<xgrad::Variable<float>>& weights,
                          std::size_t query, const std::vector<std::string>& words);

}  // namespace apps
