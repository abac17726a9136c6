#include "watch.hpp"

#include <type_traits>
#include <utility>

#include "variable.hpp"

namespace xgrad {
namespace detail {

constinit thread_local Watcher* watchers = nullptr;
constinit thread_local bool in_backward = false;
constinit thread_local bool single_ops = false;

namespace {

constinit thread_local const RunningModule* innermost = nullptr;

/// In place: g++ 14 suspects that a move of an attribute reads what it does not hold.
template <class V>
void set(Attribute& attribute, const char* name, V&& value) {
  attribute.name = name;
  attribute.value.template emplace<std::decay_t<V>>(std::forward<V>(value));
}

}  // namespace

/// Calls the watchers of this thread, without notifying them of what they compute meanwhile.
class Notification : Unwatched {
 public:
  template <class Tell>
  void all(const Tell& tell) const {
    for (Watcher* watcher = before(); watcher != nullptr; watcher = watcher->next_) tell(*watcher);
  }
};

/// A module that calls a forward pass of its own is already known.
void ModuleScope::begin() {
  if (innermost != nullptr && frame_.outer != nullptr && frame_.outer->id == frame_.id) return;
  watched_ = new RunningModule{.name = name_of(frame_), .type = *frame_.type, .outer = innermost};
  Notification().all([this](Watcher& watcher) { watcher.on_module_begin(*watched_); });
  innermost = watched_;
}

void ModuleScope::end() noexcept {
  Notification().all([this](Watcher& watcher) { watcher.on_module_end(*watched_); });
  innermost = watched_->outer;
  delete watched_;
}

void AttributeList::add(const char* name, bool value) { set(attributes_.emplace_back(), name, value); }
void AttributeList::add(const char* name, std::int64_t value) {
  set(attributes_.emplace_back(), name, value);
}
void AttributeList::add(const char* name, double value) { set(attributes_.emplace_back(), name, value); }
void AttributeList::add(const char* name, std::string_view value) {
  set(attributes_.emplace_back(), name, std::string(value));
}
void AttributeList::add(const char* name, std::vector<std::int64_t> value) {
  set(attributes_.emplace_back(), name, std::move(value));
}
void AttributeList::add(const char* name, std::vector<double> value) {
  set(attributes_.emplace_back(), name, std::move(value));
}
void AttributeList::add(const char* name, const Ids* value) { set(attributes_.emplace_back(), name, value); }
void AttributeList::add(const char* name, const Mask* value) { set(attributes_.emplace_back(), name, value); }

template <class T>
void notify_op(const OpInfo& op, std::span<const Variable<T>* const> inputs, const Variable<T>& result,
               std::span<const Attribute> attributes, std::size_t output) {
  const Node<T>* const node = Access<T>::node(result).get();
  const OpEvent<T> event{op,     inputs,    result,     attributes, node != nullptr ? node->order : 0,
                         output, innermost, in_backward};
  Notification().all([&](Watcher& watcher) { watcher.on_op(event); });
}

template <class T>
void notify_backward_begin(const OpInfo& op, std::uint64_t number, const Variable<T>& dy) {
  const BackwardEvent<T> event{op, number, dy, {}};
  Notification().all([&](Watcher& watcher) { watcher.on_backward_begin(event); });
}

template <class T>
void notify_backward_end(const OpInfo& op, std::uint64_t number, std::span<const Variable<T>> gradients) {
  const BackwardEvent<T> event{op, number, {}, gradients};
  Notification().all([&](Watcher& watcher) { watcher.on_backward_end(event); });
}

#define XGRAD_INSTANTIATE(T)                                                                      \
  template void notify_op(const OpInfo&, std::span<const Variable<T>* const>, const Variable<T>&, \
                          std::span<const Attribute>, std::size_t);                               \
  template void notify_backward_begin(const OpInfo&, std::uint64_t, const Variable<T>&);          \
  template void notify_backward_end(const OpInfo&, std::uint64_t, std::span<const Variable<T>>);

XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace detail

Watcher::Watcher() : next_(std::exchange(detail::watchers, this)) {}

Watcher::~Watcher() {
  Watcher** link = &detail::watchers;
  while (*link != nullptr && *link != this) link = &(*link)->next_;
  if (*link == this) *link = next_;
}

}  // namespace xgrad
