#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "../../graph/variable.hpp"
#include "../../graph/watch.hpp"

namespace xgrad::detail {

/// An attribute of an op, with copied arrays.
using AttributeCopy = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                   std::vector<double>, Ids, Mask>;

/// A module that called an op.
struct TracedModule {
  std::string name, type;  ///< as in RunningModule
};

/// A called op. Keeps its Variables alive, so that their addresses are unique.
template <class T>
struct TracedOp {
  const OpInfo* op;
  std::vector<TracedModule> modules;  ///< the innermost first
  std::vector<Variable<T>> inputs;
  Variable<T> result;
  std::map<std::string, AttributeCopy> attributes;
  std::size_t output = 0;  ///< index of the result
};

/// Whether to trace the ops of gradients, too.
enum class GradientOps { with, without };

/// Records the ops of this thread for the lifetime of the object.
template <class T>
class Trace : public Watcher {
 public:
  explicit Trace(GradientOps gradient_ops) : gradient_ops_(gradient_ops) {}

  using Watcher::on_op;
  void on_op(const OpEvent<T>& event) override;

  const std::vector<TracedOp<T>>& ops() const { return ops_; }

 private:
  GradientOps gradient_ops_;
  std::vector<TracedOp<T>> ops_;
};

}  // namespace xgrad::detail
