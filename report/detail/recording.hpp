#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../../graph/variable.hpp"
#include "../../graph/watch.hpp"
#include "../../models/module.hpp"

// Not installed: the ops of a program.

namespace xgrad::detail {

template <class T>
struct RecordedValue {
  enum class Kind { op, parameter, constant };

  Kind kind;
  std::string name;                   ///< of the op or the parameter
  std::optional<std::string> module;  ///< that called the op
  std::vector<std::optional<std::size_t>> inputs;
  nlohmann::json attributes;
  Variable<T> variable;
  Variable<T> gradient;  ///< d(loss)/d(variable); undefined if the loss does not depend on it
};

template <class T>
struct RecordedGraph {
  std::vector<RecordedValue<T>> values;                      ///< inputs before results
  std::map<std::string, std::string> modules;                ///< types by name
  std::map<std::string, std::vector<std::string>> operands;  ///< names of each op's inputs
  std::size_t loss = 0;                                      ///< index in `values`
};

/// Records the ops of this thread for the lifetime of the object, except those of gradients.
template <class T>
class Recorder : public Watcher {
 public:
  using Watcher::on_op;
  void on_op(const OpEvent<T>& event) override;

  /// The ancestors of the loss and of other shown tensors, with gradients; the leaves' grad() is unchanged.
  /// Named leaves are parameters. Throws ShapeError if the loss is not a scalar, GraphError if it was not
  /// recorded.
  RecordedGraph<T> graph_of(const Variable<T>& loss, const std::vector<NamedParameter<T>>& names,
                            const std::vector<Variable<T>>& shown = {}) const;

 private:
  /// A detached variable has the same value, but no node.
  using Key = std::pair<const void*, const void*>;

  static Key key_of(const Variable<T>& variable) {
    return {Access<T>::value(variable).get(), Access<T>::node(variable).get()};
  }

  void add(RecordedValue<T> value);
  std::optional<std::size_t> find(const Variable<T>& variable) const;
  std::optional<std::size_t> id_of(const Variable<T>& variable);

  std::map<Key, std::size_t> ids_;
  RecordedGraph<T> graph_;
};

}  // namespace xgrad::detail
