#include "op_references.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace xgrad_tests::naive {
namespace {

using xgrad::Dims, xgrad::Ids, xgrad::Mask, xgrad::Shape;
using Arguments = std::vector<Numbers>;

/// Calls f with every index into an array of this shape, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& f) {
  Shape index(shape.size(), 0);
  for (std::size_t n = xgrad::element_count(shape); n > 0; --n) {
    f(index);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

/// Where the element lies; leading axes that x has not are ignored, those of length 1 stretch.
std::size_t position(const Shape& shape, const Shape& index) {
  const std::size_t shift = index.size() - shape.size();
  std::size_t offset = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    offset = offset * shape[axis] + (shape[axis] == 1 ? 0 : index[shift + axis]);
  return offset;
}

template <class Elements>
auto& at(Elements& x, const Shape& index) {
  return x.data()[position(x.shape(), index)];
}

Numbers filled(const Shape& shape, double value) {
  Numbers y = Numbers::from_shape(shape);
  std::fill(y.storage().begin(), y.storage().end(), value);
  return y;
}

Numbers generated(const Shape& shape, const std::function<double(const Shape&)>& f) {
  Numbers y = Numbers::from_shape(shape);
  for_each_index(shape, [&](const Shape& index) { at(y, index) = f(index); });
  return y;
}

Shape joined(Shape front, std::initializer_list<std::size_t> back) {
  for (const std::size_t length : back) front.push_back(length);
  return front;
}

Shape without(Shape shape, std::size_t axis) {
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape;
}

Shape with(Shape shape, std::size_t axis, std::size_t length) {
  shape[axis] = length;
  return shape;
}

Shape stretched(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape shape(rank, 1);
  for (const Shape* one : {&a, &b}) {
    for (std::size_t axis = 0; axis < one->size(); ++axis) {
      std::size_t& length = shape[rank - one->size() + axis];
      if ((*one)[axis] != 1) length = (*one)[axis];
    }
  }
  return shape;
}

/// The axes as flags, for an array of this rank.
std::vector<bool> flags(const Dims& axes, std::size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (std::ptrdiff_t axis : axes) {
    if (rank > 0)
      reduced[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::ptrdiff_t>(rank) : axis)] = true;
  }
  return reduced;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced) {
  Shape result = shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (reduced[axis]) result[axis] = 1;
  }
  return result;
}

Numbers sum_over(const Numbers& x, const Shape& kept) {
  Numbers y = filled(kept, 0);
  for_each_index(x.shape(), [&](const Shape& index) { at(y, index) += at(x, index); });
  return y;
}

Numbers reshaped(Numbers x, const Shape& shape) {
  Numbers y = Numbers::from_shape(shape);
  std::copy(x.data(), x.data() + x.size(), y.data());
  return y;
}

double logsumexp(const Numbers& x, Shape index, std::size_t axis) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (index[axis] = 0; index[axis] < x.shape()[axis]; ++index[axis])
    largest = std::max(largest, at(x, index));
  for (index[axis] = 0; index[axis] < x.shape()[axis]; ++index[axis])
    total += std::exp(at(x, index) - largest);
  return largest + std::log(total);
}

Numbers matrix_product(const Numbers& a, const Numbers& b) {
  const std::size_t n = a.shape()[a.dimension() - 2], k = a.shape().back(), m = b.shape().back();
  const Shape batch =
      stretched(Shape(a.shape().begin(), a.shape().end() - 2), Shape(b.shape().begin(), b.shape().end() - 2));
  return generated(joined(batch, {n, m}), [&](const Shape& index) {
    double total = 0;
    for (std::size_t i = 0; i < k; ++i)
      total += at(a, with(index, index.size() - 1, i)) * at(b, with(index, index.size() - 2, i));
    return total;
  });
}

/// The weights (..., H, L, S) of q, k, v and perhaps a bias; zeros where a query may attend to nothing.
Numbers weights_of(const Arguments& x, const Attention& how) {
  const Numbers &q = x[0], &k = x[1];
  const std::size_t H = std::max<std::size_t>(how.heads, 1), rank = q.dimension();
  const std::size_t L = q.shape()[rank - 2], S = k.shape()[rank - 2], E = q.shape().back() / H;
  const Shape batch(q.shape().begin(), q.shape().end() - 2);
  const double scale = how.scale.value_or(1 / std::sqrt(static_cast<double>(E)));
  Numbers weights = filled(joined(batch, {H, L, S}), 0);
  for_each_index(joined(batch, {H, L}), [&](const Shape& row) {
    const Shape place(row.begin(), row.end() - 2);
    const std::size_t h = row[row.size() - 2], i = row.back();
    std::vector<double> weight(S, 0);
    double total = 0;
    for (std::size_t j = 0; j < S; ++j) {
      const Shape score_index = how.heads > 0 ? joined(place, {h, i, j}) : joined(place, {i, j});
      if (how.causal && j > i) continue;
      if (how.allowed && !at(*how.allowed, score_index)) continue;
      double score = 0;
      for (std::size_t e = h * E; e < (h + 1) * E; ++e)
        score += at(q, joined(place, {i, e})) * at(k, joined(place, {j, e}));
      score = score * scale + (x.size() > 3 ? at(x[3], score_index) : 0);
      weight[j] = std::exp(score);
      total += weight[j];
    }
    for (std::size_t j = 0; j < S; ++j) at(weights, joined(row, {j})) = total > 0 ? weight[j] / total : 0;
  });
  return weights;
}

}  // namespace

Reference map(double (*f)(double)) {
  return [f](const Arguments& x) {
    return generated(x[0].shape(), [&](const Shape& index) { return f(at(x[0], index)); });
  };
}

Reference binary(double (*f)(double, double)) {
  return [f](const Arguments& x) {
    return generated(stretched(x[0].shape(), x[1].shape()),
                     [&](const Shape& index) { return f(at(x[0], index), at(x[1], index)); });
  };
}

Reference broadcast_to(Shape shape) {
  return [shape](const Arguments& x) {
    return generated(shape, [&](const Shape& index) { return at(x[0], index); });
  };
}

Reference sum_to(Shape shape) {
  return [shape](const Arguments& x) { return sum_over(x[0], shape); };
}

Reference matmul() {
  return [](const Arguments& x) {
    const Shape &a = x[0].shape(), &b = x[1].shape();
    const Shape row = a.size() == 1 ? Shape{1, a[0]} : a, column = b.size() == 1 ? Shape{b[0], 1} : b;
    const Numbers y = matrix_product(reshaped(x[0], row), reshaped(x[1], column));
    Shape shape = y.shape();
    if (b.size() == 1) shape = without(shape, shape.size() - 1);
    if (a.size() == 1) shape = without(shape, shape.size() - (b.size() == 1 ? 1 : 2));
    return reshaped(y, shape);
  };
}

Reference linear() {
  return [](const Arguments& x) {
    return generated(with(x[0].shape(), x[0].dimension() - 1, x[1].shape()[0]), [&](const Shape& index) {
      double total = x.size() > 2 ? at(x[2], {index.back()}) : 0;
      for (std::size_t i = 0; i < x[1].shape()[1]; ++i)
        total += at(x[0], with(index, index.size() - 1, i)) * at(x[1], {index.back(), i});
      return total;
    });
  };
}

Reference softmax(std::size_t axis) {
  return [axis](const Arguments& x) {
    if (x[0].dimension() == 0) return filled({}, 1);
    return generated(x[0].shape(), [&](const Shape& index) {
      return std::exp(at(x[0], index) - logsumexp(x[0], index, axis));
    });
  };
}

Reference log_softmax(std::size_t axis) {
  return [axis](const Arguments& x) {
    if (x[0].dimension() == 0) return filled({}, 0);
    return generated(x[0].shape(),
                     [&](const Shape& index) { return at(x[0], index) - logsumexp(x[0], index, axis); });
  };
}

Reference layer_norm(std::size_t axes, bool weight, bool bias, double eps) {
  return [=](const Arguments& x) {
    const Shape& shape = x[0].shape();
    const Shape inner(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end());
    const double count = static_cast<double>(xgrad::element_count(inner));
    Shape kept = shape;
    std::fill(kept.end() - static_cast<std::ptrdiff_t>(axes), kept.end(), 1);
    const Numbers mean = sum_over(x[0], kept);
    const Numbers squares = generated(
        shape, [&](const Shape& index) { return std::pow(at(x[0], index) - at(mean, index) / count, 2); });
    const Numbers variance = sum_over(squares, kept);
    return generated(shape, [&](const Shape& index) {
      double y = (at(x[0], index) - at(mean, index) / count) / std::sqrt(at(variance, index) / count + eps);
      if (weight) y *= at(x[1], index);
      if (bias) y += at(x.back(), index);
      return y;
    });
  };
}

Reference embedding(Ids ids) {
  return [ids](const Arguments& x) {
    return generated(joined(ids.shape(), {x[0].shape()[1]}), [&](const Shape& index) {
      const Shape place(index.begin(), index.end() - 1);
      return at(x[0], {static_cast<std::size_t>(at(ids, place)), index.back()});
    });
  };
}

Reference masked_fill(Mask mask, double value) {
  return [mask, value](const Arguments& x) {
    return generated(stretched(x[0].shape(), mask.shape()),
                     [&](const Shape& index) { return at(mask, index) ? value : at(x[0], index); });
  };
}

Reference sum(Dims axes, bool keepdim) {
  return [axes, keepdim](const Arguments& x) {
    const std::vector<bool> reduced = flags(axes, x[0].dimension());
    const Numbers y = sum_over(x[0], reduced_shape(x[0].shape(), reduced));
    Shape shape;
    for (std::size_t axis = 0; axis < reduced.size(); ++axis) {
      if (!reduced[axis]) shape.push_back(y.shape()[axis]);
    }
    return keepdim ? y : reshaped(y, shape);
  };
}

Reference mean(Dims axes, bool keepdim) {
  return [axes, keepdim](const Arguments& x) {
    Numbers y = sum(axes, keepdim)(x);
    for (double& element : y.storage())
      element *= static_cast<double>(y.size()) / static_cast<double>(x[0].size());
    return y;
  };
}

Reference reshape(Shape shape) {
  return [shape](const Arguments& x) { return reshaped(x[0], shape); };
}

Reference permute(Shape order) {
  return [order](const Arguments& x) {
    Shape shape = order;
    for (std::size_t k = 0; k < order.size(); ++k) shape[k] = x[0].shape()[order[k]];
    return generated(shape, [&](const Shape& index) {
      Shape source = index;
      for (std::size_t k = 0; k < order.size(); ++k) source[order[k]] = index[k];
      return at(x[0], source);
    });
  };
}

Reference cat(std::size_t axis) {
  return [axis](const Arguments& x) {
    std::size_t length = 0;
    for (const Numbers& part : x) length += part.shape()[axis];
    return generated(with(x[0].shape(), axis, length), [&](const Shape& index) {
      Shape source = index;
      std::size_t part = 0;
      while (source[axis] >= x[part].shape()[axis]) source[axis] -= x[part++].shape()[axis];
      return at(x[part], source);
    });
  };
}

Reference select(std::size_t axis, std::size_t index) {
  return [axis, index](const Arguments& x) {
    return generated(without(x[0].shape(), axis), [&](const Shape& place) {
      Shape source = place;
      source.insert(source.begin() + static_cast<std::ptrdiff_t>(axis), index);
      return at(x[0], source);
    });
  };
}

Reference slice(std::size_t axis, std::size_t first, std::size_t count, std::size_t step) {
  return [=](const Arguments& x) {
    return generated(with(x[0].shape(), axis, count), [&](const Shape& index) {
      return at(x[0], with(index, axis, first + step * index[axis]));
    });
  };
}

Reference cross_entropy(Ids target, char reduction, std::int64_t ignore_index) {
  return [=](const Arguments& x) {
    const std::size_t axis = x[0].dimension() == 1 ? 0 : 1;
    double total = 0, count = 0;
    const Numbers losses = generated(target.shape(), [&](const Shape& place) {
      const std::int64_t id = at(target, place);
      if (id == ignore_index) return 0.0;
      Shape index = place;
      index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::size_t>(id));
      const double loss = logsumexp(x[0], index, axis) - at(x[0], index);
      total += loss;
      count += 1;
      return loss;
    });
    if (reduction == 'n') return losses;
    return filled({}, reduction == 's' ? total : total / count);
  };
}

Reference attention(Attention how) {
  return [how](const Arguments& x) {
    const Numbers weights = weights_of(x, how);
    const Numbers& v = x[2];
    const std::size_t H = std::max<std::size_t>(how.heads, 1), Ev = v.shape().back() / H;
    return generated(with(x[0].shape(), x[0].dimension() - 1, v.shape().back()), [&](const Shape& index) {
      const Shape place(index.begin(), index.end() - 2);
      const std::size_t i = index[index.size() - 2], e = index.back();
      double total = 0;
      for (std::size_t j = 0; j < v.shape()[v.dimension() - 2]; ++j)
        total += at(weights, joined(place, {e / Ev, i, j})) * at(v, joined(place, {j, e}));
      return total;
    });
  };
}

Reference attention_weights(Attention how) {
  return [how](const Arguments& x) {
    const Numbers weights = weights_of(x, how);
    return how.heads > 0 ? weights : reshaped(weights, without(weights.shape(), weights.dimension() - 3));
  };
}

namespace {

/// combine(start, element, ...) over some axes, element by element, then finish.
Reference folded(Dims axes, bool keepdim, double start, double (*combine)(double, double)) {
  return [=](const Arguments& x) {
    const std::vector<bool> reduced = flags(axes, x[0].dimension());
    Numbers y = filled(reduced_shape(x[0].shape(), reduced), start);
    for_each_index(x[0].shape(),
                   [&](const Shape& index) { at(y, index) = combine(at(y, index), at(x[0], index)); });
    Shape shape;
    for (std::size_t axis = 0; axis < reduced.size(); ++axis) {
      if (keepdim || !reduced[axis]) shape.push_back(y.shape()[axis]);
    }
    return reshaped(y, shape);
  };
}

}  // namespace

Reference amax(Dims axes, bool keepdim) {
  return folded(axes, keepdim, -std::numeric_limits<double>::infinity(),
                [](double a, double b) { return std::max(a, b); });
}

Reference amin(Dims axes, bool keepdim) {
  return folded(axes, keepdim, std::numeric_limits<double>::infinity(),
                [](double a, double b) { return std::min(a, b); });
}

Reference logsumexp(Dims axes, bool keepdim) {
  return folded(axes, keepdim, -std::numeric_limits<double>::infinity(),
                [](double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))); });
}

Reference var(Dims axes, bool keepdim, double correction) {
  return [=](const Arguments& x) {
    const Numbers mean = naive::mean(axes, true)(x);
    Numbers squares = x[0];
    for_each_index(x[0].shape(), [&](const Shape& index) {
      const double deviation = at(x[0], index) - at(mean, index);
      at(squares, index) = deviation * deviation;
    });
    Numbers y = naive::sum(axes, keepdim)({squares});
    const double count = static_cast<double>(x[0].size()) / static_cast<double>(y.size());
    for (double& element : y.storage()) element /= count - correction;
    return y;
  };
}

Reference where(Mask condition) {
  return [condition](const Arguments& x) {
    return generated(
        stretched(condition.shape(), stretched(x[0].shape(), x[1].shape())),
        [&](const Shape& index) { return at(condition, index) ? at(x[0], index) : at(x[1], index); });
  };
}

Reference stack(std::size_t axis) {
  return [axis](const Arguments& x) {
    Shape shape = x[0].shape();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), x.size());
    return generated(shape, [&](const Shape& index) { return at(x[index[axis]], without(index, axis)); });
  };
}

Reference einsum(std::vector<std::string> operands, std::string output) {
  return [operands, output](const Arguments& x) {
    std::string letters = output;
    for (const std::string& operand : operands)
      for (const char letter : operand)
        if (letters.find(letter) == letters.npos) letters += letter;
    Shape lengths(letters.size(), 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t axis = 0; axis < operands[i].size(); ++axis) {
        if (x[i].shape()[axis] != 1) lengths[letters.find(operands[i][axis])] = x[i].shape()[axis];
      }
    }
    const auto chosen = [&](const std::string& axes, const Shape& index) {
      Shape result;
      for (const char letter : axes) result.push_back(index[letters.find(letter)]);
      return result;
    };
    Numbers y =
        filled(Shape(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(output.size())), 0);
    for_each_index(lengths, [&](const Shape& index) {
      double product = 1;
      for (std::size_t i = 0; i < x.size(); ++i) product *= at(x[i], chosen(operands[i], index));
      at(y, chosen(output, index)) += product;
    });
    return y;
  };
}

Reference taken(Shape shape, std::function<std::optional<Shape>(const Shape&)> from) {
  return [shape, from](const Arguments& x) {
    return generated(shape, [&](const Shape& index) {
      const std::optional<Shape> source = from(index);
      return source ? at(x[0], *source) : 0.0;
    });
  };
}

}  // namespace xgrad_tests::naive
