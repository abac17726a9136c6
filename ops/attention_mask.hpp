#pragma once

#include <memory>
#include <utility>

#include "../graph/variable.hpp"

namespace xgrad {

/// Who may attend to whom: a bool array (true: may) or numbers added to the scores. It broadcasts to the
/// scores, (..., L, S) or (..., num_heads, L, S). An undefined Variable is no mask. Copies share the array.
template <class T>
class AttentionMask {
 public:
  AttentionMask() = default;  ///< everybody to everybody
  AttentionMask(Mask allowed) : allowed_(std::make_shared<const Mask>(std::move(allowed))) {}
  AttentionMask(std::shared_ptr<const Mask> allowed) : allowed_(std::move(allowed)) {}
  AttentionMask(Variable<T> bias) : bias_(std::move(bias)) {}

  const Mask* allowed() const { return allowed_.get(); }
  const std::shared_ptr<const Mask>& shared_allowed() const { return allowed_; }
  const Variable<T>& bias() const { return bias_; }

 private:
  std::shared_ptr<const Mask> allowed_;
  Variable<T> bias_;
};

}  // namespace xgrad
