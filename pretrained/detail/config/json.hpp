#pragma once

#include "../../../tokenizers/detail/files/json.hpp"

namespace xgrad::pretrained::detail {

using tokenizers::detail::Json;

}  // namespace xgrad::pretrained::detail
