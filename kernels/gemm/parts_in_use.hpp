#pragma once

#include "../../base/detail/product_precision.hpp"

namespace xgrad::kernels {

/// Those of `asked` that this processor multiplies faster than floats; else 0. Two need a matrix unit: three
/// products of vectors take longer than one of floats.
detail::Parts parts_in_use(detail::Parts asked);

/// Whether parts are in use wherever they are asked for and can be computed, also where that is slow.
void force_parts(bool forced);

}  // namespace xgrad::kernels
