#pragma once

// How an op's file tells the conformance program to call the op (tests/data/conformance_format.md).

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <xgrad/base/dims.hpp>
#include <xgrad/graph/variable.hpp>

namespace xgrad_tests {

/// An input or a result: absent, numbers, ids or a mask.
template <class T>
struct Value {
  xgrad::Variable<T> numbers = {};
  std::optional<xgrad::Ids> ids = {};
  std::optional<xgrad::Mask> mask = {};

  bool absent() const { return !numbers.defined() && !ids && !mask; }
};

template <class T>
using Results = std::vector<xgrad::Variable<T>>;

/// Ids as a result: numbers without a gradient.
template <class T>
xgrad::Variable<T> as_numbers(const xgrad::Ids& ids) {
  return xgrad::Array<T>(xt::cast<T>(ids));
}

/// The inputs and attributes of a call. Throws BadEntry for those that are not what the op takes.
template <class T>
class Call {
 public:
  Call(std::vector<Value<T>> inputs, const nlohmann::json& attrs);

  std::size_t size() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && !inputs_[i].absent(); }

  const xgrad::Variable<T>& x(std::size_t i = 0) const;
  xgrad::Variable<T> optional(std::size_t i) const { return has(i) ? x(i) : xgrad::Variable<T>(); }
  const xgrad::Ids& ids(std::size_t i) const;
  const xgrad::Mask& mask(std::size_t i) const;
  bool is_ids(std::size_t i) const { return input(i).ids.has_value(); }
  bool is_mask(std::size_t i) const { return input(i).mask.has_value(); }
  Results<T> all() const;

  bool has_attr(const char* name) const;
  double number(const char* name) const;
  double number(const char* name, double absent) const { return has_attr(name) ? number(name) : absent; }
  T scalar(const char* name) const { return static_cast<T>(number(name)); }
  std::optional<T> bound(const char* name) const;
  std::ptrdiff_t integer(const char* name) const;
  std::size_t count(const char* name) const;
  int dim(const char* name = "dim") const;
  std::vector<int> ints(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;
  std::vector<std::ptrdiff_t> list(const char* name) const;
  std::vector<std::ptrdiff_t> list(const char* name, std::size_t size) const;

  /// A shape or axes as the library takes them.
  xgrad::Dims dims(const char* name) const;
  xgrad::Shape shape(const char* name) const;
  /// The axes that the attribute dim names; all axes of x without it.
  xgrad::Dims axes() const;

 private:
  const Value<T>& input(std::size_t i) const;

  std::vector<Value<T>> inputs_;
  const nlohmann::json& attrs_;
};

/// An op's name in the cases and what it stands for: f(call) gives the result, or a list of results.
struct Adapter {
  template <class F>
  Adapter(std::string op, const F& f)
      : name(std::move(op)), in_float(made<float>(f)), in_double(made<double>(f)) {}

  template <class T>
  using Function = std::function<Results<T>(const Call<T>&)>;

  template <class T>
  Results<T> operator()(const Call<T>& call) const {
    if constexpr (std::is_same_v<T, float>)
      return in_float(call);
    else
      return in_double(call);
  }

  std::string name;
  Function<float> in_float;
  Function<double> in_double;

 private:
  template <class T, class F>
  static Function<T> made(const F& f) {
    return [f](const Call<T>& call) -> Results<T> { return {f(call)}; };
  }
};

/// Makes adapters known.
struct Conformance {
  Conformance(std::initializer_list<Adapter> adapters);
};

/// The adapter of this name; null if there is none.
const Adapter* find_adapter(const std::string& op);

/// The names of all adapters, in alphabetical order.
std::vector<std::string> adapter_names();

}  // namespace xgrad_tests
