#pragma once

#include "../../../base/detail/text/json.hpp"

namespace xgrad::pretrained::detail {

using xgrad::detail::Json;

}  // namespace xgrad::pretrained::detail
