#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "../../base/error.hpp"
#include "../value.hpp"
#include "model.hpp"

namespace xgrad::onnx::detail {

/// A node's attributes, all of which must be read: an attribute unknown to the operator would change its
/// result.
class NodeAttributes {
 public:
  explicit NodeAttributes(const Node& node) : node_(&node) {}

  std::int64_t integer(const char* name, std::int64_t otherwise);
  /// The shortest decimal number equal to this float: 1e-5 even if T is double.
  double number(const char* name, double otherwise);
  std::string text(const char* name, const char* otherwise);
  std::optional<std::vector<std::int64_t>> integers(const char* name);
  std::optional<std::vector<float>> numbers(const char* name);
  std::optional<std::vector<std::string>> texts(const char* name);
  const Tensor* tensor(const char* name);
  bool has(const char* name) const { return find(name) != nullptr; }

  /// Ignores an attribute that does not affect the results.
  void ignore(const char* name) { read_.insert(name); }

  /// Throws ValueError for an unread attribute.
  void check_all_read() const;

 private:
  const Attribute* find(std::string_view name) const;
  const Attribute* read(const char* name);

  const Node* node_;
  std::set<std::string, std::less<>> read_;
};

/// Number of elements that any file may request.
inline constexpr std::size_t always_allowed = std::size_t{1} << 28;

/// Throws ValueError if a result would have too many elements: a small file must not request all memory.
void check_count(const Shape& result, std::size_t most = always_allowed);

/// The broadcast shape of two shapes, if they broadcast.
Shape broadcast_lengths(const Shape& a, const Shape& b);

/// The shape of matmul(a, b), if the product is valid; without the axes that vectors lack.
Shape product_lengths(const Shape& a, const Shape& b);

/// Arguments of a node.
template <class T>
class Arguments {
 public:
  /// A null pointer is an omitted argument; results may have `most` elements.
  Arguments(std::span<const Value<T>* const> values, std::size_t most, bool is_training = false,
            std::size_t held = 0)
      : values_(values), most_(most), held_(held), is_training_(is_training) {}

  /// Whether the graph, as a module, is in training mode.
  bool is_training() const { return is_training_; }
  std::size_t most() const { return most_; }
  /// Elements of all values that the call holds.
  std::size_t held() const { return held_; }

  std::size_t size() const { return values_.size(); }
  bool has(std::size_t i) const { return i < values_.size() && values_[i] != nullptr; }

  const Value<T>& value(std::size_t i) const {
    if (!has(i)) xgrad::detail::fail<ValueError>("input ", i, " is missing");
    return *values_[i];
  }

  const Variable<T>& floats(std::size_t i) const { return as<Variable<T>>(i, "floats"); }
  const Ids& integers(std::size_t i) const { return as<Ids>(i, "integers"); }
  const Mask& conditions(std::size_t i) const { return as<Mask>(i, "conditions"); }

  /// Floats, or an undefined Variable if omitted.
  Variable<T> floats_or_none(std::size_t i) const { return has(i) ? floats(i) : Variable<T>(); }

  /// Throws ValueError for a result of too many elements. Every operator whose result can be larger than its
  /// inputs calls it before allocating.
  void check_result(const Shape& shape) const { check_count(shape, most_); }

  /// check_result() for the broadcast shape of inputs.
  void check_broadcast(std::initializer_list<std::size_t> inputs) const {
    Shape shape;
    for (const std::size_t i : inputs) shape = broadcast_lengths(shape, shape_of<T>(value(i)));
    check_result(shape);
  }

  /// check_result() for the product of matrices of these shapes, stacked or not.
  void check_product(const Shape& a, const Shape& b) const { check_result(product_lengths(a, b)); }

  /// Arguments with other values and the same limit.
  Arguments with(std::span<const Value<T>* const> values) const {
    return {values, most_, is_training_, held_};
  }

  /// The one element of an array of integers.
  std::int64_t integer(std::size_t i) const {
    const Ids& ids = integers(i);
    if (ids.size() != 1)
      xgrad::detail::fail<ShapeError>("input ", i, " must be one integer, got ", ids.shape());
    return *ids.data();
  }

  /// The elements of a list or of a scalar.
  std::vector<std::int64_t> list(std::size_t i) const {
    const Ids& ids = integers(i);
    if (ids.dimension() > 1)
      xgrad::detail::fail<ShapeError>("input ", i, " must be a list, got ", ids.shape());
    return {ids.begin(), ids.end()};
  }

 private:
  template <class A>
  const A& as(std::size_t i, const char* what) const {
    const A* array = std::get_if<A>(&value(i));
    if (array == nullptr) {
      constexpr const char* kinds[] = {"floats", "integers", "conditions"};
      xgrad::detail::fail<ValueError>("input ", i, " must hold ", what, ", got ", kinds[values_[i]->index()]);
    }
    return *array;
  }

  std::span<const Value<T>* const> values_;
  std::size_t most_, held_;
  bool is_training_;
};

template <class T>
using Results = std::vector<Value<T>>;

/// Computes the results of a node.
template <class T>
using Operator = std::function<Results<T>(const Arguments<T>&)>;

/// Input of MakeOperator.
struct NodeDescription {
  NodeAttributes& attributes;
  std::int64_t opset;
  std::size_t outputs;
  std::span<const std::int64_t> types;  ///< TensorProto.DataType of each input, 0 if unknown
  std::span<const std::string> input_names, output_names;  ///< empty for one that is left out

  std::int64_t type(std::size_t input) const { return input < types.size() ? types[input] : 0; }
  bool takes(std::size_t input) const { return input < input_names.size() && !input_names[input].empty(); }
  bool makes(std::size_t output) const {
    return output < output_names.size() && !output_names[output].empty();
  }
};

/// Makes the operator of a node. Throws ValueError for invalid attributes.
template <class T>
using MakeOperator = std::function<Operator<T>(const NodeDescription&)>;

}  // namespace xgrad::onnx::detail
