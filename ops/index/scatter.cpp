#include "scatter.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "../../graph/record.hpp"
#include "../../kernels/index/axes.hpp"
#include "../../kernels/index/embedding.hpp"
#include "../../kernels/index/gather.hpp"
#include "../linalg/detail/matrices.hpp"
#include "../pointwise/arithmetic.hpp"
#include "../pointwise/broadcast.hpp"
#include "../reduce/detail/middle_axis.hpp"
#include "../shape/shapes.hpp"
#include "detail/indices.hpp"
#include "indexing.hpp"
#include "masked_fill.hpp"

namespace xgrad {
namespace ops {

constexpr Op index_put_grad("index_put_grad", {"x"}, {"rows"});

}  // namespace ops

namespace {

using detail::MiddleAxis;

/// A scalar counts as an array (1).
Shape with_an_axis(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

/// The rows of x (rows, inner) that values are put into.
struct Places {
  Ids rows;      // of each value
  Shape values;  // their shape, with the last axes of x
  std::size_t inner;
  bool accumulate;
  Mask hit = {}, lost = {};  // unless they accumulate: which rows are replaced, and which values, again
};

/// Of each value, the row of x that it is put into: ids of the first axes, counted as one.
Places places_of(const Shape& shape, const std::vector<Ids>& indices, bool accumulate) {
  Shape common;
  for (const Ids& ids : indices) {
    const auto both = detail::common_shape(common, ids.shape());
    if (!both) {
      detail::fail<ShapeError>("index_put: indices must broadcast, got ", common, " and ", ids.shape());
    }
    common = *both;
  }
  Places places{Ids(common, 0), common, 1, accumulate};
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    const Ids ids = xt::broadcast(indices[axis], common);
    const auto length = static_cast<std::int64_t>(shape[axis]);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t id = ids.data()[i];
      if (id < -length || id >= length) {
        detail::fail<IndexError>("index_put: indices must be in [", -length, ", ", length, ") for axis ",
                                 axis, " of x ", shape, ", got ", id);
      }
      std::int64_t& row = places.rows.data()[i];
      row = row * length + (id < 0 ? id + length : id);
    }
  }
  for (std::size_t axis = indices.size(); axis < shape.size(); ++axis) {
    places.inner *= shape[axis];
    places.values.push_back(shape[axis]);
  }
  if (accumulate) return places;
  // as long as the arrays, with axes of length 1 for those without ids
  Shape hit(shape.size(), 1), lost(places.values.size(), 1);
  std::copy_n(shape.begin(), indices.size(), hit.begin());
  std::copy(common.begin(), common.end(), lost.begin());
  places.hit = Mask(hit, false);
  places.lost = Mask(lost, false);
  for (std::size_t i = places.rows.size(); i-- > 0;) {
    bool& before = places.hit.data()[places.rows.data()[i]];
    places.lost.data()[i] = std::exchange(before, true);
  }
  return places;
}

template <class T>
Variable<T> put(const Variable<T>& x, const Places& places, const Variable<T>& values);

/// The values in the rows of x. Its gradient adds to the rows of zeros.
template <class T>
Variable<T> values_in(const Variable<T>& x, const Places& places) {
  Variable<T> values = detail::empty<T>(places.values);
  kernels::gather_rows<T>(detail::data(x), places.rows.data(),
                          {detail::data(values), places.rows.size(), places.inner});
  return record<T>(ops::index_put_grad, std::move(values), Inputs(x), Attributes(places.rows), Saved(places),
                   [](Variable<T> dvalues, Needs needs, const Places& places) -> Grads<T, 1> {
                     Places added = places;
                     added.accumulate = true;
                     return {put(Variable<T>(Array<T>(needs.shape(0), T{0})), added, dvalues)};
                   });
}

/// x with the values, of the shape that `places` says, in their rows.
template <class T>
Variable<T> put(const Variable<T>& x, const Places& places, const Variable<T>& values) {
  Variable<T> y = detail::copy_of(x);
  const T* from = detail::data(values);
  T* const to = detail::data(y);
  if (places.accumulate) {
    kernels::scatter_add_rows<T>({from, places.rows.size(), places.inner}, places.rows.data(), to);
  } else {
    for (const std::int64_t row : places.rows.storage()) {
      std::copy_n(from, places.inner, to + static_cast<std::size_t>(row) * places.inner);
      from += places.inner;
    }
  }
  return record<T>(ops::index_put, std::move(y), Inputs(x, values),
                   Attributes(places.rows, places.accumulate), Saved(places),
                   [](Variable<T> dy, Needs needs, const Places& places) -> Grads<T, 2> {
                     Grads<T, 2> grads;
                     if (needs[0]) grads[0] = places.accumulate ? dy : masked_fill(dy, places.hit, 0);
                     if (!needs[1]) return grads;
                     grads[1] = values_in(dy, places);
                     if (!places.accumulate) grads[1] = masked_fill(grads[1], places.lost, 0);
                     return grads;
                   });
}

/// The elements of src that the index has a position for. Throws ShapeError, in the name of `op`, unless the
/// index, if it has elements, fits between x and src.
template <class T>
Variable<T> scattered_part(const char* op, const MiddleAxis& m, const Shape& x, const Ids& index,
                           const Variable<T>& src) {
  if (index.size() == 0) return src;
  const Shape whole = with_an_axis(x), part = with_an_axis(index.shape()), given = with_an_axis(src.shape());
  bool fits = part.size() == whole.size() && part.size() == given.size();
  for (std::size_t k = 0; fits && k < part.size(); ++k)
    fits = part[k] <= given[k] && (k == m.axis || part[k] <= whole[k]);
  if (!fits) {
    detail::fail<ShapeError>(op,
                             ": index must be no longer than src, and no longer than x except along axis ",
                             m.axis, ", got x ", x, ", index ", index.shape(), " and src ", src.shape());
  }
  Variable<T> y = src;
  for (std::size_t k = 0; k < part.size(); ++k) {
    if (part[k] != given[k]) y = narrow(y, static_cast<int>(k), 0, static_cast<std::ptrdiff_t>(part[k]));
  }
  return y;
}

/// The strides of x: along the axis that ids count, and of the other axes.
struct StridesOfIds {
  StridesOfIds(const MiddleAxis& m, const Shape& x) : others(detail::row_major_strides(with_an_axis(x))) {
    along = std::exchange(others[m.axis], 0);
  }

  detail::Strides others;
  std::ptrdiff_t along;
};

/// Of each id, the position in x in row-major order. Throws as check_index does.
Ids positions_of(const char* op, const MiddleAxis& m, const Shape& x, const Ids& index) {
  detail::check_index(op, index, m.length);
  Ids found = Ids::from_shape({index.size()});
  const StridesOfIds strides(m, x);
  const auto axes = kernels::merge_axes<1>(with_an_axis(index.shape()), {strides.others}, 1);
  const std::size_t last = axes.rank - 1, n = axes.size(last);
  kernels::for_each_outer(axes, 1, [&](const auto& offset, std::size_t number) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = number * n + i;
      found.data()[at] = offset[0] + static_cast<std::ptrdiff_t>(i) * axes.stride(0, last) +
                         static_cast<std::ptrdiff_t>(index.data()[at]) * strides.along;
    }
  });
  return found;
}

/// The values (N) at these positions of x.
template <class T>
Variable<T> put_at(const Variable<T>& x, const Ids& at, const Variable<T>& values) {
  const Shape whole{x.size()};
  return reshape(put(reshape(x, whole), places_of(whole, {at}, false), values), x.shape());
}

/// How many ids have each position, of x's shape.
Ids counts_of(const Shape& shape, const Ids& at) {
  Ids counts(shape, 0);
  for (const std::int64_t position : at.storage()) counts.data()[position] += 1;
  return counts;
}

/// The products of the values (N) with each position, and of x there if it is included: neighbours are
/// multiplied until one is left, so that derivatives of any order are right beside zeros.
template <class T>
Variable<T> scattered_products(const Variable<T>& x, const Ids& at, const Variable<T>& values,
                               bool include_self) {
  const std::size_t n = at.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return at.data()[a] < at.data()[b]; });
  std::vector<std::int64_t> members, hit;  // what is multiplied, in order of its position
  std::vector<std::size_t> sizes;          // how many for each position
  for (const std::size_t i : order) {
    const std::int64_t position = at.data()[i];
    if (hit.empty() || hit.back() != position) {
      hit.push_back(position);
      sizes.push_back(0);
      if (include_self) {
        members.push_back(static_cast<std::int64_t>(n) + position);
        ++sizes.back();
      }
    }
    members.push_back(static_cast<std::int64_t>(i));
    ++sizes.back();
  }
  const auto ids = [](const std::vector<std::int64_t>& list) {
    Ids y = Ids::from_shape({list.size()});
    std::copy(list.begin(), list.end(), y.data());
    return y;
  };
  const Variable<T> one(Array<T>(Shape{1}, T{1}));
  Variable<T> factors = index_select(cat({values, reshape(x, x.size())}), 0, ids(members));
  while (factors.size() > hit.size()) {
    std::vector<std::int64_t> left, right;
    const auto missing = static_cast<std::int64_t>(factors.size());
    std::int64_t first = 0;
    for (std::size_t& size : sizes) {
      const std::int64_t end = first + static_cast<std::int64_t>(size);
      for (; first < end; first += 2) {
        left.push_back(first);
        right.push_back(first + 1 < end ? first + 1 : missing);
      }
      first = end;
      size = (size + 1) / 2;
    }
    factors = index_select(factors, 0, ids(left)) * index_select(cat({factors, one}), 0, ids(right));
  }
  return put_at(x, ids(hit), factors);
}

/// Which elements are the extreme; each nan is, where that is nan.
template <class T>
bool is_extreme(T element, T extreme) {
  return element == extreme || (element != element && extreme != extreme);
}

/// The largest or smallest of src, of the index's shape, and of x if it is included, at each position.
template <class T>
Variable<T> scattered_extremes(const Variable<T>& x, const MiddleAxis& m, const Ids& index, const Ids& at,
                               const Variable<T>& src, bool largest, bool include_self) {
  Variable<T> y = detail::copy_of(x);
  T* const to = detail::data(y);
  const T *const own = detail::data(x), *const from = detail::data(src);
  Mask taken(x.shape(), include_self);
  for (std::size_t i = 0; i < at.size(); ++i) {
    T& extreme = to[at.data()[i]];
    const T value = from[i];
    const bool better = (largest ? value > extreme : value < extreme) || value != value;
    if (better || !taken.data()[at.data()[i]]) extreme = value;
    taken.data()[at.data()[i]] = true;
  }
  // what has no part in an extreme, and how many have
  Mask x_lost = Mask::from_shape(x.shape()), src_lost = Mask::from_shape(with_an_axis(index.shape()));
  Ids counts(x.shape(), 0);
  const Ids hits = counts_of(x.shape(), at);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool part = hits.data()[i] == 0 || (include_self && is_extreme(own[i], to[i]));
    x_lost.data()[i] = !part;
    counts.data()[i] += part ? 1 : 0;
  }
  for (std::size_t i = 0; i < at.size(); ++i) {
    const bool part = is_extreme(from[i], to[at.data()[i]]);
    src_lost.data()[i] = !part;
    counts.data()[at.data()[i]] += part ? 1 : 0;
  }
  return record<T>(
      ops::scatter_reduce, std::move(y), Inputs(x, src), Attributes(m.axis, index, largest ? "amax" : "amin"),
      Saved(index, x_lost, src_lost, Variable<T>(Array<T>(xt::cast<T>(counts)))),
      [axis = m.axis](Variable<T> dy, Needs needs, const Ids& index, const Mask& x_lost, const Mask& src_lost,
                      const Variable<T>& counts) -> Grads<T, 2> {
        const Variable<T> share = dy / counts;
        Grads<T, 2> grads;
        if (needs[0]) grads[0] = masked_fill(share, x_lost, 0);
        if (!needs[1]) return grads;
        const Variable<T> found = gather(share, static_cast<int>(axis), index);
        grads[1] = reshape(masked_fill(reshape(found, src_lost.shape()), src_lost, 0), needs.shape(1));
        return grads;
      });
}

}  // namespace

template <class T>
Variable<T> scatter_add(const Variable<T>& x, Int dim, const Ids& index, const Variable<T>& src) {
  const MiddleAxis m = detail::middle_axis("scatter_add", dim, x.shape());
  const Variable<T> added = scattered_part("scatter_add", m, x.shape(), index, src);
  if (index.size() == 0) {
    return record<T>(
        ops::scatter_add, detail::copy_of(x), Inputs(x, src), Attributes(m.axis, index), Saved(),
        [](Variable<T> dy, Needs needs) -> Grads<T, 2> {
          return {std::move(dy), needs[1] ? Variable<T>(Array<T>(needs.shape(1), T{0})) : Variable<T>()};
        });
  }
  Variable<T> y = detail::copy_of(x);
  const StridesOfIds strides(m, x.shape());
  const auto narrow_ids = detail::narrow_index("scatter_add", index, m.axis, m.length);
  kernels::gather_grad<T>(with_an_axis(index.shape()), detail::data(added), strides.along, narrow_ids->data(),
                          {detail::data(y), strides.others});
  return record<T>(ops::scatter_add, std::move(y), Inputs(x, added), Attributes(m.axis, index), Saved(index),
                   [axis = m.axis](Variable<T> dy, Needs needs, const Ids& index) -> Grads<T, 2> {
                     if (!needs[1]) return {dy, Variable<T>()};
                     const Variable<T> found = gather(dy, static_cast<int>(axis), index);
                     return {dy, reshape(found, needs.shape(1))};
                   });
}

template <class T>
Variable<T> scatter(const Variable<T>& x, Int dim, const Ids& index, const Variable<T>& src) {
  const MiddleAxis m = detail::middle_axis("scatter", dim, x.shape());
  const Variable<T> part = scattered_part("scatter", m, x.shape(), index, src);
  if (index.size() == 0) return scatter_add(x, dim, index, src);
  return put_at(x, positions_of("scatter", m, x.shape(), index), reshape(part, index.size()));
}

template <class T>
Variable<T> scatter(const Variable<T>& x, Int dim, const Ids& index, std::type_identity_t<T> value) {
  return scatter(x, dim, index, Variable<T>(Array<T>(index.shape(), value)));
}

template <class T>
Variable<T> scatter_reduce(const Variable<T>& x, Int dim, const Ids& index, const Variable<T>& src,
                           ScatterReduction reduce, ScatterReduceOptions options) {
  const MiddleAxis m = detail::middle_axis("scatter_reduce", dim, x.shape());
  const Variable<T> part = scattered_part("scatter_reduce", m, x.shape(), index, src);
  if (index.size() == 0) return scatter_add(x, dim, index, src);
  const Ids at = positions_of("scatter_reduce", m, x.shape(), index);
  const bool own = options.include_self;
  if (reduce == ScatterReduction::prod) return scattered_products(x, at, reshape(part, index.size()), own);
  if (reduce == ScatterReduction::amax || reduce == ScatterReduction::amin)
    return scattered_extremes(x, m, index, at, part, reduce == ScatterReduction::amax, own);
  Ids counts = counts_of(x.shape(), at);
  const Variable<T> begin = own ? x : masked_fill(x, counts > 0, 0);
  const Variable<T> total = scatter_add(begin, dim, index, part);
  if (reduce == ScatterReduction::sum) return total;
  counts = own ? Ids(counts + 1) : Ids(xt::maximum(counts, std::int64_t{1}));
  return total / Variable<T>(Array<T>(xt::cast<T>(counts)));
}

template <class T>
Variable<T> index_add(const Variable<T>& x, Int dim, const Ids& index, const Variable<T>& source) {
  const MiddleAxis m = detail::middle_axis("index_add", dim, x.shape());
  const std::size_t count = index.size();
  if (index.dimension() > 1)
    detail::fail<ShapeError>("index_add: index must have at most one axis, got ", index.shape());
  Shape expected = x.shape();
  if (!expected.empty()) expected[m.axis] = count;
  if (source.shape() != expected || (expected.empty() && count != 1)) {
    detail::fail<ShapeError>(
        "index_add: source must have the shape of x, with the length of index along axis ", m.axis,
        ", got x ", x.shape(), ", index ", index.shape(), " and source ", source.shape());
  }
  detail::check_index("index_add", index, m.length);
  Variable<T> y = detail::copy_of(x);
  detail::add_rows(m, index, detail::data(source), detail::data(y));
  return record<T>(ops::index_add, std::move(y), Inputs(x, source), Attributes(m.axis, index), Saved(index),
                   [axis = m.axis](Variable<T> dy, Needs needs, const Ids& index) -> Grads<T, 2> {
                     if (!needs[1]) return {dy, Variable<T>()};
                     return {dy, index_select(dy, static_cast<int>(axis), index)};
                   });
}

template <class T>
Variable<T> index_put(const Variable<T>& x, const IndexArrays& indices, const Variable<T>& values,
                      IndexPutOptions options) {
  const std::vector<Ids>& arrays = indices.arrays();
  if (arrays.empty() || arrays.size() > x.dimension()) {
    detail::fail<IndexError>(
        "index_put: there must be ids for at least one axis, and for at most all axes of x, got ",
        arrays.size(), " for x ", x.shape());
  }
  const Places places = places_of(x.shape(), arrays, options.accumulate);
  if (detail::common_shape(values.shape(), places.values) != places.values) {
    detail::fail<ShapeError>("index_put: values must broadcast to ", places.values, ", got ", values.shape());
  }
  return put(x, places, detail::stretched(values, places.values));
}

template <class T>
Variable<T> masked_select(const Variable<T>& x, const Mask& mask) {
  const Shape shape = detail::broadcast_shape("masked_select", x.shape(), mask.shape(), "x", "mask");
  const Mask whole = xt::broadcast(mask, shape);
  Ids chosen = Ids::from_shape(
      {static_cast<std::size_t>(std::count(whole.storage().begin(), whole.storage().end(), true))});
  std::int64_t* next = chosen.data();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole.data()[i]) *next++ = static_cast<std::int64_t>(i);
  }
  return index_select(reshape(detail::stretched(x, shape), whole.size()), 0, chosen);
}

Ids one_hot(const Ids& ids, Int num_classes) {
  if (num_classes < -1 || num_classes == 0)
    detail::fail<ValueError>("one_hot: num_classes must be at least 1, got ", num_classes);
  if (num_classes == -1 && ids.size() == 0)
    detail::fail<ValueError>("one_hot: num_classes must be given if ids is empty, got ids ", ids.shape());
  std::int64_t inferred = num_classes;
  if (num_classes == -1) inferred = *std::max_element(ids.storage().begin(), ids.storage().end()) + 1;
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(inferred, 0));
  detail::check_index("one_hot", ids, count);
  Shape shape = ids.shape();
  shape.push_back(count);
  detail::check_count("one_hot", shape);
  Ids y(shape, 0);
  std::int64_t* row = y.data();
  for (const std::int64_t id : ids.storage()) {
    row[id] = 1;
    row += count;
  }
  return y;
}

#define XGRAD_INSTANTIATE(T)                                                                   \
  template Variable<T> scatter_add(const Variable<T>&, Int, const Ids&, const Variable<T>&);   \
  template Variable<T> scatter(const Variable<T>&, Int, const Ids&, const Variable<T>&);       \
  template Variable<T> scatter(const Variable<T>&, Int, const Ids&, T);                        \
  template Variable<T> scatter_reduce(const Variable<T>&, Int, const Ids&, const Variable<T>&, \
                                      ScatterReduction, ScatterReduceOptions);                 \
  template Variable<T> index_add(const Variable<T>&, Int, const Ids&, const Variable<T>&);     \
  template Variable<T> index_put(const Variable<T>&, const IndexArrays&, const Variable<T>&,   \
                                 IndexPutOptions);                                             \
  template Variable<T> masked_select(const Variable<T>&, const Mask&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
