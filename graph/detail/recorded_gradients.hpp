#pragma once

// The check of gradients whose computation is recorded: what they depend on must be in their graphs.

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "../variable.hpp"

namespace xgrad::detail {

/// The Variables that a backward gets: the gradients of the results, and saved values that have a graph.
template <class T>
class Sources {
 public:
  static constexpr std::size_t gradient = std::numeric_limits<std::size_t>::max();

  struct Source {
    Variable<T>* variable;  ///< the argument of the next call of the backward
    std::size_t position;   ///< among the saved values, or `gradient`
  };

  /// Adds an argument, or the elements of a list, if they are Variables.
  template <class A>
  void add(A& argument, std::size_t position) {
    if constexpr (std::same_as<A, Variable<T>>) {
      if (argument.defined() && (argument.requires_grad() || position == gradient))
        all_.push_back({&argument, position});
    } else if constexpr (requires {
                           { *argument.begin() } -> std::same_as<Variable<T>&>;
                         }) {
      for (Variable<T>& one : argument) add(one, position);
    }
  }

  std::span<const Source> all() const noexcept { return all_; }

 private:
  std::vector<Source> all_;
};

/// Stores the gradients of `owner`, whose backward is recorded, in `grads`: backward(context, grads) computes
/// them from what the sources then are. Throws GraphError if one of them changes with a source without a
/// graph to it, as those that are computed on arrays do: derivatives of it would miss terms.
///
/// A gradient without a graph to any source, and a source in no graph of a gradient, may be right, as of
/// relu, whose mask does not change with small changes of x. So the source is changed a little: that must
/// change no element of the gradient a little. The gradient of a result without a graph gets one for this.
template <class T>
void recorded_gradients(const Node<T>& owner, const Sources<T>& sources, Needs needs, Variable<T>* grads,
                        void (*backward)(const void* context, Variable<T>* grads), const void* context);

}  // namespace xgrad::detail
