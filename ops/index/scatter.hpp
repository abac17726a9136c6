#pragma once

#include <vector>

#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// Elements put where ids or a mask say, or taken from there. Sums are made in the order of the ids, so
// results have the same bits for any number of threads. Errors: IndexError for an axis or an element that x
// does not have, ShapeError for shapes that do not fit.

namespace xgrad {

/// x with y[index[i, j, k], j, k] += src[i, j, k] for dim 0, and so on, for every place in index, which is
/// nowhere longer than src, nor than x but along `dim`. dx = dy, dsrc = dy gathered, 0 where index ends
/// before src. https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html
template <class T>
Variable<T> scatter_add(const Variable<T>& x, int dim, const Ids& index, const Variable<T>& src);

/// x with part i of source along `dim` added to part index[i]; index is (N) or (), and source has the shape
/// of x but for the length N. dx = dy, dsource = the parts of dy.
/// https://pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html
template <class T>
Variable<T> index_add(const Variable<T>& x, int dim, const Ids& index, const Variable<T>& source);

/// NumPy's x[indices[0], indices[1], ...] = values, or += values to accumulate. The ids, which may be
/// negative, broadcast to one shape, and values to that followed by the axes of x that have no ids. dx = dy,
/// 0 where it was replaced; dvalues = the elements of dy. Of several values for one place the last one stays,
/// and alone gets a gradient. https://pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html
template <class T>
Variable<T> index_put(const Variable<T>& x, const std::vector<Ids>& indices, const Variable<T>& values,
                      bool accumulate = false);

/// The elements where mask is true, in row-major order, as (N); x and mask broadcast. dx = dy there, 0
/// elsewhere. https://pytorch.org/docs/stable/generated/torch.masked_select.html
template <class T>
Variable<T> masked_select(const Variable<T>& x, const Mask& mask);

/// y[..., c] = 1 where c is the id, else 0; without num_classes there is one more than the largest id. Throws
/// IndexError for an id outside, ValueError for num_classes below 1 and where there are no ids to count.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html
Ids one_hot(const Ids& ids, std::ptrdiff_t num_classes = -1);

namespace ops {

inline constexpr Op index_put("index_put", {"x", "values"}, {"rows", "accumulate"});
inline constexpr Op scatter_add("scatter_add", {"x", "src"}, {"dim", "index"});
inline constexpr Op index_add("index_add", {"x", "source"}, {"dim", "index"});

}  // namespace ops
}  // namespace xgrad
