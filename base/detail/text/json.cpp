#include "json.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "../../error.hpp"
#include "../../file.hpp"
#include "json_text.hpp"
#include "json_tree.hpp"

namespace xgrad::detail {
namespace {

constexpr std::size_t most_bytes = std::size_t{128} << 20, most_values = 8'000'000, most_levels = 64;

/// The numbers that Python writes, and JSON does not have; one stands in the text as a string that begins so.
constexpr std::pair<std::string_view, double> python_numbers[] = {
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", std::numeric_limits<double>::infinity()},
    {"-Infinity", -std::numeric_limits<double>::infinity()}};
constexpr char python_mark = '\x7f';

/// The text with such numbers, outside of strings, as marked strings.
std::string with_marks(std::string_view text) {
  std::string marked;
  marked.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    if (!in_string) {
      const auto begins = [&](const auto& entry) { return text.substr(i).starts_with(entry.first); };
      const auto found = std::find_if(std::begin(python_numbers), std::end(python_numbers), begins);
      if (found != std::end(python_numbers)) {
        marked += '"';
        marked += python_mark;
        marked += found->first;
        marked += '"';
        i += found->first.size();
        continue;
      }
    }
    if (in_string && text[i] == '\\' && i + 1 < text.size())
      marked += text[i++];
    else if (text[i] == '"')
      in_string = !in_string;
    marked += text[i++];
  }
  return marked;
}

/// Builds the document from nlohmann's SAX events, which show what its own builder would not: keys that come
/// twice, and how deep and how large it gets before it is there.
class Builder : public nlohmann::json_sax<JsonTree> {
 public:
  Builder(const std::string& path, JsonTree& root) : path_(path), root_(root) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override {
    if (value.starts_with(python_mark)) {
      for (const auto& [name, number] : python_numbers)
        if (value.substr(1) == name) return put(number);
    }
    return put(std::move(value));
  }
  bool binary(JsonTree::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(JsonTree::object()); }
  bool start_array(std::size_t) override { return open(JsonTree::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& key) override {
    const auto [place, is_new] = open_.back()->get_ref<JsonTree::object_t&>().try_emplace(key);
    if (!is_new) fail<FileError>(path_, ": the key ", in_quotes(key), " must be unique, got it twice");
    member_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const JsonTree::exception& error) override {
    fail<FileError>(path_, ": must be JSON, got a ", json_error(error.what()));
  }

 private:
  JsonTree* add(JsonTree value) {
    if (++count_ > most_values) fail<FileError>(path_, ": must have at most ", most_values, " values");
    JsonTree* place = &root_;
    if (!open_.empty()) place = open_.back()->is_object() ? member_ : &open_.back()->emplace_back();
    *place = std::move(value);
    return place;
  }

  bool put(JsonTree value) {
    add(std::move(value));
    return true;
  }

  bool open(JsonTree value) {
    if (open_.size() == most_levels)
      fail<FileError>(path_, ": must be at most ", most_levels, " levels deep");
    open_.push_back(add(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& path_;
  JsonTree& root_;
  std::vector<JsonTree*> open_;
  JsonTree* member_ = nullptr;
  std::size_t count_ = 0;
};

/// What a value is, in an error.
std::string shown(const JsonTree& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return text(value.get<double>());
  return value.is_string() ? in_quotes(value.get_ref<const std::string&>()) : value.dump();
}

}  // namespace

struct Json::File {
  explicit File(const std::string& name) : path(name) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string path;
  JsonTree root;
};

Json::Json(std::shared_ptr<const File> file, const JsonTree* value, std::string place)
    : file_(std::move(file)), value_(value), place_(std::move(place)) {}

Json Json::read(const std::string& path) {
  const MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > most_bytes)
    detail::fail<FileError>(path, ": must have at most ", most_bytes, " bytes, got ", bytes.size());
  return read_unchanged(file, [&] {
    return parse(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
}

Json Json::parse(const std::string& path, std::string_view text) {
  if (text.find('\0') != text.npos)  // which the parser would take for the end
    detail::fail<FileError>(path, ": must be JSON, got a zero byte");
  auto file = std::make_shared<File>(path);
  Builder builder(file->path, file->root);
  std::string marked;
  if (text.find("NaN") != text.npos || text.find("Infinity") != text.npos) text = marked = with_marks(text);
  JsonTree::sax_parse(text.begin(), text.end(), &builder);
  const JsonTree* const root = &file->root;
  return {std::move(file), root, ""};
}

Json Json::below(const std::string& name, const JsonTree& value) const {
  return {file_, &value, place_.empty() ? name : place_ + "." + name};
}

std::optional<Json> Json::find(const std::string& name) const {
  if (!is_object()) refuse("an object");
  const auto found = value_->find(name);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return below(name, *found);
}

bool Json::flag(const std::string& name, bool otherwise) const {
  const std::optional<Json> value = find(name);
  return value ? value->boolean() : otherwise;
}

bool Json::is_null(const std::string& name) const {
  if (!is_object()) refuse("an object");
  return value_->contains(name) && value_->at(name).is_null();
}

Json Json::at(const std::string& name) const {
  std::optional<Json> found = find(name);
  if (!found) fail(name + " is missing");
  return std::move(*found);
}

bool Json::is_object() const { return value_->is_object(); }
bool Json::is_array() const { return value_->is_array(); }
bool Json::is_string() const { return value_->is_string(); }

const std::string& Json::text() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get_ref<const std::string&>();
}

bool Json::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

double Json::number(double low, double high) const {
  const double value = value_->is_number() ? value_->get<double>() : std::nan("");
  if (!(value >= low && value <= high))
    refuse(join({"a number from ", detail::text(low), " to ", detail::text(high)}));
  return value;
}

std::int64_t Json::integer(std::int64_t low, std::int64_t high) const {
  const bool fits = value_->is_number_integer() && (!value_->is_number_unsigned() ||
                                                    value_->get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  if (!fits || value_->get<std::int64_t>() < low || value_->get<std::int64_t>() > high)
    refuse("a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return value_->get<std::int64_t>();
}

std::vector<Json> Json::items() const {
  if (!is_array()) refuse("an array");
  std::vector<Json> items;
  items.reserve(value_->size());
  for (const JsonTree& item : *value_)
    items.push_back({file_, &item, place_ + "[" + std::to_string(items.size()) + "]"});
  return items;
}

std::vector<std::pair<std::string, Json>> Json::members() const {
  if (!is_object()) refuse("an object");
  std::vector<std::pair<std::string, Json>> members;
  members.reserve(value_->size());
  for (const auto& [name, value] : value_->items()) members.emplace_back(name, below(name, value));
  return members;
}

std::string Json::dump() const { return value_->dump(); }

void Json::refuse(std::string_view expected) const {
  detail::fail<FileError>(file_->path, ": ", place_.empty() ? "it" : place_, " must be ", expected, ", got ",
                          shown(*value_));
}

std::string Json::place() const { return place_.empty() ? file_->path : file_->path + ": " + place_; }

void Json::fail(std::string_view what) const {
  detail::fail<FileError>(file_->path, ": ", place_, place_.empty() ? "" : ": ", what);
}

}  // namespace xgrad::detail
