#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Writes or reads elements at positions given by ids or a mask. Sums are computed in the order of the ids, so
// results have the same bits for any number of threads. Errors: IndexError for a missing axis or element of
// x, ShapeError for incompatible shapes.

namespace xgrad {

/// x with y[index[i, j, k], j, k] += src[i, j, k] for dim 0, and so on, for every element of index, which is
/// at most as long as src along every axis, and as x along all but `dim`. dx = dy, dsrc = dy gathered, 0 for
/// elements of src beyond index. https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html
template <class T>
Variable<T> scatter_add(const Variable<T>& x, Int dim, const Ids& index, const Variable<T>& src);
/// Ids are integers: xt::cast<std::int64_t>(index).
template <class T, detail::NoIds E>
Variable<T> scatter_add(const Variable<T>& x, Int dim, const E& index, const Variable<T>& src) = delete;

/// x with slice i of source along `dim` added to slice index[i]; index is (N) or (), and source has the shape
/// of x except for the length N. dx = dy, dsource = the slices of dy.
/// https://pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html
template <class T>
Variable<T> index_add(const Variable<T>& x, Int dim, const Ids& index, const Variable<T>& source);
/// Ids are integers: xt::cast<std::int64_t>(index).
template <class T, detail::NoIds E>
Variable<T> index_add(const Variable<T>& x, Int dim, const E& index, const Variable<T>& source) = delete;

/// A list of ids, one for each of the leading axes. Arrays of floating-point numbers are none.
class IndexArrays {
 public:
  class Item {
   public:
    Item(Ids ids) : ids_(std::move(ids)) {}
    Item(std::initializer_list<std::int64_t> ids) : ids_(ids) {}
    template <detail::IdsExpression E>
    Item(const E& ids) : ids_(ids) {}
    Item(std::initializer_list<bool> mask) = delete;
    template <detail::NoIds E>
    Item(const E& ids) = delete;

   private:
    friend class IndexArrays;
    Ids ids_;
  };

  IndexArrays(std::initializer_list<Item> items) {
    for (const Item& item : items) arrays_.push_back(item.ids_);
  }
  IndexArrays(std::vector<Ids> arrays) : arrays_(std::move(arrays)) {}

  const std::vector<Ids>& arrays() const& { return arrays_; }
  std::vector<Ids> arrays() && { return std::move(arrays_); }

 private:
  std::vector<Ids> arrays_;
};

struct IndexPutOptions {
  detail::ByName by_name = {};
  bool accumulate = false;  ///< add the values to x instead of replacing its elements
};

/// NumPy's x[indices[0], indices[1], ...] = values, or += values to accumulate. The ids, which may be
/// negative, broadcast to one shape, and values to that shape followed by the remaining axes of x. dx = dy, 0
/// for replaced elements; dvalues = the elements of dy. If several values have one position, the last one is
/// stored, and only it gets a gradient.
/// https://pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html
template <class T>
Variable<T> index_put(const Variable<T>& x, const IndexArrays& indices, const Variable<T>& values,
                      IndexPutOptions options = {});

/// x with y[index[i, j, k], j, k] = src[i, j, k] for dim 0, and so on, or with one value there; shapes as for
/// scatter_add. dx = dy, 0 for replaced elements; dsrc = the elements of dy. If several elements have one
/// position, the last one is stored, and only it gets a gradient.
/// https://pytorch.org/docs/stable/generated/torch.scatter.html
template <class T>
Variable<T> scatter(const Variable<T>& x, Int dim, const Ids& index, const Variable<T>& src);
template <class T>
Variable<T> scatter(const Variable<T>& x, Int dim, const Ids& index, std::type_identity_t<T> value);
/// Ids are integers: xt::cast<std::int64_t>(index).
template <class T, detail::NoIds E, class S>
Variable<T> scatter(const Variable<T>& x, Int dim, const E& index, const S& src) = delete;

/// What scatter_reduce makes of the elements with one position.
enum class ScatterReduction { sum, prod, mean, amax, amin };

struct ScatterReduceOptions {
  detail::ByName by_name = {};
  bool include_self = true;  ///< also of the element of x
};

/// scatter with the sum, product, mean, maximum or minimum of all elements with one position; x elsewhere.
/// The gradient is that of sum, prod, mean, amax and amin: equal extremes share it evenly.
/// https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html
template <class T>
Variable<T> scatter_reduce(const Variable<T>& x, Int dim, const Ids& index, const Variable<T>& src,
                           ScatterReduction reduce, ScatterReduceOptions options = {});
/// Ids are integers: xt::cast<std::int64_t>(index).
template <class T, detail::NoIds E>
Variable<T> scatter_reduce(const Variable<T>& x, Int dim, const E& index, const Variable<T>& src,
                           ScatterReduction reduce, ScatterReduceOptions options = {}) = delete;

/// Elements of x where mask is true, in row-major order, as (N); x and mask broadcast. dx = dy there, 0
/// elsewhere. https://pytorch.org/docs/stable/generated/torch.masked_select.html
template <class T>
Variable<T> masked_select(const Variable<T>& x, const Mask& mask);
/// A mask is of bool: compare the numbers.
template <class T, detail::NoMask E>
Variable<T> masked_select(const Variable<T>& x, const E& mask) = delete;

/// y[..., c] = 1 where c is the id, else 0; the default of num_classes is the largest id + 1. Throws
/// IndexError for an id out of range, ValueError for num_classes below 1 and for the default without ids.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html
[[nodiscard]] Ids one_hot(const Ids& ids, Int num_classes = -1);
/// Ids are integers: xt::cast<std::int64_t>(ids).
template <detail::NoIds E>
Ids one_hot(const E& ids, Int num_classes = -1) = delete;

namespace ops {

inline constexpr Op index_put("index_put", {"x", "values"}, {"rows", "accumulate"});
inline constexpr Op scatter_add("scatter_add", {"x", "src"}, {"dim", "index"});
inline constexpr Op scatter_reduce("scatter_reduce", {"x", "src"}, {"dim", "index", "reduce"});
inline constexpr Op index_add("index_add", {"x", "source"}, {"dim", "index"});

}  // namespace ops
}  // namespace xgrad
