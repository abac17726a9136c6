#pragma once

// To observe what a program computes, derive from Watcher, as DetectAnomaly and profile() do.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "../base/array.hpp"
#include "../base/detail/scoped_value.hpp"
#include "op.hpp"

namespace xgrad {

template <Real T>
class Variable;

namespace detail {

class Notification;

}  // namespace detail

/// An argument of an op that is no Variable: {"axis", -1}, {"eps", 1e-5}, {"ids", &ids}. Pointers are valid
/// during the call only.
struct Attribute {
  using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                             std::vector<double>, const Ids*, const Mask*>;

  const char* name;
  Value value;
};

/// A module whose forward pass is running.
struct RunningModule {
  virtual ~RunningModule() = default;

  std::string name;  ///< as in named_parameters() of the outermost one, "layers.0.norm1"; its own is empty
  std::string type;  ///< "LayerNorm"
  const RunningModule* outer = nullptr;  ///< the module that called this one; null for the outermost
};

/// An op that was computed, recorded or not.
template <class T>
struct OpEvent {
  const OpInfo& op;
  std::span<const Variable<T>* const> inputs;  ///< an undefined one stands for an operand that is not there
  const Variable<T>& result;
  std::span<const Attribute> attributes;
  std::uint64_t number;  ///< of the node that was recorded, higher than its inputs' numbers; 0 if none was
  std::size_t output;    ///< which of the op's results this is: an op that has several tells of each in turn
  const RunningModule* module;  ///< the innermost one that called the op; null if none did
  bool in_backward;             ///< computes a gradient, or adds two of them up
};

/// The backward of a recorded op, before and after.
template <class T>
struct BackwardEvent {
  const OpInfo& op;
  std::uint64_t number;                    ///< of OpEvent, of the first result's if there are several
  Variable<T> dy;                          ///< the gradient of the (first) result; undefined after
  std::span<const Variable<T>> gradients;  ///< of its inputs, undefined where none is needed; empty before
};

/// While an object lives, it is notified of everything that its thread computes; the newest watcher first.
/// Watching changes nothing: the same kernels run, and results have the same bits. Watchers are not notified
/// of ops that a watcher itself calls. An exception of a watcher propagates out of the op. Without a watcher,
/// an op costs one more branch.
class Watcher {
 public:
  Watcher();
  virtual ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  virtual void on_op(const OpEvent<float>&) {}
  virtual void on_op(const OpEvent<double>&) {}

  /// Pairs of these may lie within each other. on_backward_end() does not come if the backward throws.
  virtual void on_backward_begin(const BackwardEvent<float>&) {}
  virtual void on_backward_begin(const BackwardEvent<double>&) {}
  virtual void on_backward_end(const BackwardEvent<float>&) {}
  virtual void on_backward_end(const BackwardEvent<double>&) {}

  /// The forward pass of a module begins, or has ended, normally or by an exception.
  virtual void on_module_begin(const RunningModule&) noexcept {}
  virtual void on_module_end(const RunningModule&) noexcept {}

 private:
  friend class detail::Notification;

  Watcher* next_;  // older
};

namespace detail {

/// The newest watcher of this thread.
extern constinit thread_local Watcher* watchers;

inline bool is_watched() noexcept { return watchers != nullptr; }

/// Whether this thread is in a backward pass.
extern constinit thread_local bool in_backward;

/// Whether this thread computes ops that are one kernel as the single ops that they are made of.
extern constinit thread_local bool single_ops;

/// The innermost module that runs on this thread, as long as somebody watches.
const RunningModule* running_module() noexcept;

/// Tells the watchers that a module runs, as long as one lives; one without a module does nothing.
class [[nodiscard]] ModuleScope {
 public:
  ModuleScope() = default;
  explicit ModuleScope(std::unique_ptr<RunningModule> module);
  ~ModuleScope() {
    if (module_ != nullptr) [[unlikely]]
      end();
  }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  [[gnu::cold, gnu::noinline]] void end() noexcept;

  RunningModule* module_ = nullptr;  // owned
};

/// While an object lives, watchers are not notified of the ops of this thread: for the parts of an op.
class [[nodiscard]] Unwatched : protected ScopedValue<Watcher*> {
 public:
  Unwatched() noexcept : ScopedValue(watchers, nullptr) {}
};

/// While an object lives, watchers of this thread see single ops where the library has one kernel, with the
/// same numbers but for rounding.
class [[nodiscard]] SingleOps : ScopedValue<bool> {
 public:
  SingleOps() noexcept : ScopedValue(single_ops, true) {}
};

/// Attributes that are put together one by one; out of line, as every op does that.
class AttributeList {
 public:
  void add(const char* name, bool value);
  void add(const char* name, std::int64_t value);
  void add(const char* name, double value);
  void add(const char* name, std::string_view value);
  void add(const char* name, std::vector<std::int64_t> value);
  void add(const char* name, std::vector<double> value);
  void add(const char* name, const Ids* value);
  void add(const char* name, const Mask* value);

  std::span<const Attribute> attributes() const noexcept { return attributes_; }

 private:
  std::vector<Attribute> attributes_;
};

template <class T>
[[gnu::cold, gnu::noinline]] void notify_op(const OpInfo& op, std::span<const Variable<T>* const> inputs,
                                            const Variable<T>& result, std::span<const Attribute> attributes,
                                            std::size_t output);

template <class T>
[[gnu::cold, gnu::noinline]] void notify_backward_begin(const OpInfo& op, std::uint64_t number,
                                                        const Variable<T>& dy);

template <class T>
[[gnu::cold, gnu::noinline]] void notify_backward_end(const OpInfo& op, std::uint64_t number,
                                                      std::span<const Variable<T>> gradients);

}  // namespace detail
}  // namespace xgrad
