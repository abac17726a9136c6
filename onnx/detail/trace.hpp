#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../../graph/variable.hpp"
#include "../../graph/watch.hpp"

namespace xgrad::onnx::detail {

/// An attribute of an op, with copied arrays.
using AttributeCopy = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                   std::vector<double>, Ids, Mask>;

/// A called op. Keeps its Variables alive, so that their addresses are unique.
template <class T>
struct TracedOp {
  const OpInfo* op;
  std::string module;
  std::vector<Variable<T>> inputs;
  Variable<T> result;
  std::map<std::string, AttributeCopy> attributes;
};

/// Records all ops of this thread for the lifetime of the object.
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
