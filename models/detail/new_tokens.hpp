#pragma once

#include <optional>
#include <span>

#include "../attention/key_value_cache.hpp"

namespace xgrad::detail {

/// Throws GraphError except under NoGrad, and ShapeError in the name of `model` unless tokens (rows) are new
/// ones of sequences, at least one of each, by which none gets longer than max_length.
template <class T>
void check_new_tokens(const char* model, const Ids& tokens, std::span<const std::size_t> lengths,
                      std::span<const KeyValueCache<T>> caches, std::optional<std::size_t> max_length);

/// (rows), the positions of new tokens in their sequences.
template <class T>
Ids new_positions(std::span<const std::size_t> lengths, std::span<const KeyValueCache<T>> caches);

/// Of hidden states (rows, size) of new tokens the last of each sequence, (sequences, size).
template <class T>
Variable<T> last_of_each(const Variable<T>& hidden, std::span<const std::size_t> lengths);

}  // namespace xgrad::detail
