#include "arguments.hpp"

#include <charconv>
#include <cmath>

#include "../../graph/parse.hpp"

namespace xgrad::onnx::detail {

using xgrad::detail::fail, xgrad::detail::in_quotes;

namespace {

/// An attribute's value, if it is of the kind that the operator expects.
template <class V>
const V& checked(const Attribute& attribute, const std::optional<V>& value, const char* what) {
  if (!value) fail<ValueError>("attribute ", in_quotes(attribute.name), " must hold ", what);
  return *value;
}

double decimal(float number) {
  if (!std::isfinite(number)) return number;
  char text[32];
  const char* const end = std::to_chars(text, text + sizeof text, number).ptr;
  return xgrad::detail::parsed<double>({text, end}).value_or(number);
}

}  // namespace

const Attribute* Attributes::find(std::string_view name) const {
  const auto found = std::ranges::find(node_->attributes, name, &Attribute::name);
  return found == node_->attributes.end() ? nullptr : &*found;
}

const Attribute* Attributes::read(const char* name) {
  read_.insert(name);
  return find(name);
}

std::int64_t Attributes::integer(const char* name, std::int64_t otherwise) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? otherwise : checked(*attribute, attribute->integer, "an integer");
}

double Attributes::number(const char* name, double otherwise) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? otherwise : decimal(checked(*attribute, attribute->number, "a float"));
}

std::string Attributes::text(const char* name, const char* otherwise) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? otherwise : checked(*attribute, attribute->text, "a text");
}

std::optional<std::vector<std::int64_t>> Attributes::integers(const char* name) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? std::nullopt : std::optional(attribute->integers);
}

std::optional<std::vector<float>> Attributes::numbers(const char* name) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? std::nullopt : std::optional(attribute->numbers);
}

const Tensor* Attributes::tensor(const char* name) {
  const Attribute* const attribute = read(name);
  return attribute == nullptr ? nullptr : &checked(*attribute, attribute->tensor, "a tensor");
}

void Attributes::check_all_read() const {
  for (const Attribute& attribute : node_->attributes)
    if (!read_.contains(attribute.name))
      fail<ValueError>("attribute ", in_quotes(attribute.name), " is not supported");
}

}  // namespace xgrad::onnx::detail
