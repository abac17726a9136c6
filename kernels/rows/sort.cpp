#include "sort.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "../../base/detail/bytes/bit_cast.hpp"
#include "../../base/detail/system/pieces.hpp"

namespace xgrad::kernels {

namespace {

/// An element as an integer in the same order, and its place: no two are equal, so that any way to sort is
/// stable.
struct DoubleItem {
  std::uint64_t key, index;

  bool operator<(const DoubleItem& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

std::uint64_t index_of(std::uint64_t item) { return item & 0xffffffff; }
std::uint64_t index_of(const DoubleItem& item) { return item.index; }

/// The bits of a number, of which those of negative ones are turned round; 0 is -0, and each nan is above
/// all.
template <typename Bits, typename T>
Bits ordered_bits(T x) {
  constexpr Bits sign = Bits{1} << (std::numeric_limits<Bits>::digits - 1);
  if (x != x) return std::numeric_limits<Bits>::max();
  const auto bits = bit_cast<Bits>(x + T{0});
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

/// A float and a place below 2^32 fit into one integer.
std::uint64_t item_of(float x, std::size_t index, bool descending) {
  const auto key = ordered_bits<std::uint32_t>(x);
  return std::uint64_t{descending ? ~key : key} << 32 | index;
}
DoubleItem item_of(double x, std::size_t index, bool descending) {
  const auto key = ordered_bits<std::uint64_t>(x);
  return {descending ? ~key : key, index};
}

/// The ids of one row, whose elements are `stride` apart.
template <typename T, typename Item>
void sort_row(const T* x, std::size_t n, std::size_t stride, std::size_t k, bool descending,
              std::vector<Item>& items, std::int64_t* ids) {
  for (std::size_t i = 0; i < n; ++i) items[i] = item_of(x[i * stride], i, descending);
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(k);
  if (k < n) std::nth_element(items.begin(), end, items.end());
  std::sort(items.begin(), end);
  for (std::size_t i = 0; i < k; ++i) ids[i * stride] = static_cast<std::int64_t>(index_of(items[i]));
}

/// Bound by bandwidth.
XGRAD_PARALLEL_KERNEL(first_of_column, cols, n,
                      (const T* x, const T* extreme, std::size_t n, std::size_t stride, std::int64_t* ids,
                       std::size_t cols),
                      (x, extreme, n, stride, ids, cols)) {
  for (std::size_t c = begin; c < end; ++c) ids[c] = 0;
  for (std::size_t i = n; i-- > 0;) {
    const T* const row = x + i * stride;
    for (std::size_t c = begin; c < end; ++c) {
      const bool both_nan = (row[c] != row[c]) & (extreme[c] != extreme[c]);
      const bool found = (row[c] == extreme[c]) | both_nan;
      ids[c] = found ? static_cast<std::int64_t>(i) : ids[c];
    }
  }
}

template <typename T>
std::int64_t first_of_row(const T* x, T extreme, std::size_t n) {
  const T* const found =
      extreme != extreme ? std::find_if(x, x + n, [](T v) { return v != v; }) : std::find(x, x + n, extreme);
  return found - x;
}

}  // namespace

template <typename T>
void first_index(const T* x, const T* extreme, std::size_t outer, std::size_t n, std::size_t inner,
                 std::int64_t* ids) {
  const auto find = [=](std::size_t begin, std::size_t end) {
    for (std::size_t o = begin; o < end; ++o) {
      if (inner == 1) {
        ids[o] = first_of_row(x + o * n, extreme[o], n);
      } else {
        first_of_column(x + o * n * inner, extreme + o * inner, n, inner, ids + o * inner, inner);
      }
    }
  };
  if (is_one_piece(n, inner)) return parallel_pieces(outer, n * inner, find);
  find(0, outer);
}

template <typename T>
void sorted_indices(const T* x, std::size_t outer, std::size_t n, std::size_t inner, std::size_t k,
                    bool descending, std::int64_t* ids) {
  constexpr std::size_t comparisons = 16;  // about, for an element, each as expensive as an addition
  parallel_pieces(outer * inner, comparisons * n, [=](std::size_t begin, std::size_t end) {
    std::vector<decltype(item_of(T{}, 0, false))> items(n);
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t o = row / inner, c = row % inner;
      sort_row(x + o * n * inner + c, n, inner, k, descending, items, ids + o * k * inner + c);
    }
  });
}

template <typename T>
void search_sorted(const T* sorted, std::size_t n, bool one_row, const T* values, std::size_t outer,
                   std::size_t m, bool right, std::int64_t* ids) {
  constexpr std::size_t search = 128;  // about, each step of which waits for the last
  parallel_pieces(outer * m, search, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const T *const row = sorted + (one_row ? 0 : i / m * n), value = values[i];
      const T* const found =
          right ? std::upper_bound(row, row + n, value, [](T v, T element) { return element > v; })
                : std::lower_bound(row, row + n, value, [](T element, T v) { return !(element >= v); });
      ids[i] = found - row;
    }
  });
}

#define XGRAD_INSTANTIATE(T)                                                                           \
  template void first_index(const T*, const T*, std::size_t, std::size_t, std::size_t, std::int64_t*); \
  template void search_sorted(const T*, std::size_t, bool, const T*, std::size_t, std::size_t, bool,   \
                              std::int64_t*);                                                          \
  template void sorted_indices(const T*, std::size_t, std::size_t, std::size_t, std::size_t, bool,     \
                               std::int64_t*);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::kernels
