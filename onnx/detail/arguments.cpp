#include "arguments.hpp"

#include <charconv>
#include <cmath>

#include "../../base/detail/text/json_text.hpp"
#include "../../base/detail/text/parse.hpp"

namespace xgrad::onnx::detail {

using xgrad::detail::fail, xgrad::detail::in_quotes;

namespace {

/// An attribute's value, if it is of the kind that the operator expects.
template <class V>
const V& checked(const Attribute& attribute, const std::optional<V>& value, const char* what) {
  if (!value) fail<ValueError>("attribute ", in_quotes(attribute.name), " must hold ", what);
  return *value;
}

/// The same for a list; the numbers are those of AttributeProto.AttributeType, 0 in files of old writers.
template <class V>
const V& checked_list(const Attribute& attribute, const V& list, std::int64_t type, const char* what) {
  if (attribute.type != 0 && attribute.type != type)
    fail<ValueError>("attribute ", in_quotes(attribute.name), " must hold ", what);
  return list;
}

double decimal(float number) {
  if (!std::isfinite(number)) return number;
  char text[32];
  const char* const end = std::to_chars(text, text + sizeof text, number).ptr;
  return xgrad::detail::parsed<double>({text, end}).value_or(number);
}

}  // namespace

void check_count(const Shape& result, std::size_t most) {
  std::size_t count = 1;
  for (const std::size_t length : result) {
    if (length != 0 && count > most / length)
      fail<ValueError>("a result ", result, " would have more than ", most, " elements");
    count *= length == 0 ? 1 : length;
  }
}

Shape broadcast_lengths(const Shape& a, const Shape& b) {
  const bool is_longer = a.size() > b.size();
  Shape all = is_longer ? a : b;
  const Shape& other = is_longer ? b : a;
  const std::size_t more = all.size() - other.size();
  for (std::size_t axis = 0; axis < other.size(); ++axis)
    if (all[more + axis] == 1) all[more + axis] = other[axis];
  return all;
}

Shape product_lengths(const Shape& a, const Shape& b) {
  const auto without_last = [](const Shape& shape, std::size_t count) {
    return Shape(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(std::min(count, shape.size())));
  };
  Shape all = broadcast_lengths(without_last(a, 2), without_last(b, 2));
  if (a.size() > 1) all.push_back(a[a.size() - 2]);
  if (b.size() > 1) all.push_back(b.back());
  return all;
}

const Attribute* NodeAttributes::find(std::string_view name) const {
  const auto found = std::ranges::find(node_->attributes, name, &Attribute::name);
  return found == node_->attributes.end() ? nullptr : &*found;
}

const Attribute* NodeAttributes::read(const char* name) {
  read_.insert(name);
  return find(name);
}

std::int64_t NodeAttributes::integer(const char* name, std::int64_t otherwise) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? otherwise : checked(*attribute, attribute->integer, "an integer");
}

double NodeAttributes::number(const char* name, double otherwise) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? otherwise : decimal(checked(*attribute, attribute->number, "a float"));
}

std::string NodeAttributes::text(const char* name, const char* otherwise) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? otherwise : checked(*attribute, attribute->text, "a text");
}

std::optional<std::vector<std::int64_t>> NodeAttributes::integers(const char* name) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? std::nullopt
                              : std::optional(checked_list(*attribute, attribute->integers, 7, "integers"));
}

std::optional<std::vector<float>> NodeAttributes::numbers(const char* name) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? std::nullopt
                              : std::optional(checked_list(*attribute, attribute->numbers, 6, "floats"));
}

std::optional<std::vector<std::string>> NodeAttributes::texts(const char* name) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? std::nullopt
                              : std::optional(checked_list(*attribute, attribute->texts, 8, "texts"));
}

const Tensor* NodeAttributes::tensor(const char* name) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? nullptr : &checked(*attribute, attribute->tensor, "a tensor");
}

void NodeAttributes::check_all_read() const {
  for (const Attribute& attribute : node_->attributes)
    if (!read_.contains(attribute.name))
      fail<ValueError>("attribute ", in_quotes(attribute.name), " is not supported");
}

}  // namespace xgrad::onnx::detail
