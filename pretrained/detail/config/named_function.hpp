#pragma once

#include "../../../graph/variable.hpp"
#include "json.hpp"

// Not installed: functions that files name by PyTorch's classes.

namespace xgrad::pretrained::detail {

template <class T>
using VectorFunction = Variable<T> (*)(const Variable<T>&);

/// The function of a text such as "torch.nn.modules.activation.Tanh". Throws FileError for an unknown one.
template <class T>
VectorFunction<T> function_named(const Json& name);

}  // namespace xgrad::pretrained::detail
