#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "../../pointwise/dropout.hpp"
#include "../attention.hpp"
#include "../attention_with_weights.hpp"
#include "kernel_mask.hpp"

// Shared code of the attention ops: the sizes of a call, its dropout, and its two implementations, by the
// fused kernels and composed of other ops.
namespace xgrad::detail {

/// One call: its sizes, the shape of its scores, and all its inputs except Variables.
struct AttentionPlan {
  const char* op;
  kernels::AttentionSizes sizes;
  kernels::AttentionLayout layout;
  std::size_t batch_axes;
  double scale, softcap;  // of which the latter is 0 without one
  kernels::KeyWindow window;
  Shape scores;  // (..., L, S), or (..., H, L, S) with num_heads
  std::shared_ptr<const Mask> allowed;
  double dropout_p;
  std::shared_ptr<const Array<std::uint8_t>> kept;  // bernoulli_bits(rows of scores, S, 1 - p), or null
};

/// Shared by a forward, its backward and its composed form.
using SharedPlan = std::shared_ptr<const AttentionPlan>;

/// Checks the shapes and options of a call in the name of `op`, and draws the dropout mask from the default
/// generator, as dropout(weights, p) would. `row` is the width of an array with q, k and v side by side; they
/// are arrays of their own if absent.
template <class T>
SharedPlan plan_attention(const char* op, const Shape& q, const Shape& k, const Shape& v,
                          const AttentionMask<T>& mask, const AttentionOptions& options,
                          std::optional<std::size_t> row = {});

/// num_kv_heads where it differs from num_heads.
std::optional<std::size_t> kv_heads_attribute(const AttentionPlan& plan);
/// An attribute that is left out where it is 0.
inline std::optional<std::size_t> unless_zero(std::size_t value) {
  return value == 0 ? std::nullopt : std::optional(value);
}

/// The shape of the output, for q of this shape.
Shape output_shape(const AttentionPlan& plan, Shape q);

template <class T>
struct QueriesKeysValues {
  const T *q, *k, *v;
};

/// Computes out, and returns what the backward needs: undefined unless recorded. `bias` is that of the mask,
/// or undefined.
template <class T>
Variable<T> attention_forward(const AttentionPlan& plan, const QueriesKeysValues<T>& from,
                              const Variable<T>& bias, bool recorded, T* out);

/// Computes the gradients whose pointers are not null; `saved` is the result of attention_forward.
template <class T>
void attention_backward(const AttentionPlan& plan, const T* dout, const QueriesKeysValues<T>& from,
                        const Variable<T>& bias, const Variable<T>& saved,
                        const kernels::AttentionGrads<T>& grads);

/// The forward, composed of ops.
template <class T>
AttentionResult<T> attention_composed(const AttentionPlan& plan, const Variable<T>& q, const Variable<T>& k,
                                      const Variable<T>& v, const Variable<T>& bias);

}  // namespace xgrad::detail
