#pragma once

#include "../../../base/detail/text/json.hpp"

namespace xgrad::tokenizers::detail {

using xgrad::detail::Json;

}  // namespace xgrad::tokenizers::detail
