#pragma once

// How an op's file tells bench_ops what to measure: rows of a table, each an op that is called on the same
// data in xgrad and, where it is installed, in LibTorch.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#ifdef XGRAD_BENCH_LIBTORCH
#include <torch/torch.h>
#endif

#include <xgrad/graph/variable.hpp>

namespace bench {

using xgrad::Array, xgrad::Ids, xgrad::Mask, xgrad::Shape;

/// The shape of an op's input, and the range that its elements are drawn from.
struct Input {
  Shape shape;
  double low = -2, high = 2;
};

inline Input positive(const Shape& shape) { return {shape, 0.1}; }

inline std::size_t integer_root(std::size_t n) {
  return static_cast<std::size_t>(std::sqrt(static_cast<double>(n)) + 1e-9);
}

/// The shapes of about n elements: a matrix has rows of at most 1000, 10 x 10 or 1000 x 1000.
struct Sizes {
  explicit Sizes(std::size_t elements)
      : n(elements), columns(std::min<std::size_t>(integer_root(n), 1000)), rows(n / columns) {}

  std::size_t n, columns, rows;
  Shape flat{n}, row{columns}, matrix{rows, columns};
};

/// What an op is measured on, the same in both libraries.
struct Data {
  std::vector<Array<float>> x;
  const Ids& ids;    ///< a column for each row
  const Ids& index;  ///< a column for each element
  const Mask& mask;
};

/// What an op is called with: its inputs, all of which require gradients, indices and a mask.
template <class Tensor, class Indices, class Booleans>
struct Arguments {
  std::vector<Tensor> x;
  Indices ids, index;
  Booleans mask;

  const Tensor& operator[](std::size_t input) const { return x[input]; }
};

struct Xgrad {
  using Tensor = xgrad::Variable<float>;

  static Arguments<Tensor, Ids, Mask> arguments(const Data& data) {
    Arguments<Tensor, Ids, Mask> made{{}, data.ids, data.index, data.mask};
    for (const Array<float>& x : data.x) made.x.emplace_back(x, true);
    return made;
  }
  static Tensor ones_like(const Tensor& y) { return Tensor(Array<float>(y.shape(), 1.0f)); }
  static void backward(const Tensor& y, const std::vector<Tensor>& x, const Tensor& dy) {
    for (const Tensor& leaf : x) leaf.zero_grad();
    y.backward(dy, {.retain_graph = true});
  }
};

#ifdef XGRAD_BENCH_LIBTORCH
struct LibTorch {
  using Tensor = torch::Tensor;

  template <class T>
  static Tensor copy(const Array<T>& from) {
    Tensor to = torch::empty(std::vector<std::int64_t>(from.shape().begin(), from.shape().end()),
                             torch::CppTypeToScalarType<T>::value);
    std::copy_n(from.data(), from.size(), to.template data_ptr<T>());
    return to;
  }
  static Arguments<Tensor, Tensor, Tensor> arguments(const Data& data) {
    Arguments<Tensor, Tensor, Tensor> made{{}, copy(data.ids), copy(data.index), copy(data.mask)};
    for (const Array<float>& x : data.x) made.x.push_back(copy(x).requires_grad_());
    return made;
  }
  static Tensor ones_like(const Tensor& y) { return torch::ones_like(y.detach()); }
  static void backward(const Tensor& y, const std::vector<Tensor>& x, const Tensor& dy) {
    for (const Tensor& leaf : x) leaf.mutable_grad() = Tensor();
    y.backward(dy, /*retain_graph=*/true);
    for (const Tensor& leaf : x) {
      if (leaf.grad().defined() && leaf.grad().is_alias_of(dy)) leaf.mutable_grad() = leaf.grad().clone();
    }
  }
};
#endif

/// Something to measure: does it so many times.
using Run = std::function<void(std::size_t calls)>;

template <class Library, class Op>
void add_runs(const Data& data, Op op, std::vector<Run>& runs) {
  const auto arguments = Library::arguments(data);
  runs.push_back([=](std::size_t calls) {
    for (; calls > 0; --calls) op(arguments);
  });
  const auto y = op(arguments);
  runs.push_back([=, dy = Library::ones_like(y)](std::size_t calls) {
    for (; calls > 0; --calls) Library::backward(y, arguments.x, dy);
  });
}

/// A row of the table: an op that is called the same in both libraries, or one call for each. Where LibTorch
/// returns a view, its call copies it, as xgrad does; in backward, too, every leaf gets an array of its own.
struct Row {
  template <class Op>
  Row(std::string op_name, std::vector<Input> op_inputs, Op op)
      : Row(std::move(op_name), std::move(op_inputs), op, op) {}

  template <class Op, class TorchOp>
  Row(std::string op_name, std::vector<Input> op_inputs, Op op, [[maybe_unused]] TorchOp torch_op)
      : name(std::move(op_name)), inputs(std::move(op_inputs)), runs([=](const Data& data) {
          std::vector<Run> all;
          add_runs<Xgrad>(data, op, all);
          all.insert(all.begin(), [forward = all[0]](std::size_t calls) {
            const xgrad::NoGrad guard;
            forward(calls);
          });
#ifdef XGRAD_BENCH_LIBTORCH
          add_runs<LibTorch>(data, torch_op, all);
#endif
          return all;
        }) {
  }

  std::string name;
  std::vector<Input> inputs;
  std::function<std::vector<Run>(const Data&)> runs;  ///< in the order of Times
};

/// Puts the rows of the ops in a header into the table.
struct Rows {
  Rows(std::string header, std::vector<Row> (*rows)(const Sizes&));
};

}  // namespace bench
