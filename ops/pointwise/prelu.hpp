#pragma once

#include "../../graph/variable.hpp"

namespace xgrad {

/// y = x where x > 0, else weight x: x (N, C, ...), weight (C), (1) or (); x of one axis or none has one
/// channel.
/// dx = dy, or weight dy where x <= 0; dweight = dy x summed over what is not above 0. Throws ShapeError for
/// another weight. He et al. 2015, arXiv:1502.01852.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.prelu.html
template <class T>
Variable<T> prelu(const Variable<T>& x, const Variable<T>& weight);

}  // namespace xgrad
