#include "fields.hpp"

#include <cstdio>
#include <cstdlib>

#include "../../../base/detail/text/json_text.hpp"
#include "../../../base/error.hpp"

namespace xgrad::pretrained::detail {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 24;

std::string shortest(double value) {
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
    text = buffer;
    if (std::strtod(buffer, nullptr) == value) break;
  }
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

}  // namespace

std::optional<Json> Fields::found(const char* name) {
  known_.insert(name);
  std::optional<Json> found = json_ == nullptr ? std::nullopt : json_->find(name);
  for (const auto& [main, other] : spellings_) {
    if (std::string_view(main) != name) continue;
    known_.insert(other);
    if (!found) found = json_->find(other);
  }
  return found;
}

void Fields::remember(const char* name, const void* member) {
  std::string& spelled = names_[member] = name;
  for (const auto& [main, other] : spellings_) {
    if (json_ != nullptr && main == std::string_view(name) && !json_->find(name) && json_->find(other))
      spelled = other;
  }
}

void Fields::put(const char* name, std::string json) {
  if (json_ == nullptr) written_[name] = std::move(json);
}

void Fields::size(const char* name, std::size_t& value, std::int64_t lowest) {
  if (const auto found = this->found(name))
    value = static_cast<std::size_t>(found->integer(lowest, largest_size));
  remember(name, &value);
  put(name, std::to_string(value));
}

void Fields::bounded(const char* name, double& value, double most) {
  if (const auto found = this->found(name)) value = found->number(0, most);
  if (json_ == nullptr && !(value >= 0 && value <= most))
    xgrad::detail::fail<ValueError>("config.json: ", name, " must be a number from 0 to ", most, ", got ",
                                    value);
  put(name, shortest(value));
}

void Fields::probability(const char* name, double& value) { bounded(name, value, 1); }

void Fields::number(const char* name, double& value, double most) { bounded(name, value, most); }

void Fields::number(const char* name, std::optional<double>& value) {
  if (json_ != nullptr && json_->is_null(name)) value.reset();
  const bool has_value = found(name) || value;
  double number = value.value_or(0);
  if (has_value) this->number(name, number);
  value = has_value ? std::optional(number) : std::nullopt;
  if (!has_value) put(name, "null");
}

void Fields::flag(const char* name, bool& value) {
  if (const auto found = this->found(name)) value = found->boolean();
  put(name, value ? "true" : "false");
}

void Fields::id(const char* name, std::optional<std::int64_t>& value, std::size_t count) {
  if (json_ != nullptr && json_->is_null(name)) value.reset();
  if (const auto found = this->found(name)) value = found->integer(0, static_cast<std::int64_t>(count) - 1);
  put(name, value ? std::to_string(*value) : "null");
}

void Fields::must_be(const char* name, const char* text, const char* why) {
  if (const auto found = this->found(name); found && !(found->is_string() && found->text() == text))
    found->refuse(xgrad::detail::join({"\"", text, "\", as ", why}));
}

void Fields::must_be(const char* name, bool value, const char* why) {
  if (const auto found = this->found(name); found && found->boolean() != value)
    found->refuse(xgrad::detail::join({value ? "true" : "false", ", as ", why}));
}

void Fields::must_be(const char* name, double value, const char* why) {
  if (const auto found = this->found(name); found && found->number(-1e9, 1e9) != value)
    found->refuse(xgrad::detail::join({shortest(value), ", as ", why}));
}

void Fields::must_be_null(const char* name, const char* why) {
  if (const auto found = this->found(name)) found->refuse(xgrad::detail::join({"null, as ", why}));
}

void Fields::refuse_others(const char* model_type) const {
  for (const auto& [name, value] : json_->members()) {
    if (!known_.contains(name))
      json_->fail(xgrad::detail::join(
          {"the field ", xgrad::detail::in_quotes(name), " of a ", model_type,
           " model is not known, and may change what it computes; remove it if it does not"}));
  }
}

}  // namespace xgrad::pretrained::detail
