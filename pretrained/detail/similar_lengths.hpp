#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

// Not installed: texts of similar length in one batch, which needs little padding.

namespace xgrad::pretrained::detail {

/// Calls f(indices) for batches of at most `batch_size` texts, the shortest first.
template <class F>
void for_each_batch(std::span<const std::size_t> lengths, std::size_t batch_size, const F& f) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return lengths[i]; });
  const std::span<const std::size_t> all(order);
  for (std::size_t begin = 0; begin < all.size(); begin += batch_size)
    f(all.subspan(begin, std::min(batch_size, all.size() - begin)));
}

}  // namespace xgrad::pretrained::detail
