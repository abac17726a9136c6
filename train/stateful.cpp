#include "stateful.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../base/error.hpp"

namespace xgrad {
namespace {

constexpr std::uint64_t largest_exact = std::uint64_t{1} << 53;  // up to here a double has every whole number

template <class Map>
constexpr const char* kind_of = "a number";
template <>
constexpr const char* kind_of<StateDict<float>> = "an array of float";
template <>
constexpr const char* kind_of<StateDict<double>> = "an array of double";

/// The kind of entry that has this name; none if there is none.
const char* kind_of_entry(const TrainingState& state, const std::string& name) {
  if (state.numbers.contains(name)) return kind_of<std::map<std::string, double>>;
  if (state.floats.contains(name)) return kind_of<StateDict<float>>;
  if (state.doubles.contains(name)) return kind_of<StateDict<double>>;
  return nullptr;
}

template <class Map>
bool any_under(const Map& map, const std::string& prefix) {
  const auto first = map.lower_bound(prefix);
  return first != map.end() && first->first.starts_with(prefix);
}

}  // namespace

template <class Map, class Value>
void StateArchive::save(Map& map, const std::string& name, const Value& value) {
  if (!listed_.insert(prefix_ + name).second) {
    detail::fail<ValueError>("state_dict: '", prefix_ + name, "' must be listed once, is listed twice");
  }
  map[prefix_ + name] = value;
}

template <class Map>
const typename Map::mapped_type* StateArchive::find(const Map& map, const std::string& name) {
  listed_.insert(prefix_ + name);
  const auto found = map.find(prefix_ + name);
  if (found != map.end()) return &found->second;
  const char* const kind = kind_of_entry(*source_, prefix_ + name);
  wrong(name, kind == nullptr ? "is missing" : detail::join({"must be ", kind_of<Map>, ", got ", kind}));
  return nullptr;
}

void StateArchive::wrong(const std::string& name, const std::string& what) {
  wrong_ += detail::join({wrong_.empty() ? "'" : "; '", prefix_, name, "' ", what});
}

void StateArchive::number(const std::string& name, double& number) {
  if (!loading()) return save(target_->numbers, name, number);
  if (const double* found = find(source_->numbers, name)) number = *found;
}

void StateArchive::number(const std::string& name, std::optional<double>& number) {
  if (loading()) {
    number.reset();
    if (kind_of_entry(*source_, prefix_ + name) != nullptr) number.emplace();
  }
  if (number) this->number(name, *number);
}

void StateArchive::number(const std::string& name, bool& flag) {
  if (!loading()) return save(target_->numbers, name, flag ? 1.0 : 0.0);
  const double* const found = find(source_->numbers, name);
  if (found == nullptr) return;
  flag = *found == 1;
  if (*found != 0 && *found != 1) wrong(name, "must be 0 or 1, got " + detail::number_text(*found));
}

void StateArchive::flag(const std::string& name, bool& flag) {
  if (loading()) flag = kind_of_entry(*source_, prefix_ + name) != nullptr;
  if (flag) number(name, flag);
}

void StateArchive::number(const std::string& name, std::size_t& number, std::uint64_t limit) {
  if (!loading()) {
    if (std::uint64_t{number} > largest_exact) {
      detail::fail<ValueError>("state_dict: '", prefix_ + name, "' must be at most 2^53, got ", number);
    }
    return save(target_->numbers, name, static_cast<double>(number));
  }
  const double* const found = find(source_->numbers, name);
  if (found == nullptr) return;
  const std::uint64_t most =
      std::min({limit, largest_exact, std::uint64_t{std::numeric_limits<std::size_t>::max()}});
  if (*found >= 0 && *found <= static_cast<double>(most) && *found == std::floor(*found)) {
    number = static_cast<std::size_t>(*found);
  } else {
    wrong(name, "must be a whole number" +
                    (limit < largest_exact ? " of at most " + std::to_string(limit) : std::string()) +
                    ", got " + detail::number_text(*found));
  }
}

template <class T>
void StateArchive::array(const std::string& name, Array<T>& array) {
  if (!loading()) return save(target_->arrays<T>(), name, array);
  const Array<T>* const found = find(source_->arrays<T>(), name);
  if (found == nullptr) return;
  if (same_shape(found->shape(), array.shape())) {
    array = *found;
  } else {
    wrong(name, "must have shape " + to_string(array.shape()) + ", got " + to_string(found->shape()));
  }
}

template <class T>
void StateArchive::array(const std::string& name, std::optional<Array<T>>& array, const Shape& shape) {
  if (loading()) {
    array.reset();
    if (kind_of_entry(*source_, prefix_ + name) != nullptr) array.emplace(shape);
  }
  if (array) this->array(name, *array);
}

template <class T>
void StateArchive::arrays(const std::string& name, StateDict<T>& arrays) {
  if (!loading()) {
    for (const auto& [key, array] : arrays) save(target_->arrays<T>(), detail::join({name, ".", key}), array);
    return;
  }
  arrays.clear();
  const std::string prefix = prefix_ + name + ".";
  const StateDict<T>& all = source_->arrays<T>();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    listed_.insert(it->first);
    arrays[it->first.substr(prefix.size())] = it->second;
  }
}

void StateArchive::constant(const std::string& name, std::size_t value) {
  if (!loading()) return number(name, value);
  const double* const found = find(source_->numbers, name);
  if (found != nullptr && *found != static_cast<double>(value)) {
    wrong(name, "must be " + std::to_string(value) + ", got " + detail::number_text(*found));
  }
}

bool StateArchive::has(const std::string& name, bool present) const {
  if (!loading()) return present;
  const std::string prefix = prefix_ + name + ".";
  return any_under(source_->numbers, prefix) || any_under(source_->floats, prefix) ||
         any_under(source_->doubles, prefix);
}

void StateArchive::part(const std::string& name, Stateful& part) {
  const std::string before = prefix_;
  prefix_ += name + ".";
  part.list_state(*this);
  prefix_ = before;
}

/// Those of a module, with their elements from before.
template <class T>
struct StateArchive::OldParameters final : Old {
  explicit OldParameters(const Module<T>& module) {
    for (const auto& named : {module.named_parameters(), module.named_buffers()}) {
      for (const auto& [name, parameter] : named) all.emplace_back(parameter, parameter.value());
    }
  }
  void restore() noexcept override {
    for (const auto& [parameter, elements] : all)
      std::copy_n(elements.data(), elements.size(), detail::mutable_data(parameter));
  }
  std::vector<std::pair<Variable<T>, Array<T>>> all;
};

template <class T>
void StateArchive::part(const std::string& name, const Module<T>& module) {
  StateDict<T> parameters = module.state_dict();
  for (auto& [key, array] : parameters) this->array(detail::join({name, ".", key}), array);
  if (!loaded()) return;
  old_values_.push_back(std::make_unique<OldParameters<T>>(module));
  module.load_state_dict(parameters);
}

void StateArchive::check(const std::function<void()>& check) {
  if (!loaded()) return;
  try {
    check();
  } catch (const ValueError& error) {
    wrong_ = error.what();
  }
}

void StateArchive::finish() {
  prefix_.clear();
  const auto check_listed = [this](const auto& entries) {
    for (const auto& entry : entries)
      if (!listed_.contains(entry.first)) wrong(entry.first, "is unexpected");
  };
  check_listed(source_->floats);
  check_listed(source_->doubles);
  check_listed(source_->numbers);
  if (!wrong_.empty()) throw ValueError("load_state_dict: " + wrong_);
}

void StateArchive::restore() noexcept {
  for (; !old_values_.empty(); old_values_.pop_back()) old_values_.back()->restore();
}

TrainingState Stateful::state_dict() const {
  TrainingState state;
  StateArchive archive(state);
  const_cast<Stateful*>(this)->list_state(archive);  // it changes nothing while saving
  return state;
}

void Stateful::load_state_dict(const TrainingState& state) {
  const TrainingState before = state_dict();
  StateArchive archive(state);
  try {
    list_state(archive);
    archive.finish();
  } catch (...) {
    StateArchive old(before);
    try {
      list_state(old);  // for classes that keep nothing
    } catch (...) {     // without memory for that
    }
    old.restore();
    archive.restore();
    throw;
  }
}

#define XGRAD_INSTANTIATE(T)                                                                     \
  template void StateArchive::array(const std::string&, Array<T>&);                              \
  template void StateArchive::array(const std::string&, std::optional<Array<T>>&, const Shape&); \
  template void StateArchive::arrays(const std::string&, StateDict<T>&);                         \
  template void StateArchive::part(const std::string&, const Module<T>&);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)

}  // namespace xgrad
