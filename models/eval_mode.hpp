#pragma once

#include <vector>

#include "module.hpp"

namespace xgrad {

/// While it lives, a module and all below it are in evaluation mode; at the end each has the mode that it
/// had, after an exception, too: { const xgrad::EvalMode guard(model); accuracy(model); }
template <class T>
class EvalMode {
 public:
  explicit EvalMode(const Module<T>& module);
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;
  ~EvalMode();

 private:
  Module<T> module_;
  std::vector<bool> modes_;  // of the module, then of all below it, each before its children
};

}  // namespace xgrad
