#pragma once

// An object lists what has to be saved of it once, for a StateWriter or a StateReader.

#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "optimizer.hpp"

namespace xgrad::detail {

template <class T>
class StateWriter {
 public:
  /// Whether there is anything under this prefix.
  bool has(const std::string&, bool present) const { return present; }

  void number(const std::string& name, double number) { state_.numbers[name] = number; }
  void number(const std::string& name, const std::optional<double>& number) {
    if (number) state_.numbers[name] = *number;
  }
  void array(const std::string& name, const Array<T>& array) { state_.arrays[name] = array; }
  void array(const std::string& name, const std::optional<Array<T>>& array, const Shape&) {
    if (array) state_.arrays[name] = *array;
  }
  /// A number that is never loaded: it must be the same.
  void constant(const std::string& name, std::size_t value) { number(name, static_cast<double>(value)); }

  OptimizerState<T> finish() { return std::move(state_); }

 private:
  OptimizerState<T> state_;
};

/// Reads into objects that are put in place only after finish().
template <class T>
class StateReader {
 public:
  explicit StateReader(const OptimizerState<T>& state) : state_(state) {
    for (const auto& [name, array] : state.arrays) unread_arrays_.insert(name);
    for (const auto& [name, number] : state.numbers) unread_numbers_.insert(name);
  }

  bool has(const std::string& prefix, bool) const {
    const auto begins = [&](const auto& entries) {
      const auto first = entries.lower_bound(prefix);
      return first != entries.end() && first->first.compare(0, prefix.size(), prefix) == 0;
    };
    return begins(state_.arrays) || begins(state_.numbers);
  }

  void number(const std::string& name, double& number) {
    if (const double* found = find(state_.numbers, unread_numbers_, name)) number = *found;
  }
  void number(const std::string& name, std::optional<double>& number) {
    number = state_.numbers.count(name) > 0 ? std::optional<double>(0) : std::nullopt;
    if (number) this->number(name, *number);
  }
  void number(const std::string& name, std::size_t& number) {
    const double* found = find(state_.numbers, unread_numbers_, name);
    if (found == nullptr) return;
    if (*found >= 0 && *found < 0x1p53 && *found == std::floor(*found)) {
      number = static_cast<std::size_t>(*found);
    } else {
      wrong("'" + name + "' must be a whole number, got " + number_text(*found));
    }
  }
  void number(const std::string& name, bool& flag) {
    const double* found = find(state_.numbers, unread_numbers_, name);
    if (found == nullptr) return;
    flag = *found == 1;
    if (*found != 0 && *found != 1) wrong("'" + name + "' must be 0 or 1, got " + number_text(*found));
  }
  /// `array` has the shape that the saved one must have.
  void array(const std::string& name, Array<T>& array) {
    const Array<T>* found = find(state_.arrays, unread_arrays_, name);
    if (found == nullptr) return;
    if (same_shape(found->shape(), array.shape())) {
      array = *found;
    } else {
      wrong("'" + name + "' must have shape " + to_string(array.shape()) + ", got " +
            to_string(found->shape()));
    }
  }
  void array(const std::string& name, std::optional<Array<T>>& array, const Shape& shape) {
    array.reset();
    if (state_.arrays.count(name) > 0) this->array(name, array.emplace(shape));
  }
  void constant(const std::string& name, std::size_t value) {
    const double* found = find(state_.numbers, unread_numbers_, name);
    if (found != nullptr && *found != static_cast<double>(value)) {
      wrong("'" + name + "' must be " + std::to_string(value) + ", got " + number_text(*found));
    }
  }

  /// Throws ValueError for all that was wrong.
  void finish() {
    for (const std::string& name : unread_arrays_) wrong("'" + name + "' is unexpected");
    for (const std::string& name : unread_numbers_) wrong("'" + name + "' is unexpected");
    if (!wrong_.empty()) throw ValueError("load_state_dict: " + wrong_);
  }

 private:
  template <class Entries>
  const typename Entries::mapped_type* find(const Entries& entries, std::set<std::string>& unread,
                                            const std::string& name) {
    unread.erase(name);
    const auto found = entries.find(name);
    if (found != entries.end()) return &found->second;
    wrong("'" + name + "' is missing");
    return nullptr;
  }
  void wrong(const std::string& what) { wrong_ += (wrong_.empty() ? "" : "; ") + what; }

  const OptimizerState<T>& state_;
  std::set<std::string> unread_arrays_, unread_numbers_;
  std::string wrong_;
};

}  // namespace xgrad::detail
