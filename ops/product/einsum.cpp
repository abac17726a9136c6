#include "einsum.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "../../base/dims.hpp"
#include "../../base/error.hpp"
#include "../index/indexing.hpp"
#include "../reduce/reductions.hpp"
#include "../shape/shapes.hpp"
#include "detail/einsum_equation.hpp"
#include "matmul.hpp"

namespace xgrad {
namespace {

using detail::contains;
using Labels = detail::EinsumLabels;

/// An operand on its way to the result.
template <class T>
struct Factor {
  Variable<T> x;
  Labels labels;
};

/// Two axes of one label.
std::optional<std::pair<std::size_t, std::size_t>> repeated(const Labels& labels) {
  for (std::size_t second = 1; second < labels.size(); ++second)
    for (std::size_t first = 0; first < second; ++first)
      if (labels[first] == labels[second]) return std::pair(first, second);
  return std::nullopt;
}

/// The elements whose indices on all axes of one label are equal; that label is on one axis then.
template <class T>
Factor<T> with_diagonals(Factor<T> factor) {
  auto& [x, labels] = factor;
  while (const auto pair = repeated(labels)) {
    const auto [first, second] = *pair;
    if (x.shape()[first] != x.shape()[second]) {
      detail::fail<ShapeError>("einsum: axes with the same letter must have the same length, got axes ",
                               first, " and ", second, " of ", x.shape());
    }
    const auto n = static_cast<std::ptrdiff_t>(x.shape()[first]);
    Shape order{first, second};
    Labels left{labels[first]};
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      if (axis == first || axis == second) continue;
      order.push_back(axis);
      left.push_back(labels[axis]);
    }
    x = slice(flatten(permute(x, order), 0, 1), 0, 0, n * n, n + 1);
    labels = left;
  }
  return factor;
}

/// Without the axes for which `drop` says so, which are summed over.
template <class T, class Drop>
Factor<T> without_axes(const Factor<T>& factor, Drop drop) {
  Shape axes;
  Labels kept;
  for (std::size_t axis = 0; axis < factor.labels.size(); ++axis) {
    if (drop(factor.labels[axis], axis)) {
      axes.push_back(axis);
    } else {
      kept.push_back(factor.labels[axis]);
    }
  }
  return axes.empty() ? factor : Factor<T>{sum(factor.x, Dims(axes)), kept};
}

/// With its axes in this order, which has them all.
template <class T>
Variable<T> ordered(const Factor<T>& factor, const Labels& order) {
  if (factor.labels == order) return factor.x;
  Shape axes;
  for (const int label : order) {
    const auto found = std::find(factor.labels.begin(), factor.labels.end(), label);
    axes.push_back(static_cast<std::size_t>(found - factor.labels.begin()));
  }
  return permute(factor.x, axes);
}

Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// a times b, summed over the axes that both have and nobody needs any more, as one batched matrix product.
template <class T>
Factor<T> contracted(Factor<T> a, Factor<T> b, const Labels& needed) {
  a = without_axes(a,
                   [&](int label, auto) { return !contains(needed, label) && !contains(b.labels, label); });
  b = without_axes(b,
                   [&](int label, auto) { return !contains(needed, label) && !contains(a.labels, label); });
  Labels batch, inner, rows, columns;
  for (const int label : a.labels)
    (!contains(b.labels, label) ? rows : contains(needed, label) ? batch : inner).push_back(label);
  for (const int label : b.labels)
    if (!contains(a.labels, label)) columns.push_back(label);

  Variable<T> left = ordered(a, joined({batch, rows, inner})),
              right = ordered(b, joined({batch, inner, columns}));
  const auto length = [](const Variable<T>& x, std::size_t first, std::size_t count) {
    const auto begin = x.shape().begin() + static_cast<std::ptrdiff_t>(first);
    return element_count(Shape(begin, begin + static_cast<std::ptrdiff_t>(count)));
  };
  const std::size_t batches = length(left, 0, batch.size()), n = length(left, batch.size(), rows.size()),
                    k = length(right, batch.size(), inner.size()),
                    m = length(right, batch.size() + inner.size(), columns.size());
  Shape shape(left.shape().begin(),
              left.shape().begin() + static_cast<std::ptrdiff_t>(batch.size() + rows.size()));
  shape.insert(shape.end(), right.shape().begin() + static_cast<std::ptrdiff_t>(batch.size() + inner.size()),
               right.shape().end());
  left = reshape(left, {batches, n, k});
  right = reshape(right, {batches, k, m});
  const Variable<T> product = inner.empty() ? left * right : bmm(left, right);
  return {reshape(product, shape), joined({batch, rows, columns})};
}

}  // namespace

template <class T>
Variable<T> einsum(std::string_view equation, const std::vector<Variable<T>>& operands) {
  std::vector<Shape> shapes;
  for (const Variable<T>& x : operands) shapes.push_back(x.shape());
  const detail::EinsumEquation parsed = detail::parse_einsum(equation, shapes);
  std::vector<Factor<T>> factors;
  std::map<int, std::size_t> lengths;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    factors.push_back(with_diagonals(Factor<T>{operands[i], parsed.operands[i]}));
    const auto& [x, labels] = factors.back();
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      std::size_t& length = lengths.emplace(labels[axis], 1).first->second;
      if (length != 1 && x.shape()[axis] != 1 && x.shape()[axis] != length) {
        detail::fail<ShapeError>("einsum: axes with the same letter must have the same length, got operand ",
                                 i, " ", operands[i].shape(), " after length ", length);
      }
      if (length == 1) length = x.shape()[axis];
    }
  }
  // An axis of length 1 that broadcasts goes: the others have it.
  for (Factor<T>& factor : factors) {
    factor = without_axes(factor, [&, &x = factor.x](int label, std::size_t axis) {
      return x.shape()[axis] == 1 && lengths.at(label) != 1;
    });
  }

  Factor<T> result = factors.front();
  for (std::size_t i = 1; i < factors.size(); ++i) {
    Labels needed = parsed.output;
    for (std::size_t later = i + 1; later < factors.size(); ++later)
      needed.insert(needed.end(), factors[later].labels.begin(), factors[later].labels.end());
    result = contracted(result, factors[i], needed);
  }
  result = without_axes(result, [&](int label, auto) { return !contains(parsed.output, label); });
  const Variable<T> y = ordered(result, parsed.output);
  const bool is_operand = &y.value() == &operands.front().value();  // nothing was to be done
  return is_operand ? reshape(y, y.shape()) : y;
}

#define XGRAD_INSTANTIATE(T) template Variable<T> einsum(std::string_view, const std::vector<Variable<T>>&);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
