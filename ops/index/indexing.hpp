#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// Element `index` of x along `dim`; the result lacks that axis, and a negative index counts from the end. dx
/// = dy there, 0 elsewhere. Throws IndexError for an index out of range.
/// https://pytorch.org/docs/stable/generated/torch.select.html
template <class T>
Variable<T> select(const Variable<T>& x, Int dim, Int index);

/// Python's x[start:end:step] along `dim`: negative bounds count from the end, bounds out of range are
/// clamped. Throws ValueError for a step below 1.
template <class T>
Variable<T> slice(const Variable<T>& x, Int dim, Int start,
                  Int end = std::numeric_limits<std::ptrdiff_t>::max(), Int step = 1);

/// x[start : start + length] along `dim`; a negative start counts from the end. Throws IndexError if the
/// range exceeds the axis. https://pytorch.org/docs/stable/generated/torch.narrow.html
template <class T>
Variable<T> narrow(const Variable<T>& x, Int dim, Int start, Int length);

/// Elements of x at the indices, ids (N) or (), along `dim`; gradients of repeated elements add up in dx. For
/// a scalar, index 0 returns the scalar. https://pytorch.org/docs/stable/generated/torch.index_select.html
template <class T>
Variable<T> index_select(const Variable<T>& x, Int dim, const Ids& index);
/// Ids are integers: xt::cast<std::int64_t>(index).
template <class T, detail::NoIds E>
Variable<T> index_select(const Variable<T>& x, Int dim, const E& index) = delete;

/// y[i, j, k] = x[index[i, j, k], j, k] for dim 0, and so on; y has the shape of index, which may be longer
/// than x along `dim` only. Gradients of repeated elements add up in dx. A scalar counts as an array (1); an
/// index without elements may have any shape. https://pytorch.org/docs/stable/generated/torch.gather.html
template <class T>
Variable<T> gather(const Variable<T>& x, Int dim, const Ids& index);
/// Ids are integers: xt::cast<std::int64_t>(index).
template <class T, detail::NoIds E>
Variable<T> gather(const Variable<T>& x, Int dim, const E& index) = delete;

/// Each element of x along `dim`, repeated: as often as its number in repeats (n), or all as often as the
/// only one; without dim, those of x in row-major order. dx = dy, summed over the repetitions. Throws
/// ShapeError for another number of repeats, ValueError for a negative one.
/// https://pytorch.org/docs/stable/generated/torch.repeat_interleave.html
template <class T>
Variable<T> repeat_interleave(const Variable<T>& x, const Ids& repeats, std::optional<Int> dim = {});
template <class T, detail::Integer I>
Variable<T> repeat_interleave(const Variable<T>& x, I repeats, std::optional<Int> dim = {}) {
  return repeat_interleave(x, Ids(Shape{}, static_cast<std::ptrdiff_t>(Int(repeats))), dim);
}
/// Ids are integers: xt::cast<std::int64_t>(repeats).
template <class T, detail::NoIds E>
Variable<T> repeat_interleave(const Variable<T>& x, const E& repeats, std::optional<Int> dim = {}) = delete;

/// The indices of the elements that are true, or not 0, as rows (N, rank), in row-major order.
/// https://pytorch.org/docs/stable/generated/torch.nonzero.html
[[nodiscard]] Ids nonzero(const Mask& mask);
template <class T>
[[nodiscard]] Ids nonzero(const Variable<T>& x);

/// Python's start:end:step, as an argument of slice.
struct IndexRange {
  std::ptrdiff_t start = 0, end = std::numeric_limits<std::ptrdiff_t>::max(), step = 1;
};

/// Every `step`-th element of an axis in [start, end).
constexpr IndexRange range(Int start, Int end = IndexRange().end, Int step = 1) { return {start, end, step}; }

/// A whole axis.
inline constexpr IndexRange all;

/// An item of index(): an element, which removes the axis, or a range.
struct Index {
  Index(detail::Integer auto element) : range{static_cast<std::ptrdiff_t>(element)}, is_range(false) {}
  Index(IndexRange elements) : range(elements) {}

  IndexRange range;
  bool is_range = true;
};

/// NumPy's x[i, :, 1:3] as index(x, i, all, range(1, 3)): one item for each of the leading axes, an integer
/// as in select or a range as in slice, in one copy. Throws IndexError for more items than axes or an index
/// out of range, and ValueError for a step below 1. https://numpy.org/doc/stable/user/basics.indexing.html
template <class T>
Variable<T> index(const Variable<T>& x, const std::vector<Index>& items);
template <class T, std::convertible_to<Index>... I>
Variable<T> index(const Variable<T>& x, const I&... items) {
  return index(x, std::vector<Index>{items...});
}

namespace ops {

inline constexpr Op select("select", {"x"}, {"dim", "start", "end", "step"});
inline constexpr Op slice("slice", {"x"}, {"dim", "start", "end", "step"});
inline constexpr Op index("index", {"x"}, {"starts", "steps"});
inline constexpr Op index_select("index_select", {"x"}, {"dim", "index"});
inline constexpr Op gather("gather", {"x"}, {"dim", "index"});

}  // namespace ops
}  // namespace xgrad
