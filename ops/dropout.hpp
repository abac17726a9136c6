#pragma once

#include "../graph/variable.hpp"

namespace xgrad {

/// In training, zeroes each element with probability p and multiplies the others by 1 / (1 - p); else x
/// itself. The mask comes from the default generator. Throws ValueError for p outside [0, 1].
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html
template <class T>
Variable<T> dropout(const Variable<T>& x, double p = 0.5, bool training = true);

}  // namespace xgrad
