#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "json.hpp"

// Not installed: the fields of a config.json, named once for reading and writing.
namespace xgrad::pretrained::detail {

/// What a text in a config stands for. The first name of a value is the one that is written.
template <class Value>
using Names = std::vector<std::pair<const char*, Value>>;

/// "a, b or c".
template <class Value>
std::string listed(const Names<Value>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i].first);
  return text;
}

/// Another name of a field, in configs of other programs.
struct Spelling {
  const char *name, *other;
};

/// A family names each field with the member that it is stored in. Reading sets the members that the file has
/// and leaves the others as they are; writing collects the members.
class Fields {
 public:
  /// Reads. Throws FileError for a value of another type or out of range.
  explicit Fields(const Json& json, std::span<const Spelling> spellings = {})
      : json_(&json), spellings_(spellings) {}
  /// Writes. Throws ValueError for a number that reading refuses.
  Fields() = default;

  void size(const char* name, std::size_t& value, std::int64_t lowest = 1);
  void probability(const char* name, double& value);
  void number(const char* name, double& value, double most = 1e9);
  /// A number from 0 to 1e9, or null.
  void number(const char* name, std::optional<double>& value);
  void flag(const char* name, bool& value);
  /// An id below `count`, or null.
  void id(const char* name, std::optional<std::int64_t>& value, std::size_t count);

  template <class Value>
  void choice(const char* name, Value& value, const Names<Value>& names) {
    if (const auto found = this->found(name)) {
      for (const auto& [known, meant] : names) {
        if (found->text() == known) {
          value = meant;
          return;
        }
      }
      found->refuse(listed(names));
    }
    for (const auto& [known, meant] : names) {
      if (value == meant) return put(name, '"' + std::string(known) + '"');
    }
  }

  /// A field whose other values are not built: it must be this text or bool, or be absent; `why` follows
  /// "as".
  void must_be(const char* name, const char* text, const char* why);
  void must_be(const char* name, bool value, const char* why);
  void must_be(const char* name, double value, const char* why);
  /// The same for null.
  void must_be_null(const char* name, const char* why);

  /// Fields that change nothing here.
  void ignore(std::initializer_list<const char*> names) { known_.insert(names.begin(), names.end()); }

  /// The file when reading, for what has a form of its own; null when writing.
  const Json* json() const { return json_; }
  /// The field when it is read and there; under another name only if it is not there under this one.
  std::optional<Json> found(const char* name);

  /// The name by which the file has the field of a member, or would have it; empty for a member without one.
  std::string name_of(const void* member) const {
    const auto found = names_.find(member);
    return found == names_.end() ? "" : found->second;
  }

  /// What is written: JSON by name.
  const std::map<std::string, std::string>& written() const { return written_; }
  void put(const char* name, std::string json);

  /// Throws FileError that names a field of the file that no call above has named.
  void refuse_others(const char* model_type) const;

 private:
  const Json* json_ = nullptr;
  std::span<const Spelling> spellings_;
  void remember(const char* name, const void* member);
  /// A number from 0 to `most`.
  void bounded(const char* name, double& value, double most);

  std::set<std::string> known_;
  std::map<const void*, std::string> names_;  // of members, as the file spells them
  std::map<std::string, std::string> written_;
};

}  // namespace xgrad::pretrained::detail
