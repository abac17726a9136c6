#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../../autograd/detail/trace.hpp"
#include "../../base/detail/text/json_tree.hpp"
#include "../../models/module.hpp"

// Not installed: the ops of a program.

namespace xgrad::detail {

template <class T>
struct RecordedValue {
  enum class Kind { op, parameter, constant };

  Kind kind;
  std::string name;                   ///< of the op, the parameter or the buffer
  std::optional<std::string> module;  ///< that called the op
  std::vector<std::optional<std::size_t>> inputs;
  JsonTree attributes;
  Variable<T> variable;
  Variable<T> gradient;  ///< d(loss)/d(variable); undefined if the loss does not depend on it
};

template <class T>
struct RecordedGraph {
  std::vector<RecordedValue<T>> values;                      ///< inputs before results
  std::map<std::string, std::string> modules;                ///< types by name
  std::map<std::string, std::vector<std::string>> operands;  ///< names of each op's inputs
  std::map<std::string, std::string> formulas;               ///< of the ops that formulas.txt has
  std::size_t loss = 0;                                      ///< index in `values`
};

/// The ancestors of the loss and of other shown tensors among traced ops, with gradients; the leaves'
/// grad() is unchanged. Named leaves are parameters, or constants if they have no gradient. Throws ShapeError
/// if the loss is not a scalar, GraphError if it was not traced.
template <class T>
RecordedGraph<T> recorded_graph(const std::vector<TracedOp<T>>& ops, const Variable<T>& loss,
                                const std::vector<NamedParameter<T>>& names,
                                const std::vector<Variable<T>>& shown);

}  // namespace xgrad::detail
