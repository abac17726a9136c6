#include "new_tokens.hpp"

#include <algorithm>
#include <numeric>

#include "../../base/error.hpp"
#include "../../graph/grad_mode.hpp"
#include "../../ops/index/indexing.hpp"

namespace xgrad::detail {

template <class T>
void check_new_tokens(const char* model, const Ids& tokens, std::span<const std::size_t> lengths,
                      std::span<const KeyValueCache<T>> caches, std::optional<std::size_t> max_length) {
  if (grad_enabled()) fail<GraphError>(model, ": caches keep no gradients: call it under NoGrad");
  std::size_t left = tokens.size();
  const bool are_parts = std::all_of(lengths.begin(), lengths.end(), [&](std::size_t length) {
    const bool fits = length > 0 && length <= left;
    left -= fits ? length : 0;
    return fits;
  });
  if (tokens.dimension() != 1 || tokens.size() == 0 || !are_parts || left > 0 ||
      lengths.size() != caches.size())
    fail<ShapeError>(model,
                     ": lengths must be those of tokens (rows), at least 1 each, one for each cache, got ",
                     lengths.size(), " lengths for ", caches.size(), " caches, and tokens ", tokens.shape());
  for (std::size_t i = 0; max_length && i < lengths.size(); ++i) {
    if (caches[i].length() + lengths[i] > *max_length)
      fail<ShapeError>(model, ": a sequence must have at most ", *max_length, " tokens, got ",
                       caches[i].length(), " and ", lengths[i], " more");
  }
}

template <class T>
Ids new_positions(std::span<const std::size_t> lengths, std::span<const KeyValueCache<T>> caches) {
  Ids positions = Ids::from_shape({std::accumulate(lengths.begin(), lengths.end(), std::size_t{0})});
  std::int64_t* first = positions.data();
  for (std::size_t i = 0; i < lengths.size(); first += lengths[i++])
    std::iota(first, first + lengths[i], static_cast<std::int64_t>(caches[i].length()));
  return positions;
}

template <class T>
Variable<T> last_of_each(const Variable<T>& hidden, std::span<const std::size_t> lengths) {
  if (hidden.shape(0) == lengths.size()) return hidden;
  Ids last = Ids::from_shape({lengths.size()});
  std::int64_t end = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    last(i) = (end += static_cast<std::int64_t>(lengths[i])) - 1;
  return index_select(hidden, 0, last);
}

#define XGRAD_INSTANTIATE(T)                                                                        \
  template void check_new_tokens<T>(const char*, const Ids&, std::span<const std::size_t>,          \
                                    std::span<const KeyValueCache<T>>, std::optional<std::size_t>); \
  template Ids new_positions<T>(std::span<const std::size_t>, std::span<const KeyValueCache<T>>);   \
  template Variable<T> last_of_each(const Variable<T>&, std::span<const std::size_t>);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
