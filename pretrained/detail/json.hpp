#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

// Not installed: what the files of a model folder say, read with suspicion.

namespace xgrad::pretrained::detail {

/// A value in a JSON file, and where it stands there. What it must be is asked for; anything else throws
/// FileError: `model/config.json: hidden_size must be a whole number from 1 to 65536, got "wide"`.
class Json {
 public:
  /// Reads a file: UTF-8, at most 128 MB, 64 levels deep and 8 million values, and no key twice in an object.
  /// Throws FileError for all else.
  static Json read(const std::string& path);

  /// The same for a text; `path` stands for it in errors.
  static Json parse(const std::string& path, std::string_view text);

  /// The member of that name; nothing if there is none, or if it is null. Throws FileError unless this is an
  /// object.
  std::optional<Json> find(const std::string& name) const;
  /// The same for one that has to be there.
  Json at(const std::string& name) const;

  /// Whether the member of that name is there, and null. Throws FileError unless this is an object.
  bool is_null(const std::string& name) const;

  bool is_object() const;
  bool is_array() const;
  bool is_string() const;

  const std::string& text() const;
  bool boolean() const;
  double number(double low, double high) const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;

  /// The elements of an array.
  std::vector<Json> items() const;
  /// The members of an object, by their names in alphabetical order.
  std::vector<std::pair<std::string, Json>> members() const;

  /// The value as JSON.
  std::string dump() const;

  /// Throws FileError: where this stands, then "must be `expected`, got " and what it is.
  [[noreturn]] void refuse(std::string_view expected) const;
  /// Throws FileError: where this stands, then `what`.
  [[noreturn]] void fail(std::string_view what) const;

 private:
  struct File;

  Json(std::shared_ptr<const File> file, const nlohmann::json* value, std::string place);

  Json below(const std::string& name, const nlohmann::json& value) const;

  std::shared_ptr<const File> file_;
  const nlohmann::json* value_;
  std::string place_;  // "model.vocab[3]", empty for the whole
};

}  // namespace xgrad::pretrained::detail
