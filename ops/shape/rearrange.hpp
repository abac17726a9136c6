#pragma once

#include "../../base/dims.hpp"
#include "../../graph/op.hpp"
#include "../../graph/variable.hpp"

// The same elements at other places, some of them several times; gradients take the way back, and those of
// an element that comes several times add up. Axes may be negative. Errors: IndexError for an axis that x
// does not have. https://pytorch.org/docs/stable/torch.html#other-operations

namespace xgrad {

/// y[i] = x[n - 1 - i] along each of the axes. Throws ValueError for an axis that is named twice.
/// https://pytorch.org/docs/stable/generated/torch.flip.html
template <class T>
Variable<T> flip(const Variable<T>& x, const Dims& dims);

/// y[i + shift] = x[i] along each of the axes, what leaves at one end coming in at the other; without dims,
/// of all elements in row-major order. Throws ValueError unless there is a shift for each axis.
/// https://pytorch.org/docs/stable/generated/torch.roll.html
template <class T>
Variable<T> roll(const Variable<T>& x, std::ptrdiff_t shift);
template <class T>
Variable<T> roll(const Variable<T>& x, const Dims& shifts, const Dims& dims);

/// x so many times along each axis; more repeats than axes add new ones in front. Throws ShapeError for fewer
/// and for negative ones. https://pytorch.org/docs/stable/generated/torch.Tensor.repeat.html
template <class T>
Variable<T> repeat(const Variable<T>& x, const Dims& repeats);

/// What pad puts beside x.
enum class Padding {
  constant,   ///< a value
  reflect,    ///< x mirrored at its first and last element: c b | a b c | b a
  replicate,  ///< the first and the last element: a a | a b c | c c
  circular,   ///< the other end of x: b c | a b c | a b
};

/// x with so many elements before and after it: pad has two numbers for the last axis, two for the one before
/// it, and so on, for as many axes as there are. Negative ones cut off. Throws ShapeError where an axis would
/// get a negative length, and ValueError unless pad has pairs, reflect adds less than an axis's length,
/// circular no more than that, and replicate to no axis of length 0.
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
