// Operators that move elements: shapes, orders, parts.

#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

#include "../../../ops/index/indexing.hpp"
#include "../../../ops/linalg/triangle.hpp"
#include "../../../ops/pointwise/arithmetic.hpp"
#include "../../../ops/pointwise/broadcast.hpp"
#include "../../../ops/pointwise/dropout.hpp"
#include "../../../ops/reduce/scans.hpp"
#include "../../../ops/shape/rearrange.hpp"
#include "../../../ops/shape/shapes.hpp"
#include "../arrays.hpp"
#include "../values.hpp"
#include "operators.hpp"

namespace xgrad::onnx::detail {
namespace {

using xgrad::detail::fail;

template <class T>
Operator<T> shape_operator(const NodeDescription& node) {
  const std::int64_t start = node.attributes.integer("start", 0);
  const std::int64_t end = node.attributes.integer("end", std::numeric_limits<std::int64_t>::max());
  return [start, end](const Arguments<T>& given) -> Results<T> {
    return {part_of_shape(shape_of<T>(given.value(0)), start, end)};
  };
}

template <class T>
Operator<T> size_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    Ids size = Ids::from_shape(Shape{});
    *size.data() = static_cast<std::int64_t>(element_count(shape_of<T>(given.value(0))));
    return {std::move(size)};
  };
}

template <class T>
Operator<T> reshape_operator(const NodeDescription& node) {
  const bool zero_is_length = node.attributes.integer("allowzero", 0) != 0;
  return [zero_is_length](const Arguments<T>& given) -> Results<T> {
    const Value<T>& x = given.value(0);
    const Shape& before = shape_of<T>(x);
    const std::vector<std::int64_t> wanted = given.list(1);
    Shape shape;
    std::optional<std::size_t> open;
    for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
      const std::int64_t length = wanted[axis];
      if (length < -1 || (length == -1 && open))
        fail<ShapeError>("a shape must have lengths from 0 and at most one -1, got ",
                         to_string(Dims(wanted.begin(), wanted.end())));
      if (length == -1) open = axis;
      const bool is_copied = length == 0 && !zero_is_length;
      if (is_copied && axis >= before.size())
        fail<ShapeError>("length 0 copies that of axis ", axis, ", which x ", before, " does not have");
      shape.push_back(length == -1 ? 1 : is_copied ? before[axis] : static_cast<std::size_t>(length));
    }
    given.check_result(shape);
    if (open) {
      const std::size_t known = element_count(shape), all = element_count(before);
      if (known == 0 || all % known != 0)
        fail<ShapeError>("no length of axis ", *open, " keeps the number of elements of ", before);
      shape[*open] = all / known;
    }
    return {reshaped<T>(x, shape)};
  };
}

template <class T>
Operator<T> transpose_operator(const NodeDescription& node) {
  const std::optional<std::vector<std::int64_t>> perm = node.attributes.integers("perm");
  return [perm](const Arguments<T>& given) -> Results<T> {
    const Shape& shape = shape_of<T>(given.value(0));
    std::vector<std::int64_t> axes(shape.size());
    std::iota(axes.rbegin(), axes.rend(), 0);
    if (perm) axes = *perm;
    std::vector<std::int64_t> sorted = axes;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted.size() != shape.size() || sorted[i] != static_cast<std::int64_t>(i))
        fail<ValueError>("perm must name each axis of x ", shape, " once, got ",
                         to_string(Dims(axes.begin(), axes.end())));
    }
    return std::visit(
        [&]<class A>(const A& x) -> Results<T> {
          if constexpr (std::is_same_v<A, Variable<T>>) {
            return {permute(x, Dims(axes.begin(), axes.end()))};
          } else {
            Shape to;
            for (const std::int64_t axis : axes) to.push_back(shape[static_cast<std::size_t>(axis)]);
            const xgrad::detail::Strides strides = xgrad::detail::row_major_strides(shape);
            A y = A::from_shape(to);
            for (std::size_t i = 0; i < y.size(); ++i) {
              std::ptrdiff_t from = 0;
              for (std::size_t axis = to.size(), rest = i; axis-- > 0; rest /= to[axis])
                from += static_cast<std::ptrdiff_t>(rest % to[axis]) *
                        strides[static_cast<std::size_t>(axes[axis])];
              y.data()[i] = x.data()[from];
            }
            return {std::move(y)};
          }
        },
        given.value(0));
  };
}

template <class T>
Operator<T> concat(const NodeDescription& node) {
  if (!node.attributes.has("axis")) fail<ValueError>("attribute axis is missing");
  const std::int64_t axis = node.attributes.integer("axis", 0);
  return [axis](const Arguments<T>& given) -> Results<T> {
    const auto joined_as = [&]<class A>(const A&) -> Value<T> {
      std::vector<A> parts;
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (!std::holds_alternative<A>(given.value(i))) fail<ValueError>("all parts must have one type");
        parts.push_back(std::get<A>(given.value(i)));
      }
      const std::size_t along = axis_of(axis, parts.front().shape().size());
      Shape all = parts.front().shape();
      all[along] = 0;
      for (const A& part : parts) all[along] += part.shape().size() > along ? part.shape()[along] : 0;
      given.check_result(all);
      if constexpr (std::is_same_v<A, Variable<T>>) {
        return cat(parts, static_cast<int>(along));
      } else {
        return joined(parts, along);
      }
    };
    return {std::visit(joined_as, given.value(0))};
  };
}

/// A list that is an attribute before opset 13, an input since.
std::optional<std::vector<std::int64_t>> attribute_before_13(const NodeDescription& node, const char* name) {
  return node.opset < 13 ? node.attributes.integers(name) : std::nullopt;
}

template <class T>
Operator<T> split_operator(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", 0);
  const auto attribute = attribute_before_13(node, "split");
  const std::int64_t num_outputs =
      node.attributes.integer("num_outputs", static_cast<std::int64_t>(node.outputs));
  if (!std::cmp_equal(num_outputs, node.outputs))
    fail<ValueError>("num_outputs must be the number of outputs, ", node.outputs, ", got ", num_outputs);
  return [axis, attribute, outputs = node.outputs](const Arguments<T>& given) -> Results<T> {
    const Value<T>& x = given.value(0);
    const std::size_t along = axis_of(axis, shape_of<T>(x).size()), length = shape_of<T>(x)[along];
    std::vector<std::int64_t> lengths;
    if (const auto list = list_from(attribute, given, 1)) {
      lengths = *list;
    } else {
      const std::size_t part = (length + outputs - 1) / outputs;
      for (std::size_t i = 0, left = length; i < outputs; ++i, left -= std::min(left, part))
        lengths.push_back(static_cast<std::int64_t>(std::min(left, part)));
    }
    Results<T> results;
    std::size_t begin = 0;
    for (const std::int64_t part : lengths) {
      if (part < 0 || static_cast<std::size_t>(part) > length - begin)
        fail<ShapeError>("parts must add up to ", length, ", got ",
                         to_string(Dims(lengths.begin(), lengths.end())));
      results.push_back(parts_between<T>(x, along, begin, begin + static_cast<std::size_t>(part)));
      begin += static_cast<std::size_t>(part);
    }
    if (begin != length) fail<ShapeError>("parts must add up to ", length, ", got ", begin);
    return results;
  };
}

/// The places from start to end, as ONNX clamps them: a negative step goes backwards.
std::vector<std::size_t> stepped_places(std::int64_t start, std::int64_t end, std::int64_t step,
                                        std::size_t length) {
  const auto n = static_cast<std::int64_t>(length);
  if (step == 0) fail<ValueError>("steps must not be 0");
  if (n == 0) return {};
  const auto clamped = [&](std::int64_t place, std::int64_t least, std::int64_t most) {
    return std::clamp(place < 0 ? std::max(place, -n - 1) + n : place, least, most);
  };
  std::vector<std::size_t> places;
  if (step > 0) {
    const std::int64_t last = clamped(end, 0, n);
    for (std::int64_t i = clamped(start, 0, n); i < last; i += std::min(step, n))
      places.push_back(static_cast<std::size_t>(i));
  } else {
    const std::int64_t last = clamped(end, -1, n - 1);
    for (std::int64_t i = clamped(start, 0, n - 1); i > last; i += std::max(step, -n))
      places.push_back(static_cast<std::size_t>(i));
  }
  return places;
}

/// Bounds and axes are attributes before opset 10, inputs since.
template <class T>
Operator<T> slice_operator(const NodeDescription& node) {
  std::array<std::optional<std::vector<std::int64_t>>, 3> attributes;
  constexpr const char* names[] = {"starts", "ends", "axes"};
  for (std::size_t i = 0; i < 3 && node.opset < 10; ++i) attributes[i] = node.attributes.integers(names[i]);
  return [attributes](const Arguments<T>& given) -> Results<T> {
    Value<T> x = given.value(0);
    const auto starts = list_from(attributes[0], given, 1).value_or(std::vector<std::int64_t>());
    const auto ends = list_from(attributes[1], given, 2).value_or(std::vector<std::int64_t>());
    std::vector<std::int64_t> steps(starts.size(), 1), axes(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
    axes = list_from(attributes[2], given, 3).value_or(axes);
    if (given.has(4)) steps = given.list(4);
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
      fail<ValueError>("starts, ends, axes and steps must have the same length");
    const std::size_t rank = shape_of<T>(x).size();
    axes_of(axes, rank);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::size_t axis = axis_of(axes[i], rank);
      const std::vector<std::size_t> places =
          stepped_places(starts[i], ends[i], steps[i], shape_of<T>(x)[axis]);
      Value<T> part = steps[i] == 1 && !places.empty()
                          ? parts_between<T>(x, axis, places.front(), places.back() + 1)
                          : parts_at<T>(x, axis, places);
      x = std::move(part);
    }
    return {std::move(x)};
  };
}

template <class T>
Operator<T> unsqueeze_operator(const NodeDescription& node) {
  const auto attribute = attribute_before_13(node, "axes");
  return [attribute](const Arguments<T>& given) -> Results<T> {
    const auto axes = list_from(attribute, given, 1);
    if (!axes) fail<ValueError>("axes are missing");
    const Shape& shape = shape_of<T>(given.value(0));
    const std::size_t rank = shape.size() + axes->size();
    const std::vector<std::size_t> added = axes_of(*axes, rank);
    Shape result;
    for (std::size_t axis = 0, from = 0; axis < rank; ++axis)
      result.push_back(std::ranges::binary_search(added, axis) ? 1 : shape[from++]);
    return {reshaped<T>(given.value(0), result)};
  };
}

template <class T>
Operator<T> squeeze_operator(const NodeDescription& node) {
  const auto attribute = attribute_before_13(node, "axes");
  return [attribute](const Arguments<T>& given) -> Results<T> {
    const Shape& shape = shape_of<T>(given.value(0));
    const auto axes = list_from(attribute, given, 1);
    const std::vector<std::size_t> gone = axes ? axes_of(*axes, shape.size()) : std::vector<std::size_t>();
    Shape result;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const bool goes = axes ? std::ranges::binary_search(gone, axis) : shape[axis] == 1;
      if (goes && shape[axis] != 1) fail<ShapeError>("axis ", axis, " of x ", shape, " must have length 1");
      if (!goes) result.push_back(shape[axis]);
    }
    return {reshaped<T>(given.value(0), result)};
  };
}

template <class T>
Operator<T> flatten_operator(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", 1);
  return [axis](const Arguments<T>& given) -> Results<T> {
    const Shape& shape = shape_of<T>(given.value(0));
    const auto rank = static_cast<std::int64_t>(shape.size());
    if (axis < -rank || axis > rank) fail<IndexError>("axis ", axis, " is out of range for x ", shape);
    const auto first = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    Shape result{1, 1};
    for (std::size_t i = 0; i < shape.size(); ++i) result[i < first ? 0 : 1] *= shape[i];
    return {reshaped<T>(given.value(0), result)};
  };
}

template <class T>
Operator<T> expand_operator(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> {
    Shape wanted;
    for (const std::int64_t length : given.list(1)) {
      if (length < 0) fail<ShapeError>("lengths must be at least 0, got ", length);
      wanted.push_back(static_cast<std::size_t>(length));
    }
    const Shape shape =
        xgrad::detail::broadcast_shape("x", shape_of<T>(given.value(0)), wanted, "x", "shape");
    given.check_result(shape);
    return std::visit(
        [&]<class A>(const A& x) -> Results<T> {
          if constexpr (std::is_same_v<A, Variable<T>>) {
            return {broadcast_to(x, shape)};
          } else {
            return {stretched(x, shape)};
          }
        },
        given.value(0));
  };
}

template <class T>
Operator<T> gather_operator(const NodeDescription& node) {
  const std::int64_t axis = node.attributes.integer("axis", 0);
  return [axis](const Arguments<T>& given) -> Results<T> {
    const Shape& shape = shape_of<T>(given.value(0));
    const Ids& ids = given.integers(1);
    const std::size_t along = axis_of(axis, shape.size());
    const std::vector<std::size_t> places = places_of(ids, shape[along]);
    Shape result(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(along));
    for (const std::size_t length : ids.shape()) result.push_back(length);
    for (std::size_t i = along + 1; i < shape.size(); ++i) result.push_back(shape[i]);
    given.check_result(result);
    return {reshaped<T>(parts_at<T>(given.value(0), along, places), result)};
  };
}

template <class T>
Operator<T> cumulative_sum(const NodeDescription& node) {
  const bool is_exclusive = node.attributes.integer("exclusive", 0) != 0;
  const bool is_reverse = node.attributes.integer("reverse", 0) != 0;
  return [is_exclusive, is_reverse](const Arguments<T>& given) -> Results<T> {
    const std::vector<std::int64_t> list = given.list(1);
    if (list.size() != 1) fail<ShapeError>("axis must be one number, got ", list.size());
    const std::size_t axis = axis_of(list.front(), shape_of<T>(given.value(0)).size());
    if (std::holds_alternative<Variable<T>>(given.value(0))) {
      const int dim = static_cast<int>(axis);
      const Variable<T>& x = given.floats(0);
      const auto count = static_cast<std::ptrdiff_t>(x.shape(dim));
      Variable<T> summed = is_reverse ? flip(x, dim) : x;
      if (is_exclusive && count > 0) {
        Shape first = x.shape();
        first[axis] = 1;
        summed = cat({Variable<T>(Array<T>(first, T{0})), narrow(summed, dim, 0, count - 1)}, dim);
      }
      const Variable<T> sums = cumsum(summed, dim);
      return {is_reverse ? flip(sums, dim) : sums};
    }
    const Ids& x = given.integers(0);
    Ids y = x;
    const xgrad::detail::MiddleAxis m = xgrad::detail::middle_axis(axis, x.shape());
    for (std::size_t i = 0; i < m.outer * m.inner; ++i) {
      std::uint64_t sum = 0;
      for (std::size_t k = 0; k < m.length; ++k) {
        const std::size_t step = is_reverse ? m.length - 1 - k : k;
        const std::size_t place = (i / m.inner * m.length + step) * m.inner + i % m.inner;
        const std::uint64_t before = sum;
        sum += static_cast<std::uint64_t>(x.data()[place]);
        y.data()[place] = static_cast<std::int64_t>(is_exclusive ? before : sum);
      }
    }
    return {std::move(y)};
  };
}

template <class T>
Operator<T> triangle(const NodeDescription& node) {
  const bool is_upper = node.attributes.integer("upper", 1) != 0;
  return [is_upper](const Arguments<T>& given) -> Results<T> {
    const std::vector<std::int64_t> k = given.has(1) ? given.list(1) : std::vector<std::int64_t>{0};
    if (k.size() != 1) fail<ShapeError>("k must be one number, got ", k.size());
    const auto diagonal = static_cast<std::ptrdiff_t>(k.front());
    return std::visit(
        [&]<class A>(const A& x) -> Results<T> {
          if constexpr (std::is_same_v<A, Variable<T>>) {
            return {is_upper ? triu(x, diagonal) : tril(x, diagonal)};
          } else {
            if (x.dimension() < 2) fail<ShapeError>("input 0 must be matrices, got ", x.shape());
            A y = x;
            const auto rows = static_cast<std::ptrdiff_t>(x.shape()[x.dimension() - 2]);
            const auto cols = static_cast<std::ptrdiff_t>(x.shape()[x.dimension() - 1]);
            for (std::size_t i = 0; i < y.size(); ++i) {
              const auto place = static_cast<std::ptrdiff_t>(i);
              const std::ptrdiff_t above =
                  place % cols - place / cols % rows - std::clamp(diagonal, -rows, cols);
              if (is_upper ? above < 0 : above > 0) y.data()[i] = 0;
            }
            return {std::move(y)};
          }
        },
        given.value(0));
  };
}

template <class T>
Operator<T> identity(const NodeDescription&) {
  return [](const Arguments<T>& given) -> Results<T> { return {given.value(0)}; };
}

/// Drops elements where the file says so, and the graph is in training mode; else nothing.
template <class T>
Operator<T> dropout_operator(const NodeDescription& node) {
  node.attributes.ignore("seed");
  const double ratio = node.opset < 12 ? node.attributes.number("ratio", 0.5) : 0.5;
  return [ratio, outputs = node.outputs](const Arguments<T>& given) -> Results<T> {
    const bool trains =
        given.is_training() && given.has(2) && given.conditions(2).size() > 0 && *given.conditions(2).data();
    const double p = given.has(1) ? static_cast<double>(given.floats(1).item()) : ratio;
    if (!trains || p == 0) {
      Results<T> results{given.value(0)};
      if (outputs > 1) results.push_back(Mask(shape_of<T>(given.value(0)), true));
      return results;
    }
    const Variable<T>& x = given.floats(0);
    const Variable<T> kept = dropout(Variable<T>(Array<T>(x.shape(), T{1})), p);
    Results<T> results{x * kept};
    if (outputs > 1) results.push_back(mapped<bool>(kept.value(), [](T factor) { return factor != 0; }));
    return results;
  };
}

}  // namespace

template <class T>
void add_shape_operators(OperatorTable<T>& table) {
  table["Shape"] = shape_operator<T>;
  table["Size"] = size_operator<T>;
  table["Reshape"] = reshape_operator<T>;
  table["Transpose"] = transpose_operator<T>;
  table["Concat"] = concat<T>;
  table["Split"] = split_operator<T>;
  table["Slice"] = slice_operator<T>;
  table["Unsqueeze"] = unsqueeze_operator<T>;
  table["Squeeze"] = squeeze_operator<T>;
  table["Flatten"] = flatten_operator<T>;
  table["Expand"] = expand_operator<T>;
  table["Gather"] = gather_operator<T>;
  table["CumSum"] = cumulative_sum<T>;
  table["Trilu"] = triangle<T>;
  table["Identity"] = identity<T>;
  table["Dropout"] = dropout_operator<T>;
}

template void add_shape_operators(OperatorTable<float>&);
template void add_shape_operators(OperatorTable<double>&);

}  // namespace xgrad::onnx::detail
