#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../../graph/variable.hpp"
#include "../../graph/watch.hpp"

namespace xgrad::onnx::detail {

/// An argument of an op, with arrays of its own.
using AttributeCopy = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                   std::vector<double>, Ids, Mask>;

/// An op that a model called. Its Variables live on, so that each has an address of its own.
template <class T>
struct TracedOp {
  const OpInfo* op;
  std::string module;
  std::vector<Variable<T>> inputs;
  Variable<T> result;
  std::map<std::string, AttributeCopy> attributes;
};

/// Keeps all ops of this thread, as long as one lives.
template <class T>
class Trace : public Watcher {
 public:
  using Watcher::on_op;
  void on_op(const OpEvent<T>& event) override;

  const std::vector<TracedOp<T>>& ops() const { return ops_; }

 private:
  std::vector<TracedOp<T>> ops_;
};

}  // namespace xgrad::onnx::detail
