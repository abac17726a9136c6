#pragma once

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

namespace xgrad {

/// The function of a gate.
enum class Gate {
  sigmoid,    ///< GLU
  relu,       ///< ReGLU
  silu,       ///< SwiGLU
  gelu,       ///< GEGLU, with the Gauss error function
  gelu_tanh,  ///< GEGLU, with gelu's tanh form
};

/// y = f(gate) x: gated linear units (Dauphin et al. 2017, arXiv:1612.08083; Shazeer 2020, arXiv:2002.05202).
/// gate, x and y have the same shape. dgate = dy x f'(gate), dx = dy f(gate). Throws ShapeError
/// "gated: gate and x must have the same shape, got (2, 3) and (3)", ValueError for another f.
template <class T>
Variable<T> gated(const Variable<T>& gate, const Variable<T>& x, Gate f);

/// y = a sigmoid(b) for the halves a and b of x along `dim`. Throws ShapeError for an odd length, IndexError
/// for a missing axis. https://pytorch.org/docs/stable/generated/torch.nn.functional.glu.html
template <class T>
Variable<T> glu(const Variable<T>& x, Int dim = -1);

namespace ops {

inline constexpr Op gated("gated", {"gate", "x"}, {"function"});

}  // namespace ops
}  // namespace xgrad
