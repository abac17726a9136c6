#pragma once

#include <cstdint>
#include <string>

namespace xgrad::detail {

/// The place of a live module in the trees of modules, for errors and watchers, which name modules by it.
class ModulePlace {
 public:
  ModulePlace();
  ~ModulePlace();
  ModulePlace(const ModulePlace&) = delete;
  ModulePlace& operator=(const ModulePlace&) = delete;

  /// From 1; no two modules of a process have the same, which what they recorded keeps.
  std::uint64_t id() const noexcept { return id_; }

  /// Makes it a child of another one, under this name.
  void add_to(const ModulePlace& parent, const std::string& name) const;

 private:
  std::uint64_t id_;
};

/// A module that runs on this thread; they form a list on the stack, innermost first.
struct ModuleFrame {
  std::uint64_t id;         ///< 0 for none, in the backward of an op that no module called
  const std::string* type;  ///< null in a backward, for the module that called the op
  const ModuleFrame* outer;
};

extern constinit thread_local const ModuleFrame* module_frame;

/// The module that runs on this thread, or 0.
inline std::uint64_t running_module() noexcept { return module_frame != nullptr ? module_frame->id : 0; }

/// "layers.0.norm1", as in named_parameters() of the outermost that runs, which has ""; in a backward, of the
/// outermost that is alive. One that is no child of its caller has its type for a name.
std::string name_of(const ModuleFrame& frame);

}  // namespace xgrad::detail
