// Operators that take elements by their places, rank them, or put them in order.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../ops/index/indexing.hpp"
#include "../../../ops/index/scatter.hpp"
#include "../../../ops/index/where.hpp"
#include "../../../ops/reduce/sorting.hpp"
#include "../../../ops/shape/rearrange.hpp"
#include "../arrays.hpp"
#include "../values.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail, xgrad::detail::in_quotes;

/// The rows that tuples of indices name, where x counts as rows of all axes behind those of the tuples. The
/// first `batch_dims` axes of x and of the tuples are the same.
struct IndexedRows {
  std::vector<std::size_t> rows;
  std::size_t count = 1;    // of all rows of x
  Shape tuples, remaining;  // the axes of the tuples, and those behind the indexed ones

  IndexedRows(const Shape& x, const Ids& indices, std::size_t batch_dims) {
    if (indices.dimension() == 0 || batch_dims >= indices.dimension())
      fail<ShapeError>("indices must have more axes than batch_dims, ", batch_dims, ", got ",
                       indices.shape());
    const std::size_t length = indices.shape().back(), indexed = batch_dims + length;
    if (length == 0 || indexed > x.size()) fail<ShapeError>("indices of ", length, " axes do not fit x ", x);
    tuples.assign(indices.shape().begin(), indices.shape().end() - 1);
    for (std::size_t axis = 0; axis < batch_dims; ++axis) {
      if (tuples[axis] != x[axis])
        fail<ShapeError>("the first ", batch_dims, " axes must agree, got x ", x, " and indices ",
                         indices.shape());
    }
    for (std::size_t axis = 0; axis < indexed; ++axis) count *= x[axis];
    remaining.assign(x.begin() + static_cast<std::ptrdiff_t>(indexed), x.end());
    const std::size_t all = element_count(tuples);
    std::size_t batches = 1;
    for (std::size_t axis = 0; axis < batch_dims; ++axis) batches *= x[axis];
    const std::size_t each = batches == 0 ? 0 : all / batches;
    for (std::size_t i = 0; i < all; ++i) {
      std::size_t row = i / each;
      for (std::size_t k = 0; k < length; ++k) {
        const auto n = static_cast<std::int64_t>(x[batch_dims + k]);
        const std::int64_t id = indices.data()[i * length + k];
        if (id < -n || id >= n) fail<IndexError>("indices must be in [", -n, ", ", n, "), got ", id);
        row = row * x[batch_dims + k] + static_cast<std::size_t>(id < 0 ? id + n : id);
      }
      rows.push_back(row);
    }
  }

  Shape result() const {
    Shape shape = tuples;
    shape.insert(shape.end(), remaining.begin(), remaining.end());
    return shape;
  }
  Shape as_rows() const { return {count, element_count(remaining)}; }
};

template <class T>
Operator<T> gather_nd(const NodeDescription& node) {
  const std::int64_t batch_dims = node.attributes.integer("batch_dims", 0);
  if (batch_dims < 0) fail<ValueError>("batch_dims must be at least 0, got ", batch_dims);
  return [batch_dims](const Arguments<T>& given) -> Results<T> {
    const Value<T>& x = given.value(0);
    const IndexedRows rows(shape_of<T>(x), given.integers(1), static_cast<std::size_t>(batch_dims));
    given.check_result(rows.result());
    return {reshaped<T>(parts_at<T>(reshaped<T>(x, rows.as_rows()), 0, rows.rows), rows.result())};
  };
}

/// Calls f(i, place) for each element of an array of indices: where along `axis` of x it points to.
template <class F>
void for_each_element(const Shape& x, std::size_t axis, const Ids& indices, F f) {
  const Shape& shape = indices.shape();
  bool fits = shape.size() == x.size();
  for (std::size_t i = 0; fits && i < x.size(); ++i) fits = i == axis || shape[i] <= x[i];
  if (!fits)
    fail<ShapeError>("indices ", shape, " must be as long as x ", x, " at most, except in axis ", axis);
  const xgrad::detail::Strides strides = xgrad::detail::row_major_strides(x);
  const auto n = static_cast<std::int64_t>(x[axis]);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t id = indices.data()[i];
    if (id < -n || id >= n) fail<IndexError>("indices must be in [", -n, ", ", n, "), got ", id);
    std::ptrdiff_t place = 0;
    for (std::size_t k = shape.size(), rest = i; k-- > 0; rest /= shape[k]) {
      const auto step = k == axis ? (id < 0 ? id + n : id) : static_cast<std::int64_t>(rest % shape[k]);
      place += static_cast<std::ptrdiff_t>(step) * strides[k];
    }
    f(i, place);
  }
}

/// Ids without negative ones.
Ids from_the_front(const Ids& ids, std::size_t length) {
  Ids from_front = ids;
  const std::vector<std::size_t> places = places_of(ids, length);
  std::copy(places.begin(), places.end(), from_front.data());
  return from_front;
}

template <class T>
Operator<T> gather_elements(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", 0);
  return [axis](const Arguments<T>& given) -> Results<T> {
    const Shape& shape = shape_of<T>(given.value(0));
    const std::size_t along = axis_of(axis, shape.size());
    const Ids& ids = given.integers(1);
    return std::visit(
        [&]<class A>(const A& x) -> Results<T> {
          if constexpr (std::is_same_v<A, Variable<T>>) {
            return {gather(x, static_cast<int>(along), from_the_front(ids, shape[along]))};
          } else {
            A y = A::from_shape(ids.shape());
            for_each_element(shape, along, ids,
                             [&](std::size_t i, std::ptrdiff_t place) { y.data()[i] = x.data()[place]; });
            return {std::move(y)};
          }
        },
        given.value(0));
  };
}

/// How scatters join what is there with what is put there.
enum class Joining { replace, add, mul, max, min };

Joining joining_of(NodeAttributes& attributes) {
  const std::string name = attributes.text("reduction", "none");
  constexpr const char* names[] = {"none", "add", "mul", "max", "min"};
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names))
    fail<ValueError>("reduction must be none, add, mul, max or min, got ", in_quotes(name));
  return static_cast<Joining>(found - std::begin(names));
}

/// Integers wrap around; the sum of conditions is whether one is true.
template <class E>
E joined_elements(E before, E put, Joining how) {
  switch (how) {
    case Joining::add:
      return static_cast<E>(static_cast<std::uint64_t>(before) + static_cast<std::uint64_t>(put));
    case Joining::mul:
      return static_cast<E>(static_cast<std::uint64_t>(before) * static_cast<std::uint64_t>(put));
    case Joining::max:
      return std::max(before, put);
    case Joining::min:
      return std::min(before, put);
    default:
      return put;
  }
}

template <class T>
Variable<T> scattered(const Variable<T>& x, std::size_t axis, const Ids& ids, const Variable<T>& updates,
                      Joining how) {
  const int dim = static_cast<int>(axis);
  const Ids places = from_the_front(ids, x.shape()[axis]);
  switch (how) {
    case Joining::replace:
      return scatter(x, dim, places, updates);
    case Joining::add:
      return scatter_add(x, dim, places, updates);
    case Joining::mul:
      return scatter_reduce(x, dim, places, updates, ScatterReduction::prod);
    case Joining::max:
      return scatter_reduce(x, dim, places, updates, ScatterReduction::amax);
    default:
      return scatter_reduce(x, dim, places, updates, ScatterReduction::amin);
  }
}

/// x with updates at the places that ids name along an axis.
template <class T>
Value<T> scattered(const Value<T>& value, std::size_t axis, const Ids& ids, const Value<T>& updates,
                   Joining how) {
  if (!same_shape(ids.shape(), shape_of<T>(updates)))
    fail<ShapeError>("indices and updates must have the same shape, got ", ids.shape(), " and ",
                     shape_of<T>(updates));
  return std::visit(
      [&]<class A>(const A& x) -> Value<T> {
        if (!std::holds_alternative<A>(updates)) fail<ValueError>("x and updates must have one type");
        const A& put = std::get<A>(updates);
        if constexpr (std::is_same_v<A, Variable<T>>) {
          return scattered(x, axis, ids, put, how);
        } else {
          A y = x;
          for_each_element(x.shape(), axis, ids, [&](std::size_t i, std::ptrdiff_t place) {
            y.data()[place] = joined_elements<typename A::value_type>(y.data()[place], put.data()[i], how);
          });
          return y;
        }
      },
      value);
}

template <class T>
Operator<T> scatter_elements(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", 0);
  const Joining how = joining_of(node.attributes);
  return [axis, how](const Arguments<T>& given) -> Results<T> {
    const std::size_t along = axis_of(axis, shape_of<T>(given.value(0)).size());
    return {scattered<T>(given.value(0), along, given.integers(1), given.value(2), how)};
  };
}

template <class T>
Operator<T> scatter_nd(const NodeDescription& node) {
  const Joining how = joining_of(node.attributes);
  return [how](const Arguments<T>& given) -> Results<T> {
    const Value<T>& x = given.value(0);
    const IndexedRows rows(shape_of<T>(x), given.integers(1), 0);
    if (!same_shape(shape_of<T>(given.value(2)), rows.result()))
      fail<ShapeError>("updates must have the shape ", rows.result(), ", got ", shape_of<T>(given.value(2)));
    const Shape updates{rows.rows.size(), element_count(rows.remaining)};
    given.check_result(updates);
    Ids places = Ids::from_shape(updates);
    for (std::size_t i = 0; i < places.size(); ++i)
      places.data()[i] = static_cast<std::int64_t>(rows.rows[i / updates[1]]);
    const Value<T> y =
        scattered<T>(reshaped<T>(x, rows.as_rows()), 0, places, reshaped<T>(given.value(2), updates), how);
    return {reshaped<T>(y, shape_of<T>(x))};
  };
}

/// Whether a is larger than b, or smaller; nan is both.
template <class E>
bool ranks_before(E a, E b, bool largest) {
  if constexpr (std::is_floating_point_v<E>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  }
  return largest ? a > b : a < b;
}

template <class T, bool largest>
Operator<T> arg_extreme(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", 0);
  const bool keepdims = node.attributes.integer("keepdims", 1) != 0;
  const bool takes_last = node.attributes.integer("select_last_index", 0) != 0;
  return [=](const Arguments<T>& given) -> Results<T> {
    const Shape& shape = shape_of<T>(given.value(0));
    const std::size_t along = axis_of(axis, shape.size());
    const xgrad::detail::MiddleAxis m = xgrad::detail::middle_axis(along, shape);
    if (m.length == 0) fail<ShapeError>("there are no elements along axis ", along, " of ", shape);
    Shape left = shape;
    left[along] = 1;
    if (!keepdims) left.erase(left.begin() + static_cast<std::ptrdiff_t>(along));
    Ids y = Ids::from_shape(left);
    const auto find = [&](const auto& x) {
      for (std::size_t i = 0; i < m.outer * m.inner; ++i) {
        const auto* const first = x.data() + i / m.inner * m.length * m.inner + i % m.inner;
        std::size_t best = 0;
        for (std::size_t k = 1; k < m.length; ++k) {
          const auto a = first[k * m.inner], b = first[best * m.inner];
          if (ranks_before(a, b, largest) || (takes_last && a == b)) best = k;
        }
        y.data()[i] = static_cast<std::int64_t>(best);
      }
    };
    std::visit(
        [&]<class A>(const A& x) {
          if constexpr (std::is_same_v<A, Variable<T>>) {
            find(x.value());
          } else {
            find(x);
          }
        },
        given.value(0));
    return {std::move(y)};
  };
}

/// The ranks along an axis of integers: the places of the first k.
Ids ranked(const Ids& x, std::size_t axis, std::size_t k, bool largest) {
  const xgrad::detail::MiddleAxis m = xgrad::detail::middle_axis(axis, x.shape());
  Shape shape = x.shape();
  shape[axis] = k;
  Ids places = Ids::from_shape(shape);
  std::vector<std::size_t> order(m.length);
  for (std::size_t i = 0; i < m.outer * m.inner; ++i) {
    const std::size_t outer = i / m.inner, inner = i % m.inner;
    const std::int64_t* const first = x.data() + outer * m.length * m.inner + inner;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return ranks_before(first[a * m.inner], first[b * m.inner], largest);
    });
    for (std::size_t j = 0; j < k; ++j)
      places.data()[(outer * k + j) * m.inner + inner] = static_cast<std::int64_t>(order[j]);
  }
  return places;
}

/// k is an attribute before opset 10, an input since.
template <class T>
Operator<T> top_k(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", -1);
  const bool largest = node.attributes.integer("largest", 1) != 0;
  node.attributes.ignore("sorted");
  std::optional<std::int64_t> attribute;
  if (node.opset < 10) attribute = node.attributes.integer("k", 0);
  return [=](const Arguments<T>& given) -> Results<T> {
    const Shape& shape = shape_of<T>(given.value(0));
    const std::size_t along = axis_of(axis, shape.size());
    const std::int64_t k = attribute ? *attribute : given.integer(1);
    if (k < 0 || static_cast<std::uint64_t>(k) > shape[along])
      fail<ValueError>("k must be from 0 to the length ", shape[along], " of axis ", along, ", got ", k);
    if (std::holds_alternative<Variable<T>>(given.value(0))) {
      const Ranked<T> found = topk(given.floats(0), static_cast<std::ptrdiff_t>(k), static_cast<int>(along),
                                   {.largest = largest});
      return {found.values, found.indices};
    }
    const Ids& x = given.integers(0);
    Ids places = ranked(x, along, static_cast<std::size_t>(k), largest);
    Ids values = Ids::from_shape(places.shape());
    for_each_element(shape, along, places,
                     [&](std::size_t i, std::ptrdiff_t place) { values.data()[i] = x.data()[place]; });
    return {std::move(values), std::move(places)};
  };
}

/// Ids beyond the depth, on both sides, are hot nowhere.
template <class T>
Operator<T> one_hot_operator(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", -1);
  return [axis](const Arguments<T>& given) -> Results<T> {
    const auto as_integers = [&](std::size_t i) {
      if (std::holds_alternative<Ids>(given.value(i))) return given.integers(i);
      return mapped<std::int64_t>(given.floats(i).value(),
                                  [](T x) { return std::abs(x) < 1e15 ? static_cast<std::int64_t>(x) : -1; });
    };
    const Ids ids = as_integers(0), depths = as_integers(1);
    if (depths.size() != 1) fail<ShapeError>("depth must be one number, got ", depths.shape());
    const std::int64_t depth = *depths.data();
    if (depth < 1) fail<ValueError>("depth must be at least 1, got ", depth);
    Shape shape = ids.shape();
    const std::size_t along = axis_of(axis, shape.size() + 1);
    shape.push_back(static_cast<std::size_t>(depth));
    std::rotate(shape.begin() + static_cast<std::ptrdiff_t>(along), shape.end() - 1, shape.end());
    given.check_result(shape);
    const xgrad::detail::MiddleAxis m = xgrad::detail::middle_axis(along, shape);
    Mask hot(shape, false);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t id = ids.data()[i] < 0 ? ids.data()[i] + depth : ids.data()[i];
      if (id < 0 || id >= depth) continue;
      hot.data()[(i / m.inner * m.length + static_cast<std::size_t>(id)) * m.inner + i % m.inner] = true;
    }
    if (shape_of<T>(given.value(2)) != Shape{2})
      fail<ShapeError>("values must be two, got ", shape_of<T>(given.value(2)));
    return std::visit(
        [&]<class A>(const A& values) -> Results<T> {
          if constexpr (std::is_same_v<A, Variable<T>>) {
            return {where(hot, select(values, 0, 1), select(values, 0, 0))};
          } else {
            using E = typename A::value_type;
            const E off = values.data()[0], on = values.data()[1];
            return {mapped<E>(hot, [=](bool is_hot) { return is_hot ? on : off; })};
          }
        },
        given.value(2));
  };
}

/// The places of elements that are not 0, one column each.
template <class T>
Operator<T> non_zero(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    const Mask mask = std::visit(
        []<class A>(const A& x) {
          const auto is_set = [](auto element) { return element != 0; };
          if constexpr (std::is_same_v<A, Variable<T>>) {
            return mapped<bool>(x.value(), is_set);
          } else {
            return mapped<bool>(x, is_set);
          }
        },
        given.value(0));
    const Ids rows = nonzero(mask);
    Ids columns = Ids::from_shape({rows.shape()[1], rows.shape()[0]});
    for (std::size_t i = 0; i < rows.shape()[0]; ++i)
      for (std::size_t k = 0; k < rows.shape()[1]; ++k) columns(k, i) = rows(i, k);
    return {std::move(columns)};
  };
}

/// Nan is behind all numbers.
template <class E>
bool is_before(E a, E b) {
  if constexpr (std::is_floating_point_v<E>) {
    if (std::isnan(b)) return !std::isnan(a);
  }
  return a < b;
}

/// The distinct elements, in order or as they first occur; where each occurs first, which one each element
/// is, and how often it occurs. Nan counts as one element, as in NumPy.
template <class E>
std::pair<Array<E>, std::array<Ids, 3>> distinct(const Array<E>& x, bool is_sorted) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return is_before<E>(x.data()[a], x.data()[b]); });
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t place : order) {
    const bool is_new = groups.empty() || is_before<E>(x.data()[groups.back()[0]], x.data()[place]);
    if (is_new) groups.emplace_back();
    groups.back().push_back(place);
  }
  if (!is_sorted) std::sort(groups.begin(), groups.end());
  Array<E> values = Array<E>::from_shape({groups.size()});
  std::array<Ids, 3> others{Ids::from_shape({groups.size()}), Ids::from_shape({x.size()}),
                            Ids::from_shape({groups.size()})};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    values.data()[i] = x.data()[groups[i][0]];
    others[0].data()[i] = static_cast<std::int64_t>(groups[i][0]);
    others[2].data()[i] = static_cast<std::int64_t>(groups[i].size());
    for (const std::size_t place : groups[i]) others[1].data()[place] = static_cast<std::int64_t>(i);
  }
  return {std::move(values), std::move(others)};
}

template <class T>
Operator<T> unique_operator(const NodeDescription& node) {
  if (node.attributes.has("axis")) fail<ValueError>("unique parts along an axis are not supported");
  const bool is_sorted = node.attributes.integer("sorted", 1) != 0;
  return [is_sorted](const Arguments<T>& given) -> Results<T> {
    return std::visit(
        [&]<class A>(const A& x) -> Results<T> {
          const auto results = [](auto found) -> Results<T> {
            auto& [values, others] = found;
            return {Value<T>(std::move(values)), std::move(others[0]), std::move(others[1]),
                    std::move(others[2])};
          };
          if constexpr (std::is_same_v<A, Variable<T>>) {
            auto [values, others] = distinct(x.value(), is_sorted);
            return {Variable<T>(std::move(values)), others[0], others[1], others[2]};
          } else {
            return results(distinct(x, is_sorted));
          }
        },
        given.value(0));
  };
}

template <class T>
Operator<T> tile(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    Value<T> x = given.value(0);
    Shape shape = shape_of<T>(x);
    const std::vector<std::int64_t> repeats = given.list(1);
    if (repeats.size() != shape.size())
      fail<ShapeError>("repeats must be one for each axis of ", shape, ", got ", repeats.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (repeats[axis] < 0) fail<ValueError>("repeats must be at least 0, got ", repeats[axis]);
      const std::size_t length = shape[axis], count = static_cast<std::size_t>(repeats[axis]);
      if (length != 0 && count > given.most() / length) given.check_result({length, count});
      shape[axis] = length * count;
    }
    given.check_result(shape);
    if (std::holds_alternative<Variable<T>>(x))
      return {repeat(given.floats(0), Dims(repeats.begin(), repeats.end()))};
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      std::vector<std::size_t> places(shape[axis]);
      const std::size_t length = shape_of<T>(x)[axis];
      for (std::size_t i = 0; i < places.size(); ++i) places[i] = i % length;
      Value<T> next = parts_at<T>(x, axis, places);
      x = std::move(next);
    }
    return {std::move(x)};
  };
}

/// Where the elements of a padded axis are taken from: `before` places in front of the first one.
std::vector<std::size_t> padded_places(const std::string& mode, std::int64_t before, std::int64_t after,
                                       std::int64_t length) {
  if (length == 0) fail<ShapeError>("an axis without elements cannot be padded with them");
  const std::int64_t period = mode == "reflect" ? std::max<std::int64_t>(2 * (length - 1), 1) : length;
  std::vector<std::size_t> places;
  for (std::int64_t i = -before; i < length + after; ++i) {
    std::int64_t place = std::clamp<std::int64_t>(i, 0, length - 1);
    if (mode != "edge") place = (i % period + period) % period;
    if (mode == "reflect" && place >= length) place = period - place;
    places.push_back(static_cast<std::size_t>(place));
  }
  return places;
}

/// With a constant in front of an axis and behind it; what has a negative length is cut off.
template <class T>
Value<T> padded_with(const Value<T>& value, std::size_t axis, std::int64_t before, std::int64_t after,
                     const Value<T>* constant) {
  return std::visit(
      [&]<class A>(const A& x) -> Value<T> {
        if (constant != nullptr && !std::holds_alternative<A>(*constant))
          fail<ValueError>("x and the constant must have one type");
        if constexpr (std::is_same_v<A, Variable<T>>) {
          std::vector<std::int64_t> pairs(2 * (x.dimension() - axis));
          pairs[pairs.size() - 2] = before;
          pairs[pairs.size() - 1] = after;
          return pad(x, Dims(pairs.begin(), pairs.end()), Padding::constant,
                     constant == nullptr ? T{0} : std::get<A>(*constant).item());
        } else {
          using E = typename A::value_type;
          const E element = constant == nullptr ? E{} : *std::get<A>(*constant).data();
          const auto length = static_cast<std::int64_t>(x.shape()[axis]);
          const auto filled = [&](std::int64_t count) {
            Shape shape = x.shape();
            shape[axis] = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
            return A(shape, element);
          };
          std::vector<std::size_t> inner;
          for (std::int64_t i = std::max<std::int64_t>(0, -before); i < std::min(length, length + after); ++i)
            inner.push_back(static_cast<std::size_t>(i));
          return joined<E>(
              {filled(before), taken(x, axis, std::span<const std::size_t>(inner)), filled(after)}, axis);
        }
      },
      value);
}

/// Pads and the constant are attributes before opset 11, inputs since.
template <class T>
Operator<T> pad_operator(const NodeDescription& node) {
  const std::string mode = node.attributes.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    fail<ValueError>("mode must be constant, reflect, edge or wrap, got ", in_quotes(mode));
  std::optional<std::vector<std::int64_t>> attribute;
  std::optional<Value<T>> constant;
  if (node.opset < 11) {
    attribute = node.attributes.integers("pads");
    constant = Variable<T>(static_cast<T>(node.attributes.number("value", 0)));
  }
  return [=](const Arguments<T>& given) -> Results<T> {
    Value<T> x = given.value(0);
    Shape shape = shape_of<T>(x);
    const auto pads = list_from(attribute, given, 1);
    if (!pads) fail<ValueError>("pads are missing");
    std::vector<std::int64_t> axes(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (given.has(3)) axes = given.list(3);
    if (pads->size() != 2 * axes.size())
      fail<ValueError>("pads must be two for each of ", axes.size(), " axes, got ", pads->size());
    axes_of(axes, shape.size());
    const Value<T>* const filling = given.has(2) ? &given.value(2) : constant ? &*constant : nullptr;
    if (filling != nullptr && element_count(shape_of<T>(*filling)) != 1)
      fail<ShapeError>("the constant must be one, got ", shape_of<T>(*filling));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t axis = axis_of(axes[i], shape.size());
      const std::int64_t before = (*pads)[i], after = (*pads)[axes.size() + i];
      if (before == 0 && after == 0) continue;
      const auto length = static_cast<std::int64_t>(shape[axis]);
      constexpr std::int64_t most = std::int64_t{1} << 40;
      if (before < -most || before > most || after < -most || after > most ||
          length + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0) < 0)
        fail<ShapeError>("pads ", before, " and ", after, " do not fit axis ", axis, " of x ", shape);
      shape[axis] = static_cast<std::size_t>(length + before + after);
      given.check_result(shape);
      given.check_result({shape[axis], sizeof(std::size_t)});  // the places
      Value<T> next = mode == "constant" ? padded_with<T>(x, axis, before, after, filling)
                                         : parts_at<T>(x, axis, padded_places(mode, before, after, length));
      x = std::move(next);
    }
    return {std::move(x)};
  };
}

/// The elements of the last axis at these places, of scikit-learn's models.
template <class T>
Operator<T> feature_extractor(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    const Value<T>& x = given.value(0);
    const Shape& shape = shape_of<T>(x);
    if (shape.empty()) fail<ShapeError>("x must have an axis");
    const Ids& ids = given.integers(1);
    Value<T> y = parts_at<T>(x, shape.size() - 1, places_of(ids, shape.back()));
    return {shape.size() == 1 ? reshaped<T>(y, {1, ids.size()}) : std::move(y)};
  };
}

}  // namespace

template <class T>
void add_index_operators(OperatorTable<T>& table) {
  table["GatherND"] = gather_nd<T>;
  table["GatherElements"] = gather_elements<T>;
  table["ScatterElements"] = scatter_elements<T>;
  table["Scatter"] = scatter_elements<T>;
  table["ScatterND"] = scatter_nd<T>;
  table["ArgMax"] = arg_extreme<T, true>;
  table["ArgMin"] = arg_extreme<T, false>;
  table["TopK"] = top_k<T>;
  table["OneHot"] = one_hot_operator<T>;
  table["NonZero"] = non_zero<T>;
  table["Unique"] = unique_operator<T>;
  table["Tile"] = tile<T>;
  table["Pad"] = pad_operator<T>;
  table["ai.onnx.ml.ArrayFeatureExtractor"] = feature_extractor<T>;
}

template void add_index_operators(OperatorTable<float>&);
template void add_index_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
