#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "../models/module.hpp"

namespace xgrad {

/// What a part of a training run remembers between steps: PyTorch's nested state dicts, flattened with dots.
struct TrainingState {
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

/// Where an object lists its state. One list serves for both ways: saving reads the listed fields, loading
/// assigns to them. What is wrong with a loaded entry is noted, and the list goes on; at its end all of it is
/// one error, and the object is as it was before.
class StateArchive {
 public:
  StateArchive(const StateArchive&) = delete;
  StateArchive& operator=(const StateArchive&) = delete;

  bool loading() const { return source_ != nullptr; }

  /// Whether it is loading and nothing has been wrong so far: what is made from the fields can be made anew.
  bool loaded() const { return loading() && wrong_.empty(); }

  void number(const std::string& name, double& number);
  /// Saved if there is one; after loading there is one if one was saved.
  void number(const std::string& name, std::optional<double>& number);
  void number(const std::string& name, bool& flag);
  /// A whole number in [0, limit]. Saving throws ValueError above 2^53, as far as a double is exact.
  void number(const std::string& name, std::size_t& number, std::uint64_t limit = std::uint64_t{1} << 53);

  /// An array that is loaded in the shape that it has.
  template <class T>
  void array(const std::string& name, Array<T>& array);
  /// Saved if there is one; after loading there is one if one was saved, which must be of this shape.
  template <class T>
  void array(const std::string& name, std::optional<Array<T>>& array, const Shape& shape);
  /// Arrays under `name` and a dot, of which loading takes whatever there is.
  template <class T>
  void arrays(const std::string& name, StateDict<T>& arrays);

  /// A number that is not loaded: it must have been the same.
  void constant(const std::string& name, std::size_t value);

  /// Whether there is anything to list under `name` and a dot: in saving `present`, in loading whether
  /// anything was saved.
  bool has(const std::string& name, bool present) const;

  /// All that another object lists, under `name` and a dot.
  void part(const std::string& name, Stateful& part);
  template <class T>
  void part(const std::string& name, const Module<T>& module);

  /// Calls check() if loaded(); what a ValueError of it says is one more thing that is wrong.
  void check(const std::function<void()>& check);

 private:
  friend class Stateful;

  explicit StateArchive(TrainingState& target) : target_(&target) {}
  explicit StateArchive(const TrainingState& source) : source_(&source) {}

  /// Throws ValueError for all that is wrong, entries that nobody listed among it.
  void finish();

  template <class Map, class Value>
  void save(Map& map, const std::string& name, const Value& value);
  template <class Map>
  const typename Map::mapped_type* find(const Map& map, const std::string& name);
  void wrong(const std::string& name, const std::string& what);

  TrainingState* target_ = nullptr;
  const TrainingState* source_ = nullptr;
  std::string prefix_;  // of the part that is being listed
  std::set<std::string> listed_;
  std::string wrong_;
};

/// What a checkpoint keeps, so that a resumed run goes on as if it had not stopped: optimizers, schedulers,
/// samplers, and classes of your own:
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

  /// Throws ValueError, naming every missing, unexpected, misshapen and impossible entry, and changes nothing
  /// then: "load_state_dict: 'state.0.exp_avg' must have shape (4, 4), got (4, 8); 'momentum' is unexpected".
  void load_state_dict(const TrainingState& state);

 protected:
  Stateful() = default;
  Stateful(const Stateful&) = default;
  Stateful& operator=(const Stateful&) = default;

  /// Lists all that has to be saved, in saving and in loading. While saving it must change nothing.
  virtual void list_state(StateArchive& state) = 0;

 private:
  friend class StateArchive;
};

}  // namespace xgrad
