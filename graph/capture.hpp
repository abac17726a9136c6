#pragma once

// A training step that is captured: what it does is listed once, in memory of its own, and done again.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../kernels/capture.hpp"
#include "leaf.hpp"
#include "lifetime.hpp"
#include "pool.hpp"

namespace xgrad::detail {

/// The gradient that a step gives a leaf.
class LeafGradient {
 public:
  virtual ~LeafGradient() = default;
  virtual const void* leaf() const = 0;
  virtual bool leaf_has_gradient() const = 0;
  /// Makes it the leaf's.
  virtual void give() = 0;
  /// Whether nobody but the leaf holds it, too.
  virtual bool is_unshared() const = 0;
  /// Gives the leaf a copy, if it holds this one.
  virtual void part_from_leaf() = 0;
  /// Whether the leaf's gradient, another one, has the same bits.
  virtual bool equals_leafs() const = 0;
  virtual const void* elements() const = 0;
  /// Right after the leaf has got it: puts all but the elements where the step's calls do not write.
  virtual void settle() = 0;
  /// Before that: copies the elements to memory of its own, now and whenever it is collected.
  virtual void move() = 0;
  /// Fetches the elements that the step's calls have computed, if it was moved.
  virtual void collect() = 0;
};

/// Who captures a step of this thread is told of what is no kernel, too.
class StepCapturer : public kernels::Capturer {
 public:
  /// A call that draws random numbers to `data`.
  virtual void draw(const char* name, void* data, std::size_t bytes, std::unique_ptr<kernels::Call> call) = 0;
  /// A call of what changes parameters, gradients or other things outside of the step's arrays. It may call
  /// kernels, and takes its memory from the pool. If it is one of an object's, it is called as long as that
  /// lives.
  virtual void host(const char* name, std::unique_ptr<kernels::Call> call, const Lifetime* object) = 0;
  /// Whether the step may draw from it: whether it is the default one when the step begins.
  virtual bool draws_from(const void* generator) const = 0;
  /// The step reads a variable that is no input of an op.
  virtual void read(const Variable<float>& x) = 0;
  virtual void read(const Variable<double>& x) = 0;
  /// A leaf forgets its gradient.
  virtual void forget(const void* leaf, std::unique_ptr<kernels::Call> call) = 0;
  /// A leaf without gradient got this one.
  virtual void give(std::unique_ptr<LeafGradient> gradient) = 0;
  /// The step does what cannot be repeated.
  virtual void refuse(std::string why) = 0;
};

/// Where kernels::is_captured().
inline StepCapturer& step_capturer() { return static_cast<StepCapturer&>(*kernels::capturer); }

/// f(), which changes things outside of the step's arrays, as a call if a step is captured; and as one of the
/// object that has this lifetime.
template <class F>
[[gnu::cold, gnu::noinline]] void capture_host(const char* name, F f, const Lifetime* object = nullptr) {
  step_capturer().host(name, kernels::as_call(std::move(f)), object);
}

/// y = x, n elements each.
template <class E>
void copy_elements(const char* name, const E* x, std::size_t n, E* y) {
  kernels::as_captured(
      name, [=] { std::copy_n(x, n, y); }, x, y);
}

/// The same for elements that have been copied already.
template <class E>
void note_copy(const E* x, std::size_t n, E* y) {
  if (kernels::is_captured()) [[unlikely]]
    copy_elements("copy", x, n, y);
}

/// Says that a step which is captured cannot be.
inline void refuse_capture(const char* why) {
  if (kernels::is_captured()) [[unlikely]]
    step_capturer().refuse(why);
}

/// The step reads x, which is no input of an op.
template <class T>
void note_read(const Variable<T>& x) {
  if (kernels::is_captured()) [[unlikely]]
    step_capturer().read(x);
}

/// A leaf that had no gradient got its own, where kernels::is_captured().
template <class T>
void note_given(const Ref<Node<T>>& leaf);

/// Makes a leaf forget its gradient.
template <class T>
void capture_forgetting(const Ref<Node<T>>& leaf);

/// Stands for which modules are in another mode, training or evaluation, than at first.
extern std::atomic<std::uint64_t> module_modes;

/// What a step returns.
using StepResults = std::vector<std::variant<Variable<float>, Variable<double>>>;
using Step = std::function<StepResults()>;

/// True if steps can be captured and repeated here and now: nobody watches, gradients are recorded, and no
/// step is being captured that this would be a part of.
bool can_capture() noexcept;

struct CapturedState;

/// What a step does, to be done again with the same arrays.
class CapturedStep {
 public:
  /// `is_capturable` says of which ops all work is done by calls that are told to a StepCapturer.
  explicit CapturedStep(bool (*is_capturable)(std::string_view op));
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// An array that the step may read, and that stays where it is.
  void add_input(const void* data, std::size_t bytes);

  /// Makes the step, and keeps what it does if that can be repeated.
  StepResults capture(const Step& step);

  /// Makes the step, with inputs of the same elements, and what was captured beside it, and compares them bit
  /// for bit.
  StepResults check(const Step& step);

  /// What has to happen before the step can be repeated.
  enum class Readiness {
    ready,
    not_now,  ///< it has to be made, as gradients are there that the step would add to, or that others hold
    unsure,   ///< something changed that may have a part in it: check
    changed   ///< it is no longer what was captured
  };
  Readiness readiness() const;

  /// Does what was captured again. Throws what the step would.
  void replay();

  /// Of the last replay.
  const StepResults& results() const;

  /// Empty if it can be repeated, or else why not.
  const std::string& why_not() const;

 private:
  std::unique_ptr<CapturedState> state_;
};

}  // namespace xgrad::detail
