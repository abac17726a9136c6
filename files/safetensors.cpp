#include "safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "../base/detail/text/json_text.hpp"
#include "../base/detail/text/json_tree.hpp"
#include "../base/error.hpp"

namespace xgrad {
namespace {

using detail::in_quotes;

constexpr std::size_t longest_header = 100'000'000;
constexpr std::size_t longest_part = 300;  // of a number, in an error
constexpr const char* metadata_key = "__metadata__";

/// What the header says of a tensor.
struct Entry {
  std::string name;
  std::optional<DType> dtype = {};
  std::optional<std::vector<std::size_t>> shape = {};
  std::optional<std::vector<std::size_t>> offsets = {};
};

/// Takes the events of nlohmann's SAX parser, which shows what its parsed document would not: keys that come
/// twice, and whether a number is an integer. It accepts only what may come next, so nothing can nest deeply.
class HeaderReader : public nlohmann::json_sax<detail::JsonTree> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  std::vector<Entry> entries;
  Metadata metadata;

  bool start_object(std::size_t) override {
    if (place_ == Place::file) {
      place_ = Place::header;
    } else if (place_ == Place::header) {
      if (key_ == metadata_key) {
        place_ = Place::metadata;
      } else {
        place_ = Place::tensor;
        entries.push_back({.name = key_});
        field_.clear();
      }
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    if (place_ == Place::header) {
      if (!names_.insert(key).second) fail("the name ", in_quotes(key), " must be unique, got it twice");
      key_ = key;
    } else if (place_ == Place::metadata) {
      if (metadata.contains(key))
        fail(metadata_key, ": the key ", in_quotes(key), " must be unique, got it twice");
      field_ = key;
    } else {
      const Entry& tensor = entries.back();
      const bool twice = key == "dtype"          ? tensor.dtype.has_value()
                         : key == "shape"        ? tensor.shape.has_value()
                         : key == "data_offsets" ? tensor.offsets.has_value()
                                                 : unknown_field(key);
      if (twice) fail(where(), key, " must be unique, got it twice");
      field_ = key;
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      const Entry& tensor = entries.back();
      for (const auto& [name, there] : {std::pair{"dtype", tensor.dtype.has_value()},
                                        {"shape", tensor.shape.has_value()},
                                        {"data_offsets", tensor.offsets.has_value()}}) {
        if (!there) fail("tensor ", in_quotes(tensor.name), ": ", name, " is missing");
      }
    }
    place_ = Place::header;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || field_ == "dtype") refuse("an array");
    place_ = Place::numbers;
    numbers().emplace();
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    const std::size_t count = numbers()->size();
    if (field_ == "data_offsets" && count != 2) fail(where(), field_, " must hold 2 integers, got ", count);
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      metadata[field_] = value;
    } else if (place_ == Place::tensor && field_ == "dtype") {
      Entry& tensor = entries.back();
      tensor.dtype = dtype_named(value);
      if (!tensor.dtype) fail(where(), "dtype must be one of the format's, got ", in_quotes(value));
    } else {
      refuse("a string");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::numbers) refuse(std::to_string(value));
    numbers()->push_back(value);
    return true;
  }
  bool number_integer(std::int64_t value) override { refuse(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { refuse(text.substr(0, longest_part)); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool null() override {
    if (place_ != Place::header || key_ != metadata_key) refuse("null");
    return true;
  }
  bool binary(detail::JsonTree::binary_t&) override { refuse("binary data"); }

  bool parse_error(std::size_t, const std::string&, const detail::JsonTree::exception& error) override {
    fail("the header must be JSON, got a ", detail::json_error(error.what()));
  }

 private:
  enum class Place { file, header, metadata, tensor, numbers };

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    detail::fail<FileError>(path_, ": ", parts...);
  }

  /// Throws FileError for an event that may not come here.
  [[noreturn]] void refuse(const std::string& got) const {
    switch (place_) {
      case Place::file:
        fail("the header must be an object, got ", got);
      case Place::header:
        if (key_ == metadata_key) fail(metadata_key, " must be an object, got ", got);
        fail("tensor ", in_quotes(key_), ": must be an object, got ", got);
      case Place::metadata:
        fail(metadata_key, ": ", in_quotes(field_), " must be a string, got ", got);
      case Place::tensor:
        fail(where(), field_, field_ == "dtype" ? " must be a string, got " : " must be an array, got ", got);
      case Place::numbers:
        break;
    }
    fail(where(), field_, " must hold integers from 0 to 2^64 - 1, got ", got);
  }

  bool unknown_field(const std::string& key) const {
    fail(where(), "must have only dtype, shape and data_offsets, got ", in_quotes(key));
  }

  std::string where() const { return "tensor " + in_quotes(entries.back().name) + ": "; }

  std::optional<std::vector<std::size_t>>& numbers() {
    return field_ == "shape" ? entries.back().shape : entries.back().offsets;
  }

  const std::string& path_;
  Place place_ = Place::file;
  std::string key_, field_;
  std::unordered_set<std::string> names_;
};

/// Throws FileError for a file of torch.save, whose first bytes would be read as a length.
void refuse_torch_file(const std::string& path, std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.size() > 8 && text[8] == '{') return;
  const bool is_zip = text.starts_with("PK\3\4"), is_pickle = text.starts_with("\x80\2\x8a");
  if (is_zip || is_pickle)
    detail::fail<FileError>(path, ": must be a safetensors file, got a ", is_zip ? "zip archive" : "pickle",
                            ", as torch.save writes; load_torch reads these");
}

/// The JSON header, without the 8 bytes of its length.
std::span<const std::byte> header_of(const std::string& path, std::span<const std::byte> file) {
  refuse_torch_file(path, file);
  if (file.size() < 8)
    detail::fail<FileError>(path, ": must begin with 8 bytes for the header's length, got ", file.size(),
                            " bytes in all");
  std::uint64_t length;
  std::memcpy(&length, file.data(), 8);
  if (length > longest_header)
    detail::fail<FileError>(path, ": the header's length must be at most ", longest_header, ", got ", length);
  if (length > file.size() - 8)
    detail::fail<FileError>(path, ": the header's length must fit into the file of ", file.size(),
                            " bytes, got ", length);
  const std::span<const std::byte> header = file.subspan(8, length);
  if (header.empty() || header[0] != std::byte{'{'})
    detail::fail<FileError>(path, ": the header must begin with '{'");
  if (std::ranges::find(header, std::byte{0}) != header.end())  // which the parser would take for the end
    detail::fail<FileError>(path, ": the header must be JSON, got a zero byte");
  return header;
}

/// Checks that the tensors, sorted by their offsets, cover the data exactly.
void check_offsets(const std::string& path, const std::vector<Entry>& entries, std::size_t data_size) {
  std::size_t end = 0;
  for (const Entry& entry : entries) {
    const auto fail = [&](const auto&... parts) {
      detail::fail<FileError>(path, ": tensor ", in_quotes(entry.name), ": data_offsets [",
                              entry.offsets->at(0), ", ", entry.offsets->at(1), "] ", parts...);
    };
    const std::size_t first = entry.offsets->at(0), last = entry.offsets->at(1);
    if (first > last) fail("must not decrease");
    if (last > data_size) fail("must stay in the data, got ", data_size, " bytes of it");
    const Shape shape(entry.shape->begin(), entry.shape->end());
    const std::optional<std::size_t> needed = byte_count(*entry.dtype, shape);
    if (!needed)
      detail::fail<FileError>(path, ": tensor ", in_quotes(entry.name), ": shape ", shape, " of ",
                              to_string(*entry.dtype), " must take a whole number of bytes, below 2^57");
    if (last - first != *needed)
      fail("must hold the ", *needed, " bytes of shape ", shape, " of ", to_string(*entry.dtype), ", got ",
           last - first);
    if (first < end) fail("must not overlap those of another tensor, got one that ends at ", end);
    if (first > end) fail("must leave no hole, got one from ", end);
    end = last;
  }
  if (end != data_size)
    detail::fail<FileError>(path, ": the data must end with the last tensor, got ", data_size - end,
                            " bytes after it");
}

/// The text as a JSON string.
std::string json_string(const std::string& what, const std::string& text) {
  try {
    return detail::JsonTree(text).dump();
  } catch (const detail::JsonTree::exception&) {
    detail::fail<ValueError>("write_safetensors: ", what, " must be UTF-8, got ", in_quotes(text));
  }
}

template <class Numbers>
std::string json_array(const Numbers& numbers) {
  std::string text = "[";
  for (const std::size_t number : numbers) {
    if (text.size() > 1) text += ',';
    text += std::to_string(number);
  }
  return text + "]";
}

/// The header of tensors in this order, padded with spaces to a multiple of 8. Throws ValueError.
std::string header_for(const std::vector<TensorView>& tensors, const Metadata& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    header += json_string("the metadata", metadata_key) + ":{";
    for (const auto& [key, value] : metadata) {
      if (header.back() != '{') header += ',';
      header += json_string("the metadata", key) + ":" + json_string("the metadata", value);
    }
    header += '}';
  }
  std::unordered_set<std::string> names{metadata_key};
  std::size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    if (!names.insert(tensor.name).second)
      detail::fail<ValueError>(
          "write_safetensors: the name ", in_quotes(tensor.name),
          tensor.name == metadata_key ? " must not be a tensor's" : " must be unique, got it twice");
    if (!is_of_safetensors(tensor.dtype))
      detail::fail<ValueError>("write_safetensors: tensor ", in_quotes(tensor.name),
                               ": dtype must be one of the format's, got ", to_string(tensor.dtype));
    const std::optional<std::size_t> size = byte_count(tensor.dtype, tensor.shape);
    if (!size)
      detail::fail<ValueError>("write_safetensors: tensor ", in_quotes(tensor.name), ": shape ", tensor.shape,
                               " of ", to_string(tensor.dtype),
                               " must take a whole number of bytes, below 2^57");
    if (header.size() > 1) header += ',';
    header += json_string("the name of a tensor", tensor.name) + ":{\"dtype\":\"" + to_string(tensor.dtype) +
              "\",\"shape\":" + json_array(tensor.shape) +
              ",\"data_offsets\":" + json_array(std::array{offset, offset + *size}) + "}";
    offset += *size;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  if (header.size() > longest_header)
    detail::fail<ValueError>("write_safetensors: the header must have at most ", longest_header,
                             " bytes, got ", header.size());
  return header;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  detail::read_unchanged(*file_, [&] { read(path, file_->bytes()); });
}

SafetensorsFile::SafetensorsFile(const std::string& name, std::vector<std::byte> bytes)
    : bytes_(std::move(bytes)) {
  read(name, bytes_);
}

void SafetensorsFile::read(const std::string& path, std::span<const std::byte> bytes) {
  const std::span<const std::byte> header = header_of(path, bytes);
  HeaderReader reader(path);
  const char* const text = reinterpret_cast<const char*>(header.data());
  detail::JsonTree::sax_parse(text, text + header.size(), &reader);

  const std::span<const std::byte> data = bytes.subspan(8 + header.size());
  std::ranges::stable_sort(
      reader.entries, {}, [](const Entry& entry) -> const auto& { return entry.offsets.value(); });
  check_offsets(path, reader.entries, data.size());
  for (Entry& entry : reader.entries) {
    tensors_.push_back({std::move(entry.name), *entry.dtype, Shape(entry.shape->begin(), entry.shape->end()),
                        data.subspan(entry.offsets->at(0), entry.offsets->at(1) - entry.offsets->at(0))});
  }
  metadata_ = std::move(reader.metadata);
}

void SafetensorsFile::release(const TensorView& tensor) const {
  if (file_) file_->release(tensor.bytes);
}

void SafetensorsFile::throw_if_changed() const {
  if (file_) file_->throw_if_changed();
}

template <class T>
StateDict<T> load_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  StateDict<T> state;
  for (const TensorView& tensor : file.tensors()) {
    state[tensor.name] = detail::array_from<T>(path, tensor);
    file.release(tensor);
  }
  file.throw_if_changed();
  return state;
}

template <class T>
void save_safetensors(const StateDict<T>& state, const std::string& path, const Metadata& metadata) {
  std::vector<TensorView> tensors;
  for (const auto& [name, array] : state) tensors.push_back(view_of(name, array));
  write_safetensors(std::move(tensors), path, metadata);
}

void write_safetensors(std::vector<TensorView> tensors, const std::string& path, const Metadata& metadata) {
  std::ranges::sort(tensors, [](const TensorView& a, const TensorView& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  for (const TensorView& tensor : tensors) {
    if (byte_count(tensor.dtype, tensor.shape) != tensor.bytes.size())
      detail::fail<ValueError>("write_safetensors: tensor ", in_quotes(tensor.name), ": shape ", tensor.shape,
                               " of ", to_string(tensor.dtype), " must fit its bytes, got ",
                               tensor.bytes.size());
  }
  SafetensorsWriter file(tensors, path, metadata);
  for (const TensorView& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

SafetensorsWriter::SafetensorsWriter(const std::vector<TensorView>& tensors, const std::string& path,
                                     const Metadata& metadata)
    : SafetensorsWriter(header_for(tensors, metadata), path) {
  for (const TensorView& tensor : tensors) left_ += *byte_count(tensor.dtype, tensor.shape);
}

SafetensorsWriter::SafetensorsWriter(const std::string& header, const std::string& path) : file_(path) {
  const std::array<std::uint64_t, 1> length{header.size()};
  file_.write(std::as_bytes(std::span(length)));
  file_.write(std::as_bytes(std::span(header)));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_)
    detail::fail<ValueError>("SafetensorsWriter: the tensors must have room for ", bytes.size(),
                             " bytes, got ", left_);
  file_.write(bytes);
  left_ -= bytes.size();
}

void SafetensorsWriter::commit() {
  if (left_ != 0)
    detail::fail<ValueError>("SafetensorsWriter: all bytes of the tensors must be written, ", left_,
                             " are missing");
  file_.commit();
}

template StateDict<float> load_safetensors(const std::string&);
template StateDict<double> load_safetensors(const std::string&);
template void save_safetensors(const StateDict<float>&, const std::string&, const Metadata&);
template void save_safetensors(const StateDict<double>&, const std::string&, const Metadata&);

}  // namespace xgrad
