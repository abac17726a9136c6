#pragma once

#include <any>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../graph/capture.hpp"
#include "../graph/record.hpp"

namespace xgrad {

struct CapturedOptions {
  std::size_t most_shapes = 4;  ///< of the arguments, for which a step is captured; others are always recorded
};

namespace detail {

/// A step with arguments of certain shapes, on its way from recording to replays.
class CapturedShapes {
 public:
  CapturedShapes();
  ~CapturedShapes();
  CapturedShapes(const CapturedShapes&) = delete;
  CapturedShapes& operator=(const CapturedShapes&) = delete;

  /// What has to be done with a call.
  enum class Next { record, capture, check, replay };
  Next next();

  /// After record: the step has been made.
  void recorded();

  void refuse(std::string why);

  /// What next() said. Inputs are the arrays of the step's own arguments.
  StepResults capture(const Step& step, std::span<const std::pair<const void*, std::size_t>> inputs);
  StepResults check(const Step& step);
  const StepResults& replay();

  std::size_t replays() const { return replays_; }
  std::string why_not() const;

 private:
  enum class Stage { fresh, known, captured, trusted, refused };

  void start_again(std::string why);

  Stage stage_ = Stage::fresh;
  std::unique_ptr<CapturedStep> step_;
  std::size_t replays_ = 0;
  std::size_t since_capture_ = 0;  ///< replays
  std::size_t next_check_ = 0;     ///< in since_capture_
  std::size_t last_check_ = 0;
  std::size_t restarts_ = 0;
  bool is_explained_ = false;  ///< something has changed that explains why a check fails
  std::string why_not_ = "it has been called for the first time only";
};

template <class A>
inline constexpr bool is_array = false;
template <class E>
inline constexpr bool is_array<Array<E>> = true;

/// The array of an argument.
template <class A>
const auto& array_of_argument(const A& argument) {
  if constexpr (is_variable<A>) {
    return argument.value();
  } else {
    return argument;
  }
}

template <class A>
void copy_argument(const A& from, A& to) {
  const auto& elements = array_of_argument(from);
  const auto& own = array_of_argument(to);
  using E = std::remove_cvref_t<decltype(*own.data())>;
  std::copy_n(elements.data(), elements.size(), const_cast<E*>(own.data()));
}

/// An argument of the same elements that nobody else has.
template <class A>
A own_argument(const A& argument) {
  return A(array_of_argument(argument));
}

}  // namespace detail

/// What captured() makes of a step.
template <class F>
class Captured {
 public:
  explicit Captured(F step, CapturedOptions options = {}) : step_(std::move(step)), options_(options) {}

  /// Makes the step. The arguments are arrays, such as Ids, Masks and Array<T>, and Variables that require no
  /// gradient. Returns what the step returns, nothing or a Variable, without its graph.
  template <class... A>
  auto operator()(const A&... arguments) {
    static_assert((... && (detail::is_array<A> || detail::is_variable<A>)),
                  "the arguments of a captured step must be arrays or Variables");
    using Result = std::remove_cvref_t<std::invoke_result_t<F&, const A&...>>;
    static_assert(std::is_void_v<Result> || detail::is_variable<Result>,
                  "a captured step must return a Variable or nothing");
    using Next = detail::CapturedShapes::Next;
    Entry* const entry = entry_of(arguments...);
    const Next next = entry == nullptr ? Next::record : entry->shapes.next();
    if (next == Next::replay) {
      copy_all(std::any_cast<std::tuple<A...>>(&entry->own), arguments...);
      return result_of<Result>(entry->shapes.replay(), true);
    }
    const auto made_with = [this](const A&... some) {
      return detail::Step([this, &some...] { return results_of<Result>(some...); });
    };
    if (next == Next::check) {
      copy_all(std::any_cast<std::tuple<A...>>(&entry->own), arguments...);
      return result_of<Result>(entry->shapes.check(made_with(arguments...)), false);
    }
    if (next == Next::capture) {
      auto& own = *std::any_cast<std::tuple<A...>>(&entry->own);
      copy_all(&own, arguments...);
      const auto inputs = std::apply([](const A&... some) { return std::array{range_of(some)...}; }, own);
      return result_of<Result>(entry->shapes.capture(std::apply(made_with, own), inputs), false);
    }
    const detail::StepResults results = results_of<Result>(arguments...);
    if (entry != nullptr) entry->shapes.recorded();
    return result_of<Result>(results, false);
  }

  /// How many calls were replays.
  std::size_t replays() const {
    std::size_t count = 0;
    for (const Entry& entry : entries_) count += entry.shapes.replays();
    return count;
  }

  /// Why the last call's step is recorded each time, such as "the op 'sort' is none of those that can be
  /// captured"; empty if it is replayed.
  std::string why_not() const {
    return last_ != nullptr ? last_->shapes.why_not() : "no step with arguments of these shapes is captured";
  }

 private:
  struct Entry {
    std::any own;  // a tuple of arguments
    detail::CapturedShapes shapes;
  };
};

}  // namespace xgrad
