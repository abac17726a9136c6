#include "call.hpp"

#include <limits>
#include <map>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "../../programs/json_file.hpp"

namespace xgrad_tests {
namespace {

std::map<std::string, Adapter>& adapters() {
  static std::map<std::string, Adapter> known;
  return known;
}

}  // namespace

template <class T>
Call<T>::Call(std::vector<Value<T>> inputs, const nlohmann::json& attrs)
    : inputs_(std::move(inputs)), attrs_(attrs) {
  if (!attrs.is_object()) bad_entry("attrs", "an object", attrs);
}

template <class T>
const Value<T>& Call<T>::input(std::size_t i) const {
  if (i >= inputs_.size()) throw BadEntry("input " + std::to_string(i) + " is missing");
  return inputs_[i];
}

template <class T>
const xgrad::Variable<T>& Call<T>::x(std::size_t i) const {
  if (!input(i).numbers.defined()) throw BadEntry("input " + std::to_string(i) + " must be numbers");
  return input(i).numbers;
}

template <class T>
const xgrad::Ids& Call<T>::ids(std::size_t i) const {
  if (!input(i).ids) throw BadEntry("input " + std::to_string(i) + " must be int64");
  return *input(i).ids;
}

template <class T>
const xgrad::Mask& Call<T>::mask(std::size_t i) const {
  if (!input(i).mask) throw BadEntry("input " + std::to_string(i) + " must be bool");
  return *input(i).mask;
}

template <class T>
Results<T> Call<T>::all() const {
  Results<T> list;
  for (std::size_t i = 0; i < size(); ++i) list.push_back(x(i));
  return list;
}

template <class T>
bool Call<T>::has_attr(const char* name) const {
  return attrs_.contains(name) && !attrs_.at(name).is_null();
}

template <class T>
double Call<T>::number(const char* name) const {
  const nlohmann::json& value = entry(attrs_, name);
  if (!value.is_string()) return as<double>(value, name);
  const auto text = as<std::string>(value, name);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (text == "inf") return infinity;
  if (text == "-inf") return -infinity;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  bad_entry(name, "a number", value);
}

template <class T>
std::optional<T> Call<T>::bound(const char* name) const {
  return has_attr(name) ? std::optional<T>(scalar(name)) : std::nullopt;
}

template <class T>
std::ptrdiff_t Call<T>::integer(const char* name) const {
  return entry_as<std::ptrdiff_t>(attrs_, name);
}

template <class T>
std::size_t Call<T>::count(const char* name) const {
  return entry_as<std::size_t>(attrs_, name);
}

template <class T>
int Call<T>::dim(const char* name) const {
  return entry_as<int>(attrs_, name);
}

template <class T>
std::vector<int> Call<T>::ints(const char* name) const {
  return entry_as<std::vector<int>>(attrs_, name);
}

template <class T>
bool Call<T>::flag(const char* name) const {
  return entry_as<bool>(attrs_, name);
}

template <class T>
std::string Call<T>::text(const char* name) const {
  return entry_as<std::string>(attrs_, name);
}

template <class T>
std::vector<std::ptrdiff_t> Call<T>::list(const char* name) const {
  return entry_as<std::vector<std::ptrdiff_t>>(attrs_, name);
}

template <class T>
std::vector<std::ptrdiff_t> Call<T>::list(const char* name, std::size_t size) const {
  list_entry(attrs_, name, size);
  return list(name);
}

template <class T>
xgrad::Dims Call<T>::dims(const char* name) const {
  if (entry(attrs_, name).is_number()) return xgrad::Dims(integer(name));
  const std::vector<std::ptrdiff_t> items = list(name);
  return xgrad::Dims(items.begin(), items.end());
}

template <class T>
xgrad::Shape Call<T>::shape(const char* name) const {
  const auto lengths = entry_as<std::vector<std::size_t>>(attrs_, name);
  return xgrad::Shape(lengths.begin(), lengths.end());
}

template <class T>
xgrad::Dims Call<T>::axes() const {
  if (has_attr("dim")) return dims("dim");
  xgrad::Shape every(x().dimension(), 0);
  for (std::size_t axis = 0; axis < every.size(); ++axis) every[axis] = axis;
  return every;
}

template class Call<float>;
template class Call<double>;

Conformance::Conformance(std::initializer_list<Adapter> list) {
  for (const Adapter& adapter : list) {
    if (!adapters().emplace(adapter.name, adapter).second)
      throw std::logic_error("there are two adapters for " + adapter.name);
  }
}

const Adapter* find_adapter(const std::string& op) {
  const auto found = adapters().find(op);
  return found == adapters().end() ? nullptr : &found->second;
}

std::vector<std::string> adapter_names() {
  std::vector<std::string> names;
  for (const auto& [name, adapter] : adapters()) names.push_back(name);
  return names;
}

}  // namespace xgrad_tests
