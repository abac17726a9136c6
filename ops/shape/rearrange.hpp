#pragma once

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// The same elements at other positions, possibly repeated; gradients return to the original positions, and
// those of a repeated element add up. Axes may be negative. Errors: IndexError for a missing axis.
// https://pytorch.org/docs/stable/torch.html#other-operations

namespace xgrad {

/// y[i] = x[n - 1 - i] along each of the axes. Throws ValueError for a duplicate axis.
/// https://pytorch.org/docs/stable/generated/torch.flip.html
template <class T>
Variable<T> flip(const Variable<T>& x, const Dims& dims);

/// y[i + shift] = x[i] along each of the axes, cyclically; without dims, over all elements in row-major
/// order. Throws ValueError unless each axis has a shift.
/// https://pytorch.org/docs/stable/generated/torch.roll.html
template <class T>
Variable<T> roll(const Variable<T>& x, Int shift);
template <class T>
Variable<T> roll(const Variable<T>& x, const Dims& shifts, const Dims& dims);

/// x repeated along each axis; more repeats than axes add new axes in front. Throws ShapeError for fewer and
/// for negative ones. https://pytorch.org/docs/stable/generated/torch.Tensor.repeat.html
template <class T>
Variable<T> repeat(const Variable<T>& x, const Dims& repeats);

/// What pad adds around x.
enum class Padding {
  constant,   ///< a constant value
  reflect,    ///< x mirrored at its first and last element: c b | a b c | b a
  replicate,  ///< the first and the last element repeated: a a | a b c | c c
  circular,   ///< the other end of x: b c | a b c | a b
};

/// x padded before and after: pad has two numbers for the last axis, two for the one before it, and so on,
/// for any number of axes. Negative numbers crop. Throws ShapeError if an axis would get a negative length,
/// and ValueError unless pad has pairs, reflect adds less than an axis's length, circular no more than what
/// negative numbers leave of it, and replicate to no axis of length 0.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.pad.html
template <class T>
Variable<T> pad(const Variable<T>& x, const Dims& pad, Padding mode = Padding::constant,
                std::type_identity_t<T> value = 0);

namespace ops {

inline constexpr Op roll("roll", {"x"}, {"shifts", "dims"});
inline constexpr Op pad("pad", {"x"}, {"before", "after", "value"});
inline constexpr Op repeat("repeat", {"x"}, {"repeats"});
inline constexpr Op flip("flip", {"x"}, {"dims"});

}  // namespace ops
}  // namespace xgrad
