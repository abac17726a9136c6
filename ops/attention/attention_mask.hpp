#pragma once

#include <memory>
#include <utility>

#include "../../graph/variable.hpp"

namespace xgrad {

/// Attention mask: a bool array (true: the query may attend to the key) or a bias added to the scores. It
/// broadcasts to the scores, (..., L, S) without num_heads, else (..., num_heads, L, S): one of keys of each
/// sequence is (batch, 1, 1, S), as padding_mask()'s, one of queries and keys (batch, 1, L, S). With
/// num_heads and one batch axis, (L, S) where batch = L, and (num_heads, L, S) where batch = num_heads, may
/// be meant so, too, and throw ShapeError; (1, L, S) and (1, num_heads, L, S) cannot be misread. An undefined
/// Variable is no mask. Copies share the array.
template <class T>
class AttentionMask {
 public:
  AttentionMask() = default;  ///< no mask
  /// True where a query may attend to a key; the mask is moved in.
  AttentionMask(Mask allowed) : allowed_(std::make_shared<const Mask>(std::move(allowed))) {}
  /// The same of an xtensor expression of bool.
  template <class E>
  requires(std::same_as<typename E::value_type, bool>) AttentionMask(const xt::xexpression<E>& allowed)
      : AttentionMask(Mask(allowed)) {}
  /// A bool mask with a shared array.
  AttentionMask(std::shared_ptr<const Mask> allowed) : allowed_(std::move(allowed)) {}
  /// A bias added to the scores; it may require a gradient.
  AttentionMask(Variable<T> bias) : bias_(std::move(bias)) {}
  /// The same of an expression of floating-point numbers. One of double does not compile for float.
  template <detail::FloatExpression E>
  AttentionMask(const E& bias) : bias_(bias) {}

  /// Null without a bool mask.
  const Mask* allowed() const& { return allowed_.get(); }
  const Mask* allowed() && = delete;
  const std::shared_ptr<const Mask>& shared_allowed() const& { return allowed_; }
  std::shared_ptr<const Mask> shared_allowed() && { return std::move(allowed_); }
  /// That of the mask or the bias; null without either.
  const Shape* shape() const& {
    if (allowed_ != nullptr) return &allowed_->shape();
    return bias_.defined() ? &bias_.shape() : nullptr;
  }
  const Shape* shape() && = delete;
  /// Undefined without a bias.
  const Variable<T>& bias() const& { return bias_; }
  Variable<T> bias() && { return bias_; }

 private:
  std::shared_ptr<const Mask> allowed_;
  Variable<T> bias_;
};

}  // namespace xgrad
