#pragma once

namespace xgrad::detail {

/// First member of a struct of options, so that each option needs its name: {.keepdim = true}, but not
/// {true}.
struct ByName {};

}  // namespace xgrad::detail
