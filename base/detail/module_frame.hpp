#pragma once

#include <string>

namespace xgrad::detail {

/// A module whose forward pass runs on this thread; they form a list on the stack, innermost first, which
/// errors name.
struct ModuleFrame {
  const void* module;
  const std::string* type;
  std::string (*name)(const ModuleFrame&);  ///< "layers.0.norm1", from the outermost, which has ""
  const ModuleFrame* outer;
};

extern constinit thread_local const ModuleFrame* module_frame;

}  // namespace xgrad::detail
