#include "module_frame.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace xgrad::detail {

constinit thread_local const ModuleFrame* module_frame = nullptr;

namespace {

/// The parents of each live module, with its names there. Never destroyed: modules may outlive it.
struct Places {
  std::mutex mutex;
  std::uint64_t newest = 0;
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::string>>> parents;
};

Places& places() {
  static Places& all = *new Places;
  return all;
}

/// The dotted name of `module` below `from`, or below the outermost that is alive if that is 0.
std::optional<std::string> path(const Places& all, std::uint64_t from, std::uint64_t module) {
  if (module == from) return "";
  const auto place = all.parents.find(module);
  if (place == all.parents.end()) return std::nullopt;
  bool is_outermost = true;
  for (const auto& [parent, name] : place->second) {
    if (!all.parents.contains(parent)) continue;
    is_outermost = false;
    if (const std::optional<std::string> above = path(all, from, parent))
      return above->empty() ? name : *above + "." + name;
  }
  return is_outermost && from == 0 ? std::optional<std::string>("") : std::nullopt;
}

}  // namespace

ModulePlace::ModulePlace() {
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  id_ = ++all.newest;
  all.parents.emplace(id_, 0);
}

ModulePlace::~ModulePlace() {
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  all.parents.erase(id_);
}

void ModulePlace::add_to(const ModulePlace& parent, const std::string& name) const {
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  auto& own = all.parents.at(id_);
  // A module that outlives many others would keep the names that it had in them.
  std::erase_if(own, [&](const auto& known) { return !all.parents.contains(known.first); });
  own.emplace_back(parent.id_, name);
}

std::string name_of(const ModuleFrame& frame) {
  if (frame.id == 0) return "";
  const bool in_backward = frame.type == nullptr;
  if (!in_backward && (frame.outer == nullptr || frame.outer->id == 0)) return "";
  std::optional<std::string> own;
  {
    Places& all = places();
    const std::lock_guard lock(all.mutex);
    own = path(all, in_backward ? 0 : frame.outer->id, frame.id);
  }
  if (in_backward) return own.value_or("");
  const std::string above = name_of(*frame.outer);
  const std::string& below = own ? *own : *frame.type;
  return above.empty() || below.empty() ? above + below : above + "." + below;
}

}  // namespace xgrad::detail
