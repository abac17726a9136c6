#include "gguf.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "../base/detail/text/json_text.hpp"
#include "../base/detail/text/utf8.hpp"
#include "../base/error.hpp"

namespace xgrad {
namespace {

using detail::in_quotes;

constexpr std::size_t longest_name = 65535;      // as the format says of keys
constexpr std::size_t most_entries = 1 << 16;    // keys or tensors
constexpr std::uint64_t default_alignment = 32;  // of the tensors' data
constexpr const char* alignment_key = "general.alignment";
constexpr std::string_view gguf_magic = "GGUF";
constexpr const char* architecture_key = "general.architecture";

struct GgufTypeRow {
  const char* name;
  std::size_t bytes;  // 0 for those of no fixed size
};

/// In the order of GgufType.
constexpr std::array<GgufTypeRow, 13> gguf_types{{{"UINT8", 1},
                                                  {"INT8", 1},
                                                  {"UINT16", 2},
                                                  {"INT16", 2},
                                                  {"UINT32", 4},
                                                  {"INT32", 4},
                                                  {"FLOAT32", 4},
                                                  {"BOOL", 1},
                                                  {"STRING", 0},
                                                  {"ARRAY", 0},
                                                  {"UINT64", 8},
                                                  {"INT64", 8},
                                                  {"FLOAT64", 8}}};
static_assert(gguf_types.size() == static_cast<std::size_t>(GgufType::FLOAT64) + 1);

const GgufTypeRow& gguf_row_of(GgufType type) { return gguf_types[static_cast<std::size_t>(type)]; }

/// The numbers of tensor types in a file; those that are missing were removed from the format.
constexpr std::pair<std::uint32_t, DType> tensor_types[] = {
    {0, DType::F32},    {1, DType::F16},     {2, DType::Q4_0},     {3, DType::Q4_1},    {6, DType::Q5_0},
    {7, DType::Q5_1},   {8, DType::Q8_0},    {10, DType::Q2_K},    {11, DType::Q3_K},   {12, DType::Q4_K},
    {13, DType::Q5_K},  {14, DType::Q6_K},   {16, DType::IQ2_XXS}, {17, DType::IQ2_XS}, {18, DType::IQ3_XXS},
    {19, DType::IQ1_S}, {20, DType::IQ4_NL}, {21, DType::IQ3_S},   {22, DType::IQ2_S},  {23, DType::IQ4_XS},
    {24, DType::I8},    {25, DType::I16},    {26, DType::I32},     {27, DType::I64},    {28, DType::F64},
    {29, DType::IQ1_M}, {30, DType::BF16},   {34, DType::TQ1_0},   {35, DType::TQ2_0},  {39, DType::MXFP4},
    {40, DType::NVFP4}};

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t place = 0) {
  Number number;
  std::memcpy(&number, bytes.data() + place, sizeof number);
  return number;
}

/// Calls f with a zero of the type of these numbers; returns false for types that are none.
template <class F>
bool with_number_of(GgufType type, const F& f) {
  switch (type) {
    case GgufType::UINT8:
      return f(std::uint8_t{}), true;
    case GgufType::INT8:
      return f(std::int8_t{}), true;
    case GgufType::UINT16:
      return f(std::uint16_t{}), true;
    case GgufType::INT16:
      return f(std::int16_t{}), true;
    case GgufType::UINT32:
      return f(std::uint32_t{}), true;
    case GgufType::INT32:
      return f(std::int32_t{}), true;
    case GgufType::UINT64:
      return f(std::uint64_t{}), true;
    case GgufType::INT64:
      return f(std::int64_t{}), true;
    case GgufType::FLOAT32:
      return f(float{}), true;
    case GgufType::FLOAT64:
      return f(double{}), true;
    case GgufType::BOOL:
    case GgufType::STRING:
    case GgufType::ARRAY:
      break;
  }
  return false;
}

/// Appends value(number) of each of `count` numbers, as long as it returns something; whether it always did.
template <class To, class Value>
bool append_numbers(GgufType type, std::span<const std::byte> bytes, std::size_t count, std::vector<To>& to,
                    const Value& value) {
  bool all = true;
  const bool are_numbers = with_number_of(type, [&](auto zero) {
    using Number = decltype(zero);
    to.reserve(count);
    for (std::size_t i = 0; i < count && all; ++i) {
      const std::optional<To> number = value(number_at<Number>(bytes, i * sizeof(Number)));
      all = number.has_value();
      if (all) to.push_back(*number);
    }
  });
  return are_numbers && all;
}

template <class Number>
std::optional<std::int64_t> as_integer(Number number) {
  if constexpr (std::is_integral_v<Number>) {
    if (std::in_range<std::int64_t>(number)) return static_cast<std::int64_t>(number);
  }
  return std::nullopt;
}

template <class Number>
std::optional<double> as_number(Number number) {
  return static_cast<double>(number);
}

/// The text after its length, which has been checked, but whose file another process may have overwritten
/// since.
std::string_view text_at(std::span<const std::byte> bytes) {
  if (bytes.size() < 8) return {};
  const auto length = std::min<std::uint64_t>(number_at<std::uint64_t>(bytes), bytes.size() - 8);
  return {reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<std::size_t>(length)};
}

/// What the header says of a tensor.
struct GgufEntry {
  TensorView tensor;
  std::uint64_t offset;
};

/// Reads the parts of a file one after the other.
class GgufReader {
 public:
  GgufReader(const std::string& path, std::span<const std::byte> file) : path_(path), file_(file) {}

  void read(std::vector<std::pair<std::string, GgufValue>>& metadata, std::vector<TensorView>& tensors) {
    subject_ = path_ + ": ";
    const std::string_view begin(reinterpret_cast<const char*>(file_.data()),
                                 std::min(file_.size(), gguf_magic.size()));
    if (begin != gguf_magic) fail("must begin with \"GGUF\", got ", in_quotes(begin));
    place_ = gguf_magic.size();
    const auto version = number<std::uint32_t>("the version");
    if (version != 2 && version != 3) {
      const bool is_big_endian = version != 0 && (version & 0xffff) == 0;
      fail("the version must be 2 or 3", is_big_endian ? ", in little-endian order" : "", ", got ", version);
    }
    // A tensor takes at least 8 + 1 + 4 + 4 + 8 bytes, a key 8 + 1 + 4 + 1.
    const std::size_t tensor_count = count("tensors", 25), key_count = count("keys", 14);
    read_metadata(key_count, metadata);
    read_tensors(tensor_count, alignment_in(metadata), tensors);
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    detail::fail<FileError>(subject_, parts...);
  }

  std::size_t left() const { return file_.size() - place_; }

  /// The next `count` items of as many bytes. `what` they are is for the error.
  std::span<const std::byte> take(std::uint64_t count, std::size_t bytes, const char* what) {
    if (count > left() / bytes)
      fail(what, " must fit into the file, which ends ", left(), " bytes behind, got ", count,
           bytes == 1 ? " bytes" : " items");
    const auto taken = file_.subspan(place_, static_cast<std::size_t>(count) * bytes);
    place_ += taken.size();
    return taken;
  }

  template <class Number>
  Number number(const char* what) {
    return number_at<Number>(take(sizeof(Number), 1, what));
  }

  std::size_t count(const char* things, std::size_t least_bytes) {
    const auto count = number<std::uint64_t>("the header");
    if (count > file_.size() / least_bytes)
      fail("the number of ", things, " must fit into the file of ", file_.size(), " bytes, got ", count);
    if (count > most_entries)
      fail("the number of ", things, " must be at most ", most_entries, ", got ", count);
    return static_cast<std::size_t>(count);
  }

  std::string_view text(const char* what) {
    const std::size_t begin = place_;
    take(number<std::uint64_t>(what), 1, what);
    return text_at(file_.subspan(begin));
  }

  /// A name of a key or a tensor.
  std::string name(std::unordered_set<std::string>& names) {
    const std::string_view name = text("the name");
    if (name.empty() || name.size() > longest_name)
      fail("the name must have from 1 to ", longest_name, " bytes, got ", name.size());
    if (detail::utf8::find_invalid_utf8(name) != name.npos)
      fail("the name must be UTF-8, got ", in_quotes(name));
    if (!names.insert(std::string(name)).second)
      fail("the name ", in_quotes(name), " must be unique, got it twice");
    return std::string(name);
  }

  /// Makes errors begin with the path and this.
  void begin(const char* thing, std::size_t i, std::size_t count) {
    subject_ =
        detail::join({path_, ": ", thing, " ", std::to_string(i + 1), " of ", std::to_string(count), ": "});
  }

  GgufType type(const char* what) {
    const auto type = number<std::uint32_t>(what);
    if (type >= gguf_types.size()) fail(what, " must be from 0 to ", gguf_types.size() - 1, ", got ", type);
    return static_cast<GgufType>(type);
  }

  void read_metadata(std::size_t count, std::vector<std::pair<std::string, GgufValue>>& metadata) {
    std::unordered_set<std::string> keys;
    for (std::size_t i = 0; i < count; ++i) {
      begin("key", i, count);
      const std::string key = name(keys);
      const std::string subject = detail::join({path_, ": key ", in_quotes(key)});
      subject_ = subject + ": ";
      GgufType type = this->type("the type");
      const bool is_array = type == GgufType::ARRAY;
      std::uint64_t size = 1;
      if (is_array) {
        type = this->type("the type of the elements");
        if (type == GgufType::ARRAY) fail("the elements must be no arrays, which are not read");
        size = number<std::uint64_t>("the length");
      }
      const std::span<const std::byte> bytes = values(type, size);
      metadata.emplace_back(key, GgufValue(subject, type, bytes, is_array, static_cast<std::size_t>(size)));
    }
    subject_ = path_ + ": ";
  }

  /// The bytes of values, which are checked.
  std::span<const std::byte> values(GgufType type, std::uint64_t count) {
    const std::size_t begin = place_;
    if (type == GgufType::STRING) {
      for (std::uint64_t i = 0; i < count; ++i) text("the value");
      return file_.subspan(begin, place_ - begin);
    }
    const auto bytes = take(count, gguf_row_of(type).bytes, "the value");
    if (type == GgufType::BOOL) {
      const auto wrong =
          std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; });
      if (wrong != bytes.end()) fail("a BOOL must be 0 or 1, got ", static_cast<int>(*wrong));
    }
    return bytes;
  }

  /// What the keys say of the data; checks the keys that a file of any kind has.
  std::uint64_t alignment_in(const std::vector<std::pair<std::string, GgufValue>>& metadata) const {
    std::uint64_t alignment = default_alignment;
    for (const auto& [key, value] : metadata) {
      if (key == architecture_key && (value.is_array() || value.type() != GgufType::STRING))
        value.refuse("a STRING");
      if (key != alignment_key) continue;
      if (value.is_array() || value.type() != GgufType::UINT32) value.refuse("a UINT32");
      alignment = static_cast<std::uint64_t>(value.integer(0, std::numeric_limits<std::uint32_t>::max()));
      if (alignment == 0 || (alignment & (alignment - 1)) != 0) value.refuse("a power of 2");
    }
    return alignment;
  }

  Shape shape() {
    constexpr std::uint32_t most_axes = 4;
    const auto axes = number<std::uint32_t>("the number of axes");
    if (axes > most_axes) fail("the number of axes must be at most ", most_axes, ", got ", axes);
    std::vector<std::size_t> lengths;
    for (std::uint32_t i = 0; i < axes; ++i) {
      const auto length = number<std::int64_t>("the shape");
      if (length < 0) fail("lengths of axes must be at least 0, got ", length);
      if (!std::in_range<std::size_t>(length)) fail("lengths of axes must fit into memory, got ", length);
      lengths.push_back(static_cast<std::size_t>(length));
    }
    return Shape(lengths.rbegin(), lengths.rend());
  }

  DType tensor_type() {
    const auto type = number<std::uint32_t>("the type");
    for (const auto& [number, dtype] : tensor_types) {
      if (number == type) return dtype;
    }
    fail("the type must be one of the format's, got ", type);
  }

  void read_tensors(std::size_t count, std::uint64_t alignment, std::vector<TensorView>& tensors) {
    std::unordered_set<std::string> names;
    std::vector<GgufEntry> entries;
    for (std::size_t i = 0; i < count; ++i) {
      begin("tensor", i, count);
      const std::string name = this->name(names);
      subject_ = detail::join({path_, ": tensor ", in_quotes(name), ": "});
      const Shape shape = this->shape();
      const DType dtype = tensor_type();
      const auto offset = number<std::uint64_t>("the offset");
      if (offset % alignment != 0) fail("the offset must be a multiple of ", alignment, ", got ", offset);
      entries.push_back({{name, dtype, shape, {}}, offset});
    }
    if (count == 0) return;
    const std::uint64_t begin = (std::uint64_t{place_} + alignment - 1) / alignment * alignment;
    const auto data = file_.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(begin, file_.size())));
    for (GgufEntry& entry : entries) place(entry, data);
    check_overlaps(entries);
    for (GgufEntry& entry : entries) tensors.push_back(std::move(entry.tensor));
  }

  /// Finds the bytes of a tensor.
  void place(GgufEntry& entry, std::span<const std::byte> data) {
    TensorView& tensor = entry.tensor;
    subject_ = detail::join({path_, ": tensor ", in_quotes(tensor.name), ": "});
    const std::optional<std::size_t> size = byte_count(tensor.dtype, tensor.shape);
    if (!size)
      fail("shape ", tensor.shape, " of ", to_string(tensor.dtype),
           " must have rows of whole blocks and take less than 2^57 bytes");
    if (entry.offset > data.size() || *size > data.size() - static_cast<std::size_t>(entry.offset))
      fail("the ", *size, " bytes of shape ", tensor.shape, " of ", to_string(tensor.dtype), " from ",
           entry.offset, " on must stay in the data, got ", data.size(), " bytes of it");
    tensor.bytes = data.subspan(static_cast<std::size_t>(entry.offset), *size);
  }

  void check_overlaps(const std::vector<GgufEntry>& entries) {
    std::vector<const GgufEntry*> sorted;
    for (const GgufEntry& entry : entries) {
      if (!entry.tensor.bytes.empty()) sorted.push_back(&entry);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const GgufEntry* a, const GgufEntry* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      const GgufEntry &before = *sorted[i - 1], &entry = *sorted[i];
      const std::uint64_t end = before.offset + before.tensor.bytes.size();
      subject_ = detail::join({path_, ": tensor ", in_quotes(entry.tensor.name), ": "});
      if (entry.offset < end)
        fail("the offset ", entry.offset, " must be behind tensor ", in_quotes(before.tensor.name),
             ", which ends at ", end);
    }
  }

  const std::string& path_;
  std::span<const std::byte> file_;
  std::size_t place_ = 0;
  std::string subject_;  // what errors begin with
};

}  // namespace

std::string to_string(GgufType type) { return gguf_row_of(type).name; }

std::int64_t GgufValue::integer(std::int64_t low, std::int64_t high) const {
  std::vector<std::int64_t> number;
  const auto value = [](auto stored) { return as_integer(stored); };
  if (is_array_ || !append_numbers(type_, bytes_, 1, number, value) || number[0] < low || number[0] > high)
    refuse("a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return number[0];
}

double GgufValue::number() const {
  std::vector<double> number;
  if (is_array_ || !append_numbers(type_, bytes_, 1, number, [](auto stored) { return as_number(stored); }))
    refuse("a number");
  return number[0];
}

bool GgufValue::flag() const {
  if (is_array_ || type_ != GgufType::BOOL) refuse("a BOOL");
  return bytes_[0] == std::byte{1};
}

std::string_view GgufValue::text() const {
  if (is_array_ || type_ != GgufType::STRING) refuse("a STRING");
  return text_at(bytes_);
}

std::vector<std::int64_t> GgufValue::integers() const {
  std::vector<std::int64_t> numbers;
  const auto value = [](auto stored) { return as_integer(stored); };
  if (!is_array_ || !append_numbers(type_, bytes_, size_, numbers, value))
    refuse("an ARRAY of integers below 2^63");
  return numbers;
}

std::vector<double> GgufValue::numbers() const {
  std::vector<double> numbers;
  const auto value = [](auto stored) { return as_number(stored); };
  if (!is_array_ || !append_numbers(type_, bytes_, size_, numbers, value)) refuse("an ARRAY of numbers");
  return numbers;
}

std::vector<bool> GgufValue::flags() const {
  if (!is_array_ || type_ != GgufType::BOOL) refuse("an ARRAY of BOOL");
  std::vector<bool> flags;
  for (const std::byte byte : bytes_) flags.push_back(byte == std::byte{1});
  return flags;
}

std::vector<std::string_view> GgufValue::texts() const {
  if (!is_array_ || type_ != GgufType::STRING) refuse("an ARRAY of STRING");
  std::vector<std::string_view> texts;
  texts.reserve(size_);
  for (auto rest = bytes_; texts.size() < size_;) {
    texts.push_back(text_at(rest));
    rest = rest.subspan(std::min(rest.size(), 8 + texts.back().size()));
  }
  return texts;
}

std::string GgufValue::description() const {
  constexpr std::size_t most = 8;
  const std::size_t shown = std::min(size_, most);
  std::string text = is_array_ ? "ARRAY of " + std::to_string(size_) + " " : "";
  text += to_string(type_);
  const char* before = is_array_ ? ": " : " ";
  const auto add = [&](const std::string& value) {
    text += before + value;
    before = ", ";
  };
  if (type_ == GgufType::STRING) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < shown; ++i) {
      const std::string_view value = text_at(bytes_.subspan(begin));
      add(in_quotes(value));
      begin = std::min(bytes_.size(), begin + 8 + value.size());
    }
  } else if (type_ == GgufType::BOOL) {
    for (const std::byte byte : bytes_.first(shown)) add(byte == std::byte{1} ? "true" : "false");
  } else {
    with_number_of(type_, [&](auto zero) {
      for (std::size_t i = 0; i < shown; ++i)
        add(detail::text(number_at<decltype(zero)>(bytes_, i * sizeof zero)));
    });
  }
  return size_ > most ? text + ", ..." : text;
}

void GgufValue::refuse(std::string_view expected) const {
  detail::fail<FileError>(subject_, " must be ", expected, ", got ", description());
}

GgufFile::GgufFile(const std::string& path) : path_(path), file_(path) {
  detail::read_unchanged(file_, [&] { GgufReader(path, file_.bytes()).read(metadata_, tensors_); });
}

const GgufValue* GgufFile::find(std::string_view key) const& {
  const auto found =
      std::find_if(metadata_.begin(), metadata_.end(), [&](const auto& entry) { return entry.first == key; });
  return found == metadata_.end() ? nullptr : &found->second;
}

const GgufValue& GgufFile::at(std::string_view key) const& {
  const GgufValue* const value = find(key);
  if (value == nullptr) detail::fail<FileError>(path_, ": the key ", in_quotes(key), " is missing");
  return *value;
}

bool is_gguf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  if (path.ends_with(".gguf")) return true;
  const MappedFile file(path);
  return detail::read_unchanged(file, [&] {
    return file.bytes().size() >= gguf_magic.size() &&
           std::memcmp(file.bytes().data(), gguf_magic.data(), gguf_magic.size()) == 0;
  });
}

template <class T>
StateDict<T> load_gguf(const std::string& path) {
  const GgufFile file(path);
  StateDict<T> state;
  for (const TensorView& tensor : file.tensors()) {
    state[tensor.name] = detail::array_from<T>(path, tensor);
    file.release(tensor);
  }
  file.throw_if_changed();
  return state;
}

template StateDict<float> load_gguf(const std::string&);
template StateDict<double> load_gguf(const std::string&);

}  // namespace xgrad
