#pragma once

// Values that an op saves for its backward. Changing a saved value in place before the backward is an error.

#include <cstdint>
#include <tuple>
#include <vector>

#include "variable.hpp"

namespace xgrad {

/// Lists the saved arguments of the backward, in order: Variables, vectors of them, Output(), Unread(v),
/// Recomputed(v), and other values, such as ids and masks, which are copied if the op is recorded.
template <class... S>
struct Saved {
  explicit Saved(const S&... saved) : things(saved...) {}
  std::tuple<const S&...> things;
};

/// Saves the result of the op itself: Saved(x, Output()). With several results, saves the one at this index.
struct Output {
  explicit Output(std::size_t result = 0) : place(result) {}
  std::size_t place;
};

/// Saves a Variable whose value is read only by a recorded backward: otherwise the value may change in place.
template <class V>
struct Unread {
  explicit Unread(const V& saved) : variable(saved) {}
  const V& variable;
};

/// Saves a Variable without its value where the op that it results from computes it again in little time, as
/// gelu does: its value need not stay in memory until the backward.
template <class V>
struct Recomputed {
  explicit Recomputed(const V& saved) : variable(saved) {}
  const V& variable;
};

namespace detail {

[[noreturn, gnu::cold]] void fail_changed(const char* op, std::size_t position, const Shape& shape);

/// A value and its version when saved.
template <class T>
struct SavedValue {
  explicit SavedValue(const Ref<Value<T>>& saved) : value(saved), version(value ? value->version : 0) {}

  void check(const Node<T>& owner, std::size_t position) const {
    if (value && value->version != version) [[unlikely]]
      fail_changed(owner.op->name, position, value->array.shape());
  }

  Ref<Value<T>> value;
  std::uint32_t version;
};

template <class T>
struct SavedVariable : SavedValue<T> {
  explicit SavedVariable(const Variable<T>& v)
      : SavedValue<T>(Access<T>::value(v)), node(Access<T>::node(v)) {}

  Variable<T> load(const Node<T>& owner, std::size_t position) const {
    this->check(owner, position);
    return Access<T>::make(this->value, recording ? node : Ref<Node<T>>());
  }

  Ref<Node<T>> node;
};

/// Only the value of a result: keeping the Variable would create a cycle.
template <class T>
struct SavedOutput : SavedValue<T> {
  SavedOutput(const Variable<T>& result, std::size_t which)
      : SavedValue<T>(Access<T>::value(result)), place(which) {}

  Variable<T> load(Node<T>& owner, std::size_t position) const {
    this->check(owner, position);
    if (!recording) return Access<T>::make(this->value, {});
    return Access<T>::make(this->value, node_of_result(owner, place, this->value->array.shape()));
  }

  std::size_t place;
};

template <class T>
struct SavedUnread {
  Variable<T> load(const Node<T>& owner, std::size_t position) const {
    return recording ? saved.load(owner, position) : Access<T>::make(saved.value, {});
  }

  SavedVariable<T> saved;
};

template <class T>
class SavedRecomputed {
 public:
  explicit SavedRecomputed(const Variable<T>& v)
      : maker_(recomputable(v) ? Access<T>::node(v) : Ref<Node<T>>()), saved_(maker_ ? Variable<T>() : v) {
    if (maker_) maker_->recomputations.add();
  }
  SavedRecomputed(SavedRecomputed&&) noexcept = default;
  SavedRecomputed& operator=(SavedRecomputed&&) = delete;
  ~SavedRecomputed() {
    if (maker_) maker_->recomputations.drop();
  }

  Variable<T> load(const Node<T>& owner, std::size_t position) const {
    if (!maker_) return saved_.load(owner, position);
    return Access<T>::make(Access<T>::value(maker_->recompute()), recording ? maker_ : Ref<Node<T>>());
  }

 private:
  /// Not if the value was changed in place since.
  static bool recomputable(const Variable<T>& v) {
    const Ref<Node<T>>& node = Access<T>::node(v);
    return node && node->can_recompute() && Access<T>::value(v)->version == 0;
  }

  Ref<Node<T>> maker_;  // empty if the value is saved
  SavedVariable<T> saved_;
};

template <class T>
struct SavedList {
  std::vector<Variable<T>> load(const Node<T>& owner, std::size_t position) const {
    std::vector<Variable<T>> loaded;
    loaded.reserve(saved.size());
    for (const SavedVariable<T>& one : saved) loaded.push_back(one.load(owner, position));
    return loaded;
  }

  std::vector<SavedVariable<T>> saved;
};

template <class S>
struct SavedCopy {
  template <class T>
  const S& load(const Node<T>&, std::size_t) const {
    return copy;
  }

  S copy;
};

/// What the node of an op with these results stores for an argument of Saved().
template <class T, class S>
SavedCopy<S> kept(const Variable<T>*, const S& thing) {
  return {thing};
}
template <class T>
SavedVariable<T> kept(const Variable<T>*, const Variable<T>& variable) {
  return SavedVariable<T>(variable);
}
template <class T>
SavedList<T> kept(const Variable<T>*, const std::vector<Variable<T>>& list) {
  return {{list.begin(), list.end()}};
}
template <class T>
SavedUnread<T> kept(const Variable<T>*, const Unread<Variable<T>>& unread) {
  return {SavedVariable<T>(unread.variable)};
}
template <class T>
SavedRecomputed<T> kept(const Variable<T>*, const Recomputed<Variable<T>>& recomputed) {
  return SavedRecomputed<T>(recomputed.variable);
}
template <class T>
SavedOutput<T> kept(const Variable<T>* results, const Output& output) {
  return {results[output.place], output.place};
}

}  // namespace detail
}  // namespace xgrad
