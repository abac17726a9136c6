#pragma once

namespace xgrad::detail {

/// Calls visit(state) for a module and its submodules, parents before children.
template <class S, class Visit>
void for_each_module(S& state, const Visit& visit) {
  visit(state);
  for (const auto& [name, child] : state.children) for_each_module<S>(*child, visit);
}

}  // namespace xgrad::detail
