#pragma once

#include <vector>

#include "module.hpp"

namespace xgrad {

/// Sets a module and its submodules to evaluation mode for the lifetime of the object, then restores the mode
/// of each, also after an exception: { const xgrad::EvalMode guard(model); accuracy(model); }
template <class T>
class EvalMode {
 public:
  [[nodiscard]] explicit EvalMode(const Module<T>& module);
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;
  ~EvalMode();

 private:
  Module<T> module_;
  std::vector<bool> modes_;  // of the module, then of its submodules, parents before children
};

}  // namespace xgrad
