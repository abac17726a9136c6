#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../../graph/variable.hpp"
#include "../../models/module.hpp"

// Not installed: what one forward pass computed.

namespace xgrad::detail {

template <class T>
struct RecordedValue {
  enum class Kind { op, parameter, constant };

  Kind kind;
  std::string name;                   ///< of the op or the parameter
  std::optional<std::string> module;  ///< that computed it
  std::vector<std::optional<std::size_t>> inputs;
  nlohmann::json attributes;
  Variable<T> variable;
  Variable<T> gradient;  ///< d(loss)/d(variable); undefined if the loss does not depend on it
};

template <class T>
struct RecordedGraph {
  std::vector<RecordedValue<T>> values;        ///< inputs before results
  std::map<std::string, std::string> modules;  ///< types by name
  std::size_t loss = 0;                        ///< its place in `values`
};

/// Calls loss(), which returns a scalar, and notes every single op with its gradient; the leaves' own
/// gradients stay as they are. Throws ShapeError if the loss is no scalar.
template <class T>
RecordedGraph<T> record_graph(const std::function<Variable<T>()>& loss,
                              const std::vector<NamedParameter<T>>& parameters);

}  // namespace xgrad::detail
