#pragma once

#include "../../base/detail/by_name.hpp"
#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

struct DropoutOptions {
  detail::ByName by_name = {};
  bool training = true;
};

/// In training, y = x m / (1 - p) and dx = dy m / (1 - p), with a random m that is 0 with probability p, else
/// 1; dx is exactly 0 where m is 0. Otherwise y = x and shares its elements. The mask is drawn from the
/// default generator. Throws ValueError for p outside [0, 1].
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html
template <class T>
Variable<T> dropout(const Variable<T>& x, double p = 0.5, DropoutOptions options = {});

namespace detail {

/// The factor of the elements that dropout keeps.
template <class T>
T dropout_scale(double p) {
  return p < 1 ? T{1} / static_cast<T>(1 - p) : T{0};
}

/// dropout for modules: returns x itself if nothing is dropped, so that a model in eval mode adds no node.
template <class T>
Variable<T> dropout_if_training(const Variable<T>& x, double p, bool training) {
  return training && p > 0 ? dropout(x, p) : x;
}

}  // namespace detail

namespace ops {

inline constexpr Op dropout("dropout", {"x"}, {"p", "training"});

}  // namespace ops
}  // namespace xgrad
