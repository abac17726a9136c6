#pragma once

// To observe what a program computes, derive from Watcher, as DetectAnomaly and profile() do.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "../base/array.hpp"
#include "../base/detail/module_frame.hpp"
#include "../base/detail/scoped_value.hpp"
#include "op.hpp"

namespace xgrad {

template <Real T>
class Variable;

namespace detail {

class Notification;

}  // namespace detail

/// An argument of an op that is not a Variable: {"axis", -1}, {"eps", 1e-5}, {"ids", &ids}. Pointers are
/// valid during the call only.
struct Attribute {
  using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                             std::vector<double>, const Ids*, const Mask*>;

  const char* name;
  Value value;
};

/// A module whose forward pass is running.
struct RunningModule {
  std::string name;  ///< "layers.0.norm1", as in named_parameters() of the outermost that runs, which has ""
  std::string type;  ///< "LayerNorm"
  const RunningModule* outer = nullptr;  ///< the module that called this one; null for the outermost
};

/// A computed op, recorded or not.
template <class T>
struct OpEvent {
  const OpInfo& op;
  std::span<const Variable<T>* const> inputs;  ///< undefined for a missing operand
  const Variable<T>& result;
  std::span<const Attribute> attributes;
  std::uint64_t number;         ///< of the recorded node, higher than its inputs' numbers; 0 if not recorded
  std::size_t output;           ///< index of the result: an op with several results causes one event for each
  const RunningModule* module;  ///< the innermost module that called the op, or null
  bool in_backward;             ///< true for an op of a gradient, including the addition of two gradients
};

/// The backward of a recorded op, before and after it runs.
template <class T>
struct BackwardEvent {
  const OpInfo& op;
  std::uint64_t number;                    ///< as in OpEvent; of the first result if there are several
  Variable<T> dy;                          ///< the gradient of the (first) result; undefined after
  std::span<const Variable<T>> gradients;  ///< of its inputs, undefined where not needed; empty before
};

/// Observes everything that its thread computes, for the lifetime of the object; the newest watcher is
/// notified first. Watching changes no results: the same kernels run. Watchers are not notified of ops that a
/// watcher calls. An exception of a watcher propagates from the op. Without a watcher, an op costs one more
/// branch.
class Watcher {
 public:
  Watcher();
  virtual ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  virtual void on_op(const OpEvent<float>&) {}
  virtual void on_op(const OpEvent<double>&) {}

  /// Pairs may nest. on_backward_end() is not called if the backward throws.
  virtual void on_backward_begin(const BackwardEvent<float>&) {}
  virtual void on_backward_begin(const BackwardEvent<double>&) {}
  virtual void on_backward_end(const BackwardEvent<float>&) {}
  virtual void on_backward_end(const BackwardEvent<double>&) {}

  /// Called when the forward pass of a module begins or ends, normally or by an exception.
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

/// Whether this thread runs fused ops as the single ops they are composed of.
extern constinit thread_local bool single_ops;

/// Lets errors and watchers know that a module runs, for the lifetime of the object.
class [[nodiscard]] ModuleScope {
 public:
  ModuleScope(std::uint64_t module, const std::string& type) : frame_{module, &type, module_frame} {
    if (is_watched()) [[unlikely]]
      begin();
    module_frame = &frame_;
  }
  ~ModuleScope() {
    module_frame = frame_.outer;
    if (watched_ != nullptr) [[unlikely]]
      end();
  }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  [[gnu::cold, gnu::noinline]] void begin();
  [[gnu::cold, gnu::noinline]] void end() noexcept;

  ModuleFrame frame_;
  RunningModule* watched_ = nullptr;  // owned
};

/// Disables watchers on this thread for the lifetime of the object: for ops inside an op.
class [[nodiscard]] Unwatched : protected ScopedValue<Watcher*> {
 public:
  [[nodiscard]] Unwatched() noexcept : ScopedValue(watchers, nullptr) {}
};

/// Replaces fused kernels with single ops for watchers of this thread, for the lifetime of the object;
/// results are equal up to rounding.
class [[nodiscard]] SingleOps : ScopedValue<bool> {
 public:
  [[nodiscard]] SingleOps() noexcept : ScopedValue(single_ops, true) {}
};

/// Builds a list of attributes; out of line, as every op uses it.
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
