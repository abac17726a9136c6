#pragma once

// What the ops must compute, as slow loops in double that share nothing with the library's kernels.

#include <optional>
#include <string>
#include <vector>

#include <xgrad/graph/dims.hpp>

#include "op_table.hpp"

namespace xgrad_tests::naive {

using Numbers = xgrad::Array<double>;

Reference map(double (*f)(double));
Reference binary(double (*f)(double, double));
Reference broadcast_to(xgrad::Shape shape);
Reference sum_to(xgrad::Shape shape);
Reference matmul();
Reference linear();
Reference softmax(std::size_t axis);
Reference log_softmax(std::size_t axis);

/// x, then weight and bias where they are there, over the last `axes` axes.
Reference layer_norm(std::size_t axes, bool weight, bool bias, double eps);

Reference embedding(xgrad::Ids ids);
Reference masked_fill(xgrad::Mask mask, double value);
Reference sum(xgrad::Dims axes, bool keepdim);
Reference mean(xgrad::Dims axes, bool keepdim);
Reference reshape(xgrad::Shape shape);
Reference permute(xgrad::Shape order);
Reference cat(std::size_t axis);
Reference select(std::size_t axis, std::size_t index);
Reference slice(std::size_t axis, std::size_t first, std::size_t count, std::size_t step);

/// reduction: 'n'one, 's'um or 'm'ean.
Reference cross_entropy(xgrad::Ids target, char reduction, std::int64_t ignore_index);

Reference amax(xgrad::Dims axes, bool keepdim);
Reference amin(xgrad::Dims axes, bool keepdim);
Reference logsumexp(xgrad::Dims axes, bool keepdim);
Reference var(xgrad::Dims axes, bool keepdim, double correction);
Reference where(xgrad::Mask condition);
Reference stack(std::size_t axis);

/// The letters of each operand's axes and of the result's; an axis of length 1 broadcasts.
Reference einsum(std::vector<std::string> operands, std::string output);

/// y[index] = x[from(index)], or 0 where that is nothing; y has this shape.
Reference taken(xgrad::Shape shape, std::function<std::optional<xgrad::Shape>(const xgrad::Shape&)> from);

/// q, k, v, and perhaps numbers to add to the scores.
struct Attention {
  std::size_t heads = 0;
  bool causal = false;
  std::optional<double> scale = {};
  std::optional<xgrad::Mask> allowed = {};
};
Reference attention(Attention how);
Reference attention_weights(Attention how);

}  // namespace xgrad_tests::naive
