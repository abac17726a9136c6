#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../models/module.hpp"

namespace xgrad {

/// The state of a part of a training run between steps: PyTorch's nested state dicts, flattened with dots.
struct [[nodiscard]] TrainingState {
  std::map<std::string, double> numbers = {};  ///< "param_groups.0.lr", "last_epoch"
  StateDict<float> floats = {};                ///< "state.0.exp_avg"
  StateDict<double> doubles = {};

  /// The arrays of T, float or double.
  template <class T>
  StateDict<T>& arrays() {
    if constexpr (std::is_same_v<T, float>) {
      return floats;
    } else {
      return doubles;
    }
  }
  template <class T>
  const StateDict<T>& arrays() const {
    return const_cast<TrainingState*>(this)->arrays<T>();
  }

  bool operator==(const TrainingState&) const = default;
};

class Stateful;

/// Lists an object's state. One list serves both directions: saving reads the listed fields, loading assigns
/// to them. Errors of loaded entries are collected; at the end of the list they are thrown as one error, and
/// the object is restored.
class StateArchive {
 public:
  StateArchive(const StateArchive&) = delete;
  StateArchive& operator=(const StateArchive&) = delete;

  bool loading() const { return source_ != nullptr; }

  /// True while loading without errors so far: values derived from the fields can be recomputed.
  bool loaded() const { return loading() && wrong_.empty(); }

  void number(const std::string& name, double& number);
  /// Saved if present; after loading, present if it was saved.
  void number(const std::string& name, std::optional<double>& number);
  void number(const std::string& name, bool& flag);
  /// Saved if true; false after loading a state that has none, as of versions without the option.
  void flag(const std::string& name, bool& flag);
  /// An integer in [0, limit]. Saving throws ValueError above 2^53, the limit of exact doubles.
  void number(const std::string& name, std::size_t& number, std::uint64_t limit = std::uint64_t{1} << 53);

  /// An array, loaded in its current shape.
  template <class T>
  void array(const std::string& name, Array<T>& array);
  /// Saved if present; after loading, present if it was saved, and then of this shape.
  template <class T>
  void array(const std::string& name, std::optional<Array<T>>& array, const Shape& shape);
  /// Arrays under `name` and a dot; loading takes any.
  template <class T>
  void arrays(const std::string& name, StateDict<T>& arrays);

  /// A number that is not loaded: the saved value must be the same.
  void constant(const std::string& name, std::size_t value);

  /// Whether there are fields under `name` and a dot: `present` while saving; while loading, whether any were
  /// saved.
  bool has(const std::string& name, bool present) const;

  /// Lists the fields of another object under `name` and a dot.
  void part(const std::string& name, Stateful& part);
  template <class T>
  void part(const std::string& name, const Module<T>& module);

  /// Copies members while loading. If loading fails, they get their values back without any memory, which
  /// listing the old state again would need. Call it before they are listed.
  template <class... Members>
  void keep(Members&... members) {
    if (loading()) (old_values_.push_back(std::make_unique<OldValue<Members>>(members)), ...);
  }

  /// Calls check() if loaded(), and collects its ValueError.
  void check(const std::function<void()>& check);

 private:
  friend class Stateful;

  struct Old {
    virtual ~Old() = default;
    virtual void restore() noexcept = 0;
  };
  template <class Member>
  struct OldValue final : Old {
    explicit OldValue(Member& of) : member(of), value(of) {}
    void restore() noexcept override { std::swap(member, value); }
    Member& member;
    Member value;
  };
  template <class T>
  struct OldParameters;

  explicit StateArchive(TrainingState& target) : target_(&target) {}
  explicit StateArchive(const TrainingState& source) : source_(&source) {}

  /// Throws ValueError for all collected errors, including unlisted entries.
  void finish();
  /// Gives what was kept its value from before the load.
  void restore() noexcept;

  template <class Map, class Value>
  void save(Map& map, const std::string& name, const Value& value);
  template <class Map>
  const typename Map::mapped_type* find(const Map& map, const std::string& name);
  void wrong(const std::string& name, const std::string& what);

  TrainingState* target_ = nullptr;
  const TrainingState* source_ = nullptr;
  std::string prefix_;  // of the part being listed
  std::set<std::string> listed_;
  std::string wrong_;
  std::vector<std::unique_ptr<Old>> old_values_;
};

/// State in a checkpoint, so that a resumed run continues as if uninterrupted: optimizers, schedulers,
/// samplers, and user-defined classes:
///
///   class LossScale : public xgrad::Stateful {
///     void list_state(xgrad::StateArchive& state) override {
///       state.number("scale", scale_);
///       state.number("good_steps", good_steps_);
///     }
///     double scale_ = 65536;
///     std::size_t good_steps_ = 0;
///   };
///
/// https://pytorch.org/docs/stable/distributed.checkpoint.html (Stateful)
class Stateful {
 public:
  virtual ~Stateful() = default;

  TrainingState state_dict() const;

  /// Throws ValueError that names every missing, unexpected, misshapen and invalid entry, or std::bad_alloc,
  /// without changes:
  /// "load_state_dict: 'state.0.exp_avg' must have shape (4, 4), got (4, 8); 'momentum' is unexpected".
  void load_state_dict(const TrainingState& state);

 protected:
  Stateful() = default;
  Stateful(const Stateful&) = default;
  Stateful& operator=(const Stateful&) = default;

  /// Lists all state, for saving and for loading. While saving, it must change nothing.
  virtual void list_state(StateArchive& state) = 0;

 private:
  friend class StateArchive;
};

}  // namespace xgrad
