#pragma once

#include <vector>

#include "../self_attention.hpp"

namespace xgrad::detail {

/// self_attention() within each of several sequences, stored one after the other in x (rows, in): the first
/// lengths[0] rows attend to each other, then the next lengths[1], and so on. The lengths, at least one, must
/// add up to the rows.
template <class T>
Variable<T> packed_self_attention(const Variable<T>& x, const Projection<std::type_identity_t<T>>& q,
                                  const Projection<std::type_identity_t<T>>& k,
                                  const Projection<std::type_identity_t<T>>& v,
                                  const std::vector<std::size_t>& lengths, AttentionOptions options);

}  // namespace xgrad::detail
