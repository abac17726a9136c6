#include "functional.hpp"

#include <algorithm>
#include <cmath>

#include "../graph/detail/leaf.hpp"
#include "../graph/record.hpp"
#include "../ops/index/indexing.hpp"
#include "../ops/reduce/reductions.hpp"
#include "../ops/shape/shapes.hpp"

namespace xgrad::detail {
namespace {

template <class T>
using List = std::vector<Variable<T>>;

template <class T>
void check_inputs(const char* name, const List<T>& x) {
  if (x.empty()) fail<ValueError>(name, ": x must not be an empty list");
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!x[i].defined()) fail<GraphError>(name, ": x[", i, "] is undefined");
}

template <class T>
Variable<T> zeros(const Shape& shape, const char* name = "result") {
  Variable<T> x = empty<T>(shape, name);
  std::fill_n(data(x), x.size(), T{0});
  return x;
}

/// The same value as an independent variable: a leaf, or under create_graph a result that leads to x.
template <class T>
Variable<T> independent(const Variable<T>& x, bool create_graph) {
  if (create_graph && x.requires_grad()) return same_elements(ops::alias, x.detach(), x);
  return Access<T>::make(Access<T>::value(x), Ref<Node<T>>(new LeafNode<T>(x.shape())));
}

template <class T>
List<T> independent(const List<T>& x, bool create_graph) {
  List<T> fresh;
  fresh.reserve(x.size());
  for (const Variable<T>& one : x) fresh.push_back(independent(one, create_graph));
  return fresh;
}

template <class T>
Variable<T> called(const char* name, const FunctionOf<T>& f, const List<T>& x, bool allow_constant) {
  Variable<T> y = f(x);
  if (!y.defined()) fail<GraphError>(name, ": f must return a variable, got an undefined one");
  if (!allow_constant && !y.requires_grad()) {
    fail<GraphError>(name, ": f must return what it computed by ops on x, got a variable ", y.shape(),
                     " without a graph; pass allow_constant if the derivative is 0");
  }
  return y;
}

template <class T>
Variable<T> returned(const Variable<T>& y, DerivativeOptions options) {
  return options.create_graph ? y : y.detach();
}

/// d(seed . y)/dx, undefined where y does not depend on it; the graph is kept.
template <class T>
List<T> gradients(const Variable<T>& y, const List<T>& x, const Variable<T>& seed, bool create_graph) {
  if (!y.defined() || !y.requires_grad()) return List<T>(x.size());
  return grad_down_to(
      x, y, x,
      GradOptions<T>{.seed = seed, .retain_graph = true, .create_graph = create_graph, .allow_unused = true});
}

template <class T>
List<T> zeros_where_undefined(List<T> found, const List<T>& like) {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i].defined()) found[i] = zeros<T>(like[i].shape());
  return found;
}

template <class T>
void check_one_element(const char* name, const Variable<T>& y) {
  if (y.size() != 1) fail<ShapeError>(name, ": f must return one number, got shape ", y.shape());
}

template <class T>
void check_like(const char* name, const char* what, const Variable<T>& v, const char* of,
                const Shape& shape) {
  if (!v.defined()) fail<GraphError>(name, ": ", what, " is undefined");
  if (v.shape() != shape)
    fail<ShapeError>(name, ": ", what, " must have the shape of ", of, " ", shape, ", got ", v.shape());
}

template <class T>
void check_directions(const char* name, const List<T>& v, const List<T>& x) {
  if (v.size() != x.size())
    fail<ValueError>(name, ": v must have as many parts as x, ", x.size(), ", got ", v.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::string part = x.size() == 1 ? std::string() : join({"[", std::to_string(i), "]"});
    check_like(name, ("v" + part).c_str(), v[i], ("x" + part).c_str(), x[i].shape());
  }
}

/// d(sum of g . v)/dx
template <class T>
List<T> along(const List<T>& g, const List<T>& v, const List<T>& x, bool create_graph) {
  if (g.size() == 1) return gradients(g[0], x, v[0], create_graph);
  Variable<T> total;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (!g[i].defined() || !g[i].requires_grad()) continue;
    const Variable<T> part = sum(g[i] * v[i]);
    total = total.defined() ? total + part : part;
  }
  return gradients(total, x, {}, create_graph);
}

}  // namespace

template <class T>
Derivatives<T> value_and_grad(const FunctionOf<T>& f, const List<T>& x, DerivativeOptions options) {
  check_inputs("value_and_grad", x);
  const EnableGrad guard;
  const List<T> at = independent(x, options.create_graph);
  const Variable<T> y = called("value_and_grad", f, at, options.allow_constant);
  check_one_element("value_and_grad", y);
  return {returned(y, options), zeros_where_undefined(gradients(y, at, {}, options.create_graph), x)};
}

template <class T>
Derivatives<T> vjp(const FunctionOf<T>& f, const List<T>& x, const Variable<T>& v,
                   DerivativeOptions options) {
  check_inputs("vjp", x);
  const EnableGrad guard;
  const List<T> at = independent(x, options.create_graph);
  const Variable<T> y = called("vjp", f, at, options.allow_constant);
  check_like("vjp", "v", v, "f(x)", y.shape());
  return {returned(y, options), zeros_where_undefined(gradients(y, at, v, options.create_graph), x)};
}

template <class T>
Derivatives<T> jvp(const FunctionOf<T>& f, const List<T>& x, const List<T>& v, DerivativeOptions options) {
  check_inputs("jvp", x);
  check_directions("jvp", v, x);
  const Tangents<T> tangents(f, x, options);
  return {tangents.value(), {tangents.apply(v)}};
}

template <class T>
Derivatives<T> hvp(const FunctionOf<T>& f, const List<T>& x, const List<T>& v, DerivativeOptions options) {
  check_inputs("hvp", x);
  check_directions("hvp", v, x);
  const EnableGrad guard;
  const List<T> at = independent(x, options.create_graph);
  const Variable<T> y = called("hvp", f, at, options.allow_constant);
  check_one_element("hvp", y);
  const List<T> g = gradients(y, at, {}, true);
  return {returned(y, options), zeros_where_undefined(along(g, v, at, options.create_graph), x)};
}

template <class T>
Tangents<T>::Tangents(const FunctionOf<T>& f, const List<T>& x, DerivativeOptions options)
    : options_(options) {
  check_inputs("linearize", x);
  const EnableGrad guard;
  x_ = independent(x, options.create_graph);
  y_ = called("linearize", f, x_, options.allow_constant);
  seed_ = independent(zeros<T>(y_.shape()), false);
  gradients_ = gradients(y_, x_, seed_, true);
}

template <class T>
Variable<T> Tangents<T>::value() const {
  return returned(y_, options_);
}

template <class T>
Variable<T> Tangents<T>::apply(const List<T>& v) const {
  check_directions("linearize", v, x_);
  const EnableGrad guard;
  return zeros_where_undefined(along(gradients_, v, {seed_}, options_.create_graph), {y_}).front();
}

template <class T>
List<T> Tangents<T>::apply_transposed(const Variable<T>& u) const {
  check_like("linearize", "u", u, "f(x)", y_.shape());
  const EnableGrad guard;
  return zeros_where_undefined(gradients(y_, x_, u, options_.create_graph), x_);
}

namespace {

/// The rows of Jacobians, k at a time: of outputs (k, batch, y...) with respect to inputs (k, batch, x...),
/// where the axes k and batch are there only if the options ask for them.
template <class T>
class Rows {
 public:
  Rows(const char* name, const List<T>& x, const JacobianOptions& options, std::size_t most_rows)
      : name_(name), options_(options), copies_(std::max<std::size_t>(1, std::min(options.rows, most_rows))) {
    check_inputs(name, x);
    if (options.batched) {
      for (const Variable<T>& one : x) {
        if (one.dimension() == 0 || one.shape(0) != x[0].shape(0)) {
          fail<ShapeError>(name, ": with batched, all of x must have the same length of the first axis, got ",
                           x[0].shape(), " and ", one.shape());
        }
      }
      batch_ = x[0].shape(0);
    }
    for (const Variable<T>& one : x) inputs_.push_back(copied(one));
  }

  const List<T>& inputs() const { return inputs_; }
  std::size_t samples() const { return copies_ * batch_; }

  /// The axes of y behind those of copies and samples.
  Shape check_output(const Variable<T>& y) const {
    const Shape& shape = y.shape();
    const std::size_t leading = leading_axes();
    bool right = shape.size() >= leading;
    if (right && options_.rows > 0) right = shape[0] == copies_;
    if (right && options_.batched) right = shape[leading - 1] == batch_;
    if (!right) {
      Shape expected;
      if (options_.rows > 0) expected.push_back(copies_);
      if (options_.batched) expected.push_back(batch_);
      fail<ShapeError>(name_, ": f must return an array whose first axes are ", expected, ", got ", shape,
                       ", for x of shape ", inputs_[0].shape());
    }
    return Shape(shape.begin() + static_cast<std::ptrdiff_t>(leading), shape.end());
  }

  /// One Jacobian for each input: of shape (batch, y..., x...).
  List<T> of(const Variable<T>& y, const Shape& y_axes) const {
    const std::size_t rows = element_count(y_axes);
    List<T> results;
    for (const Variable<T>& input : inputs_) {
      Shape shape;
      if (options_.batched) shape.push_back(batch_);
      shape.insert(shape.end(), y_axes.begin(), y_axes.end());
      const Shape& x = input.shape();
      shape.insert(shape.end(), x.begin() + static_cast<std::ptrdiff_t>(leading_axes()), x.end());
      results.push_back(zeros<T>(shape, name_));
    }
    if (!y.defined() || !y.requires_grad()) return results;
    std::vector<List<T>> blocks(inputs_.size());
    for (std::size_t first = 0; first < rows; first += copies_) {
      const std::size_t count = std::min(copies_, rows - first);
      List<T> found = gradients(y, inputs_, seed(y.shape(), rows, first, count), options_.create_graph);
      if (first == 0 && samples() > 1) check_independence(y, rows, found);
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (options_.create_graph) {
          blocks[i].push_back(block(found[i], inputs_[i], count));
        } else if (found[i].defined()) {
          copy_rows(found[i], results[i], rows, first, count);
        }
      }
    }
    if (options_.create_graph && rows > 0) {
      for (std::size_t i = 0; i < results.size(); ++i) {
        const Variable<T> all = blocks[i].size() == 1 ? blocks[i].front() : cat(blocks[i], 1);
        results[i] = reshape(all, Shape(results[i].shape()));
      }
    }
    return results;
  }

 private:
  std::size_t leading_axes() const { return (options_.rows > 0 ? 1 : 0) + (options_.batched ? 1 : 0); }

  Variable<T> copied(const Variable<T>& x) const {
    const Variable<T> one = independent(x, options_.create_graph);
    if (options_.rows == 0) return one;
    Shape shape{copies_};
    shape.insert(shape.end(), x.shape().begin(), x.shape().end());
    return expand(one, shape);
  }

  /// Throws ValueError if what f returned for one copy or sample depends on another one: with a factor 2^k
  /// for each, the gradients must have this factor exactly. `found` are those without, if one pass has all
  /// rows.
  void check_independence(const Variable<T>& y, std::size_t rows, List<T> found) const {
    const auto factor = [](std::size_t unit) { return static_cast<T>(1 << unit % 16); };
    Variable<T> seeds = zeros<T>(y.shape(), name_);
    const auto seed_all = [&](const auto& number) {
      for (std::size_t unit = 0; unit < samples(); ++unit) {
        for (std::size_t row = unit / batch_; row < rows; row += copies_)
          data(seeds)[unit * rows + row] = number(unit);
      }
    };
    if (rows > copies_) {
      seed_all([](std::size_t) { return T{1}; });
      found = gradients(y, inputs_, seeds, false);
      seeds = zeros<T>(y.shape(), name_);
    }
    seed_all(factor);
    const List<T> scaled = gradients(y, inputs_, seeds, false);
    for (std::size_t i = 0; i < scaled.size(); ++i) {
      if (!scaled[i].defined() || !found[i].defined()) continue;
      const std::size_t length = scaled[i].size() / samples();
      for (std::size_t unit = 0; unit < samples(); ++unit) {
        const T* const plain = data(found[i]) + unit * length;
        const T* const multiplied = data(scaled[i]) + unit * length;
        T largest = 0;
        for (std::size_t at = 0; at < length; ++at)
          if (std::isfinite(plain[at])) largest = std::max(largest, std::abs(plain[at]));
        for (std::size_t at = 0; at < length; ++at) {
          const T difference = multiplied[at] / factor(unit) - plain[at];
          if (!std::isfinite(difference) || std::abs(difference) <= tolerance * largest) continue;
          fail<ValueError>(name_, ": with ", options_.rows > 0 ? "rows" : "batched",
                           ", f must map each index of the leading axes of ", inputs_[0].shape(),
                           " independently, but the results of others depend on that of position ", unit);
        }
      }
    }
  }

  /// 1 at the row that each copy computes, for all samples.
  Variable<T> seed(const Shape& shape, std::size_t rows, std::size_t first, std::size_t count) const {
    Variable<T> ones = zeros<T>(shape, name_);
    for (std::size_t copy = 0; copy < count; ++copy) {
      for (std::size_t sample = 0; sample < batch_; ++sample)
        data(ones)[(copy * batch_ + sample) * rows + first + copy] = T{1};
    }
    return ones;
  }

  /// found (copy, sample, x) to result (sample, row, x)
  void copy_rows(const Variable<T>& found, Variable<T>& result, std::size_t rows, std::size_t first,
                 std::size_t count) const {
    const std::size_t length = found.size() / std::max<std::size_t>(1, samples());
    const T* from = data(found);
    for (std::size_t copy = 0; copy < count; ++copy) {
      for (std::size_t sample = 0; sample < batch_; ++sample, from += length)
        std::copy_n(from, length, data(result) + (sample * rows + first + copy) * length);
    }
  }

  /// The same as ops: (sample, row, x), to be joined along the rows.
  Variable<T> block(const Variable<T>& found, const Variable<T>& input, std::size_t count) const {
    const auto length = static_cast<std::ptrdiff_t>(input.size() / std::max<std::size_t>(1, samples()));
    const auto copies = static_cast<std::ptrdiff_t>(copies_), batch = static_cast<std::ptrdiff_t>(batch_);
    const Variable<T> all =
        reshape(found.defined() ? found : zeros<T>(input.shape(), name_), {copies, batch, length});
    return transpose(narrow(all, 0, 0, static_cast<std::ptrdiff_t>(count)), 0, 1);
  }

  /// Of the largest gradient: what a factor of a power of two does not change is exact.
  static constexpr T tolerance = static_cast<T>(1e-5);

  const char* name_;
  JacobianOptions options_;
  std::size_t copies_, batch_ = 1;
  List<T> inputs_;
};

}  // namespace

template <class T>
List<T> jacobian(const FunctionOf<T>& f, const List<T>& x, const JacobianOptions& options) {
  const EnableGrad guard;
  const Rows<T> rows("jacobian", x, options, options.rows);
  const Variable<T> y = called("jacobian", f, rows.inputs(), options.allow_constant);
  return rows.of(y, rows.check_output(y));
}

template <class T>
std::vector<List<T>> hessian(const FunctionOf<T>& f, const List<T>& x, const JacobianOptions& options) {
  const EnableGrad guard;
  std::size_t longest = 0;
  for (const Variable<T>& one : x) longest = std::max(longest, one.defined() ? one.size() : 0);
  const Rows<T> rows("hessian", x, options, longest);
  const Variable<T> y = called("hessian", f, rows.inputs(), options.allow_constant);
  if (element_count(rows.check_output(y)) != 1 || y.size() != rows.samples()) {
    fail<ShapeError>("hessian: f must return one number",
                     options.batched || options.rows > 0 ? " for each copy and sample" : "", ", got shape ",
                     y.shape(), " for x of shape ", rows.inputs()[0].shape());
  }
  const List<T> g = gradients(y.size() == 1 ? y : sum(y), rows.inputs(), {}, true);
  std::vector<List<T>> results;
  for (std::size_t i = 0; i < g.size(); ++i)
    results.push_back(rows.of(g[i], rows.check_output(rows.inputs()[i])));
  return results;
}

#define XGRAD_INSTANTIATE(T)                                                                                \
  template Derivatives<T> value_and_grad(const FunctionOf<T>&, const List<T>&, DerivativeOptions);          \
  template Derivatives<T> vjp(const FunctionOf<T>&, const List<T>&, const Variable<T>&, DerivativeOptions); \
  template Derivatives<T> jvp(const FunctionOf<T>&, const List<T>&, const List<T>&, DerivativeOptions);     \
  template Derivatives<T> hvp(const FunctionOf<T>&, const List<T>&, const List<T>&, DerivativeOptions);     \
  template List<T> jacobian(const FunctionOf<T>&, const List<T>&, const JacobianOptions&);                  \
  template std::vector<List<T>> hessian(const FunctionOf<T>&, const List<T>&, const JacobianOptions&);      \
  template class Tangents<T>;

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad::detail
