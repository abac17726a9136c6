#pragma once

// captured(): a training step whose calls of kernels are listed once and made again from the list.

#include <algorithm>
#include <any>
#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../graph/capture.hpp"

namespace xgrad {

struct CapturedOptions {
  /// A step is captured for arguments of so many shapes, each with memory of its own; the step of others is
  /// recorded each time.
  std::size_t most_shapes = 4;
};

namespace detail {

/// An array that a step reads: where it begins, and how many bytes it has.
using StepInput = std::pair<const void*, std::size_t>;

/// A step whose arguments have certain shapes, on its way to be repeated.
class CapturedShapes {
 public:
  CapturedShapes();
  ~CapturedShapes();
  CapturedShapes(const CapturedShapes&) = delete;
  CapturedShapes& operator=(const CapturedShapes&) = delete;

  enum class Next { record, capture, check, replay };
  /// What has to be done for a call.
  Next next();

  /// The step was made, as next() said record.
  void recorded();
  /// Does what next() said. Throws what the step does.
  StepResults capture(const Step& step, std::span<const StepInput> inputs);
  StepResults check(const Step& step);
  const StepResults& replay();

  std::size_t replays() const { return replays_; }
  /// Of the last call: why the next one like it is no replay.
  const std::string& why_not() const { return why_not_now_.empty() ? why_not_ : why_not_now_; }

 private:
  enum class Stage { fresh, known, captured, trusted, refused };

  void enter(Stage stage, std::string why_not);
  void start_again(std::string why);

  Stage stage_ = Stage::fresh;
  std::string why_not_, why_not_now_;
  std::unique_ptr<CapturedStep> step_;
  bool may_differ_ = false;  ///< something has changed since the step was captured
  std::size_t replays_ = 0, restarts_ = 0;
  std::size_t unchecked_ = 0, next_check_ = 0;  ///< replays since the last check, and how many until the next
};

template <class A>
inline constexpr bool is_step_argument = is_variable<A>;
template <class E>
inline constexpr bool is_step_argument<Array<E>> = true;

template <class A>
const auto& elements_of(const A& argument) {
  if constexpr (is_variable<A>) {
    return argument.value();
  } else {
    return argument;
  }
}

template <class A>
using element_of = std::remove_cvref_t<decltype(*elements_of(std::declval<const A&>()).data())>;

}  // namespace detail

/// What captured() returns.
template <class F>
class Captured {
 public:
  explicit Captured(F step, CapturedOptions options = {}) : step_(std::move(step)), options_(options) {}
  Captured(Captured&&) = default;
  Captured& operator=(Captured&&) = default;

  /// Makes a step. The arguments are arrays, such as Ids, Masks and Array<T>, and Variables that require no
  /// gradient. Returns what the step returns, a Variable or nothing, without its graph.
  template <class... A>
  auto operator()(const A&... arguments) {
    using detail::StepResults;
    using Result = std::remove_cvref_t<std::invoke_result_t<F&, const A&...>>;
    static_assert((... && detail::is_step_argument<A>), "arguments of a step must be arrays or Variables");
    static_assert(std::is_void_v<Result> || detail::is_variable<Result>,
                  "a captured step must return a Variable or nothing");
    using Own = std::tuple<A...>;
    const auto made_with = [this](const A&... some) -> detail::Step {
      return [this, &some...]() -> StepResults {
        if constexpr (std::is_void_v<Result>) {
          step_(some...);
          return {};
        } else {
          StepResults results;
          results.emplace_back(step_(some...));
          return results;
        }
      };
    };
    last_ = find(arguments...);
    switch (last_ != nullptr ? last_->shapes.next() : Next::record) {
      case Next::replay:
        copy(*std::any_cast<Own>(&last_->own), arguments...);
        return result<Result>(last_->shapes.replay(), /*is_kept=*/true);
      case Next::check:
        copy(*std::any_cast<Own>(&last_->own), arguments...);
        return result<Result>(last_->shapes.check(made_with(arguments...)));
      case Next::capture: {
        Own& own = *std::any_cast<Own>(&last_->own);
        copy(own, arguments...);
        const auto inputs = std::apply(
            [](const A&... some) { return std::array<detail::StepInput, sizeof...(A)>{input_of(some)...}; },
            own);
        return result<Result>(last_->shapes.capture(std::apply(made_with, own), inputs));
      }
      case Next::record:
        break;
    }
    const StepResults results = made_with(arguments...)();
    if (last_ != nullptr) last_->shapes.recorded();
    return result<Result>(results);
  }

  /// How many steps were replays.
  std::size_t replays() const {
    std::size_t count = 0;
    for (const Entry& entry : entries_) count += entry.shapes.replays();
    return count;
  }

  /// Empty if the last step can be replayed when its arguments have these shapes again; else why not, such as
  /// "the op 'sort' is none of those that can be captured".
  std::string why_not() const { return last_ != nullptr ? last_->shapes.why_not() : why_not_; }

 private:
  using Next = detail::CapturedShapes::Next;

  struct Entry {
    explicit Entry(std::any arguments) : own(std::move(arguments)) {}

    std::any own;  // the tuple of arguments that captured calls read
    detail::CapturedShapes shapes;
  };

  /// What is captured, or is to be, for arguments like these; null if nothing is.
  template <class... A>
  Entry* find(const A&... arguments) {
    for (Entry& entry : entries_) {
      const auto* const own = std::any_cast<std::tuple<A...>>(&entry.own);
      if (own != nullptr &&
          std::apply([&](const A&... some) { return (... && fits(some, arguments)); }, *own))
        return &entry;
    }
    if ((... || requires_grad(arguments))) {
      why_not_ = "an argument requires a gradient";
      return nullptr;
    }
    if (entries_.size() >= options_.most_shapes) {
      why_not_ = "steps are captured for other shapes of the arguments, and for no more";
      return nullptr;
    }
    return &entries_.emplace_back(std::tuple<A...>(A(detail::elements_of(arguments))...));
  }

  template <class A>
  static bool requires_grad(const A& argument) {
    if constexpr (detail::is_variable<A>) return argument.requires_grad();
    return false;
  }

  template <class A>
  static bool fits(const A& own, const A& argument) {
    return same_shape(own.shape(), argument.shape()) && !requires_grad(argument);
  }

  template <class... A>
  static void copy(std::tuple<A...>& own, const A&... arguments) {
    const auto copy_one = [](const auto& from, auto& to) {
      using E = detail::element_of<std::remove_cvref_t<decltype(to)>>;
      const auto& elements = detail::elements_of(from);
      // a captured step may write where a Variable of its own must not be changed in place
      std::copy_n(elements.data(), elements.size(), const_cast<E*>(detail::elements_of(to).data()));
    };
    std::apply([&](A&... some) { (copy_one(arguments, some), ...); }, own);
  }

  template <class A>
  static detail::StepInput input_of(const A& argument) {
    const auto& elements = detail::elements_of(argument);
    return {elements.data(), elements.size() * sizeof(detail::element_of<A>)};
  }

  /// What the step returned; a copy if it is kept for replays.
  template <class Result>
  static Result result(const detail::StepResults& results, bool is_kept = false) {
    if constexpr (!std::is_void_v<Result>) {
      const Result& y = std::get<Result>(results.front());
      if (!is_kept) return y.detach();
      Result fresh = detail::empty<typename Result::value_type>(y.shape());
      std::copy_n(detail::data(y), y.size(), detail::data(fresh));
      return fresh;
    }
  }

  F step_;
  CapturedOptions options_;
  std::list<Entry> entries_;
  Entry* last_ = nullptr;  // that the last arguments fit
  std::string why_not_ = "it has not been called";
};

/// A training step that is recorded once and then replayed: its calls of kernels are listed, with the arrays
/// that they read and write, and made again without building a graph, as long as its arguments have the same
/// shapes. Losses, gradients and weights have the bits that they have without, dropout and random numbers
/// included. For small models, where a step is hardly more than that overhead.
///
///     auto step = xgrad::captured([&](const xgrad::Ids& ids, const xgrad::Ids& labels) {
///       optimizer.zero_grad();
///       const xgrad::Variable<float> loss = cross_entropy(model.class_logits(ids), labels);
///       loss.backward();
///       xgrad::each_time([&] { norm = clip_grad_norm(optimizer.parameters(), 1.0); });
///       optimizer.step();
///       return loss;
///     });
///
/// The first call records; the second one captures; the third does both, and compares every bit. From then on
/// calls are replays, but for one in four times as many as before, which is checked again. A call is recorded
/// as usual while somebody watches, under NoGrad, or with a gradient that others hold; it is checked again
/// when a module is in another mode, training or evaluation, or what the step reads has more or fewer
/// handles; and after another MatmulPrecision, or when an optimizer or a scheduler that it calls is gone,
/// everything is captured anew. set_lr() between calls, schedulers, and optimizers' states that are loaded
/// have their effect, as optimizers and schedulers are called in each replay. Variables that are exchanged
/// for each other between calls have to be arguments: their handles are as many as before.
///
/// What the step does besides, on the host, happens only in calls that are recorded: it must not depend on
/// what it is called for, not compute with elements on its own, and change nothing that matters later, unless
/// by each_time(). What is noticed stops the capture, and steps stay recorded: why_not() says so. That are
/// ops that are not known to be captured as a whole, elements that no op has computed, item(), numbers drawn
/// in the step but for dropout's and bernoulli's from the default generator, seeds that it sets, watchers
/// that it makes, gradients that add up over several calls. All arrays that the step reads have to be its
/// arguments, or Variables. A captured step is used by one thread at a time. What it refers to has to live as
/// long as it is called; it may itself live longer.
///
/// Throws what the step throws, at the same place; and GraphError if a later check fails although nothing
/// has changed: what the step was called for since the last check may be wrong then.
///
/// The same for CUDA: https://pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
template <class F>
Captured<F> captured(F step, CapturedOptions options = {}) {
  return Captured<F>(std::move(step), options);
}

/// Calls f(), in a captured step in each replay, too, at the same place: for what is to happen outside of
/// arrays, `each_time([&] { norm = clip_grad_norm(parameters, 1.0); });`. In later calls f must not refer to
/// variables of the step.
template <class F>
void each_time(F f) {
  if (kernels::is_captured()) return detail::capture_host("each_time", std::move(f));
  f();
}

}  // namespace xgrad
