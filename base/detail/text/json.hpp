#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json_tree_fwd.hpp"

// Not installed: validated JSON files. The source needs nlohmann-json and is compiled into xgrad::tokenizers,
// on which the other components that read such files depend.

namespace xgrad::detail {

/// A value in a JSON file, with its location. Accessors throw FileError for another type or range:
/// `model/config.json: hidden_size must be a whole number from 1 to 65536, got "wide"`.
class Json {
 public:
  /// Reads a file: UTF-8, at most 128 MB, 64 levels and 8 million values, without duplicate keys in an
  /// object. NaN, Infinity and -Infinity are numbers, as Python writes them. Throws FileError otherwise.
  static Json read(const std::string& path);

  /// Parses a text; `path` is its name in errors.
  static Json parse(const std::string& path, std::string_view text);

  /// The member with this name; empty if it is missing or null. Throws FileError unless this is an object.
  std::optional<Json> find(const std::string& name) const;
  /// find() for a required member. Throws FileError if it is missing.
  Json at(const std::string& name) const;

  /// A boolean member, or `otherwise` if it is missing or null.
  bool flag(const std::string& name, bool otherwise) const;

  /// Whether the member with this name exists and is null. Throws FileError unless this is an object.
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
  /// The members of an object, in alphabetical order of names.
  std::vector<std::pair<std::string, Json>> members() const;

  /// The file and the place in it, as errors name them.
  std::string place() const;

  /// The value as JSON, in which NaN and infinite numbers are null.
  std::string dump() const;

  /// Throws FileError: the location, then "must be `expected`, got " and this value.
  [[noreturn]] void refuse(std::string_view expected) const;
  /// Throws FileError: the location, then `what`.
  [[noreturn]] void fail(std::string_view what) const;

 private:
  struct File;

  Json(std::shared_ptr<const File> file, const JsonTree* value, std::string place);

  Json below(const std::string& name, const JsonTree& value) const;

  std::shared_ptr<const File> file_;
  const JsonTree* value_;
  std::string place_;  // "model.vocab[3]"; empty for the root
};

}  // namespace xgrad::detail
