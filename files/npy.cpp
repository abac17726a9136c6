#include "npy.hpp"

#include <zip.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <new>

#include "../base/detail/text/json_text.hpp"
#include "../base/error.hpp"
#include "detail/row_major.hpp"

namespace xgrad {
namespace {

using detail::in_quotes;

constexpr std::string_view magic("\x93NUMPY", 6);

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// NumPy's names of types, without the byte order that precedes them.
constexpr std::pair<std::string_view, DType> dtype_names[] = {
    {"b1", DType::BOOL}, {"i1", DType::I8},  {"i2", DType::I16}, {"i4", DType::I32},
    {"i8", DType::I64},  {"u1", DType::U8},  {"u2", DType::U16}, {"u4", DType::U32},
    {"u8", DType::U64},  {"f2", DType::F16}, {"f4", DType::F32}, {"f8", DType::F64}};

/// An array of elements that are no numbers.
struct OtherElements : FileError {
  using FileError::FileError;
};

/// What the header of an npy file says.
struct NpyHeader {
  DType dtype;
  bool big_endian, fortran_order;
  Shape shape;
};

/// Reads the header, a Python dict such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(const std::string& file, std::string_view text) : file_(file), rest_(text) {}

  NpyHeader parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
    expect("{");
    while (!accept("}")) {
      const std::string key = string();
      expect(":");
      if (key == "descr" && !descr) {
        if (next() == '[') fail_as<OtherElements>("descr must be one type for all elements, got a structure");
        descr = string();
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        fail("the header must have descr, fortran_order and shape once each, got ", in_quotes(key));
      }
      if (!accept(",") && next() != '}')
        fail("the header must have a comma after the value of ", in_quotes(key));
    }
    if (next() != '\0') fail("the header must end after '}'");
    if (!descr || !fortran_order || !shape) fail("the header must have descr, fortran_order and shape");
    return {dtype_of_descr(*descr), descr->front() == '>', *fortran_order, std::move(*shape)};
  }

 private:
  template <class Error, class... Parts>
  [[noreturn]] void fail_as(const Parts&... parts) const {
    detail::fail<Error>(file_, ": ", parts...);
  }
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    fail_as<FileError>(parts...);
  }

  /// The next character that is not white space; 0 at the end.
  char next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }

  bool accept(std::string_view token) {
    next();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token))
      fail("the header must have ", in_quotes(token), " next, got ", in_quotes(rest_.substr(0, 20)));
  }

  std::string string() {
    const char quote = next();
    const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos)
      fail("the header must have a string next, got ", in_quotes(rest_.substr(0, 20)));
    std::string content(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return content;
  }

  bool boolean() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    fail("fortran_order must be True or False, got ", in_quotes(rest_.substr(0, 20)));
  }

  Shape tuple() {
    if (!accept("(")) fail("shape must be a tuple, got ", in_quotes(rest_.substr(0, 20)));
    Shape shape;
    while (!accept(")")) {
      next();
      std::size_t length = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), length);
      if (error != std::errc())
        fail("shape must hold integers from 0 to 2^64 - 1, got ", in_quotes(rest_.substr(0, 20)));
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2's long integers
      shape.push_back(length);
      const bool comma = accept(",");
      if (!comma && (next() != ')' || shape.size() == 1))  // (3) is not a tuple in Python
        fail("shape must be a tuple, got ", in_quotes(rest_.substr(0, 20)), " after its length ", length);
    }
    return shape;
  }

  DType dtype_of_descr(const std::string& descr) const {
    if (!descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos) {
      for (const auto& [name, dtype] : dtype_names) {
        if (descr.compare(1, std::string::npos, name) == 0) return dtype;
      }
    }
    fail_as<OtherElements>(
        "descr must be bool, an integer or a float of 2, 4 or 8 bytes, got ", in_quotes(descr),
        descr.find('O') == std::string::npos ? "" : " (pickled Python objects are never read)");
  }

  const std::string& file_;
  std::string_view rest_;
};

/// The elements row by row and little-endian.
std::vector<std::byte> reorder(const NpyHeader& header, std::span<const std::byte> data,
                               std::size_t element_size) {
  const Shape& shape = header.shape;
  std::vector<std::size_t> strides(shape.size());
  std::size_t stride = element_size;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = header.fortran_order ? i : shape.size() - 1 - i;
    strides[axis] = stride;
    stride *= shape[axis];
  }
  std::vector<std::byte> reordered = detail::row_major(data, shape, strides, element_size);
  if (header.big_endian) {
    const auto step = static_cast<std::ptrdiff_t>(element_size);
    for (auto element = reordered.begin(); element != reordered.end(); element += step)
      std::reverse(element, element + step);
  }
  return reordered;
}

/// The array of an npy file that is in memory; `reordered` takes its elements if they are not in the right
/// order. `file` is the name for errors.
TensorView read_npy(const std::string& file, std::span<const std::byte> bytes,
                    std::vector<std::byte>& reordered) {
  const std::string_view text = text_of(bytes);
  if (!text.starts_with(magic)) detail::fail<FileError>(file, ": must begin with \"\\x93NUMPY\"");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(bytes[i]); };
  const std::size_t version = bytes.size() < 8 ? 0 : byte(6);
  if (version < 1 || version > 3 || byte(7) != 0)
    detail::fail<FileError>(file, ": the format's version must be 1.0, 2.0 or 3.0");
  const std::size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start)
    detail::fail<FileError>(file, ": must have a header, got ", bytes.size(), " bytes in all");
  std::size_t length = byte(8) + (byte(9) << 8);
  if (version > 1) length += (byte(10) << 16) + (byte(11) << 24);
  if (length > bytes.size() - start)
    detail::fail<FileError>(file, ": the header's length must fit into the file of ", bytes.size(),
                            " bytes, got ", length);

  const NpyHeader header = HeaderParser(file, text.substr(start, length)).parse();
  std::span<const std::byte> data = bytes.subspan(start + length);
  const std::optional<std::size_t> needed = byte_count(header.dtype, header.shape);
  if (needed != data.size())
    detail::fail<FileError>(file, ": the data must be the ", needed ? std::to_string(*needed) : "too many",
                            " bytes of shape ", header.shape, " of ", to_string(header.dtype), ", got ",
                            data.size());
  const std::size_t element_size = *byte_count(header.dtype, {});
  if ((header.big_endian && element_size > 1) || (header.fortran_order && header.shape.size() > 1)) {
    reordered = reorder(header, data, element_size);
    data = reordered;
  }
  return {"", header.dtype, header.shape, data};
}

/// Everything before the data in an npy file of version 1.0; its length is a multiple of 64, `least` or more.
template <class T>
std::string npy_header(const Shape& shape, std::size_t least = 0) {
  const auto* const type =
      std::ranges::find(dtype_names, dtype_of<T>, [](const auto& row) { return row.second; });
  const std::string descr = (sizeof(T) == 1 ? "|" : "<") + std::string(type->first);
  std::string lengths;
  for (const std::size_t length : shape) lengths += std::to_string(length) + (shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1) lengths.erase(lengths.size() - 2);
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + lengths + "), }";
  constexpr std::size_t before = 10;
  dict.append(63 - (before + dict.size()) % 64, ' ');
  if (before + dict.size() + 1 < least) dict.append(least - (before + dict.size() + 1), ' ');
  dict += '\n';
  if (dict.size() > 0xffff)
    detail::fail<ValueError>("save_npy: the header must have at most 65535 bytes, got ", dict.size());
  const char prefix[] = {1, 0, static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  return std::string(magic) + std::string(prefix, sizeof prefix) + dict;
}

template <class T>
std::span<const std::byte> bytes_of(const Array<T>& array) {
  return std::as_bytes(std::span<const T>(array.data(), array.size()));
}

struct Close {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
template <class Z>
using Handle = std::unique_ptr<Z, Close>;

class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  ~ZipError() { zip_error_fini(&error_); }
  zip_error_t* get() { return &error_; }

 private:
  zip_error_t error_;
};

/// libzip's description of an error. Throws std::bad_alloc where it had no memory, of which it may tell
/// nothing.
std::string text_of_error(zip_error_t* error) {
  const int code = zip_error_code_zip(error);
  if (code == ZIP_ER_MEMORY || code == ZIP_ER_OK) throw std::bad_alloc();
  return zip_error_strerror(error);
}

[[noreturn]] void fail_to_unzip(const std::string& file, const std::string& why) {
  detail::fail<FileError>(file, ": must be a whole zip archive: ", why);
}

/// The unpacked bytes of an entry. Its size is compared with the packed size before anything is allocated.
std::vector<std::byte> unpack(const std::string& file, zip_t* archive, zip_uint64_t index,
                              std::size_t& packed_left) {
  constexpr zip_uint64_t most_deflated =
      1032;  // bytes for each byte: deflate packs at most 258 bytes into 2 bits
  constexpr zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  zip_stat_t status;
  if (zip_stat_index(archive, index, 0, &status) != 0 || (status.valid & wanted) != wanted)
    fail_to_unzip(file, text_of_error(zip_get_error(archive)));
  if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
    detail::fail<FileError>(file, ": must be stored or deflated, got compression method ",
                            status.comp_method);
  if (status.comp_size > packed_left || status.size / most_deflated > status.comp_size)
    detail::fail<FileError>(file, ": must be unpacked from the archive's bytes, got a size of ", status.size,
                            " packed into ", status.comp_size);
  packed_left -= status.comp_size;

  const Handle<zip_file_t> entry(zip_fopen_index(archive, index, 0));
  if (!entry) fail_to_unzip(file, text_of_error(zip_get_error(archive)));
  // One byte more than the entry has: libzip compares the checksum when reading reaches the end.
  std::vector<std::byte> bytes(status.size + 1);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const zip_int64_t count = zip_fread(entry.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0) fail_to_unzip(file, text_of_error(zip_file_get_error(entry.get())));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  if (done != status.size) fail_to_unzip(file, "its size differs from that in the archive's directory");
  bytes.pop_back();
  return bytes;
}

}  // namespace

NpyFile::NpyFile(const std::string& path)
    : file_(path),
      tensor_(detail::read_unchanged(file_, [&] { return read_npy(path, file_.bytes(), reordered_); })) {}

NpzFile::NpzFile(const std::string& path) {
  const MappedFile file(path);
  detail::read_unchanged(file, [&] { read(path, file.bytes()); });
}

void NpzFile::read(const std::string& path, std::span<const std::byte> bytes) {
  if (!text_of(bytes).starts_with("PK")) fail_to_unzip(path, "it must begin with \"PK\"");
  ZipError error;
  Handle<zip_source_t> source(zip_source_buffer_create(bytes.data(), bytes.size(), 0, error.get()));
  if (!source) fail_to_unzip(path, text_of_error(error.get()));
  const Handle<zip_t> archive(zip_open_from_source(source.get(), ZIP_RDONLY | ZIP_CHECKCONS, error.get()));
  if (!archive) fail_to_unzip(path, text_of_error(error.get()));
  static_cast<void>(source.release());  // the archive owns it now

  std::size_t packed_left = bytes.size();
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* const entry_name = zip_get_name(archive.get(), index, 0);
    if (!entry_name) fail_to_unzip(path, text_of_error(zip_get_error(archive.get())));
    std::string name = entry_name;
    const std::string where = path + ": entry " + in_quotes(name);
    if (!name.ends_with(".npy")) detail::fail<FileError>(where, ": must be an npy file");
    std::vector<std::byte> content = unpack(where, archive.get(), index, packed_left), reordered;
    name.erase(name.size() - 4);
    try {
      TensorView tensor = read_npy(where, content, reordered);
      tensor.name = std::move(name);
      contents_.push_back(reordered.empty() ? std::move(content) : std::move(reordered));
      tensors_.push_back(std::move(tensor));
    } catch (const OtherElements& error) {
      others_.push_back({std::move(name), error.what()});
    }
  }
}

template <class T>
Array<T> load_npy(const std::string& path) {
  const NpyFile file(path);
  Array<T> array = detail::array_from<T>(path, file.tensor(), false);
  file.throw_if_changed();
  return array;
}

template <class T>
void save_npy(const Array<T>& array, const std::string& path) {
  const std::string header = npy_header<T>(array.shape());
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(header)));
  file.write(bytes_of(array));
  file.commit();
}

template <class T>
NpyWriter<T>::NpyWriter(const std::string& path, const Shape& row)
    : file_(path), row_(row), row_bytes_(element_count(row) * sizeof(T)) {
  detail::check_count("NpyWriter", row);
  Shape most = row;
  most.insert(most.begin(), SIZE_MAX);
  header_size_ = npy_header<T>(most).size();
  const std::string text = header();
  file_.write(std::as_bytes(std::span(text)));
}

template <class T>
void NpyWriter<T>::append(const Array<T>& rows) {
  const Shape& shape = rows.shape();
  if (shape.empty() || !std::equal(shape.begin() + 1, shape.end(), row_.begin(), row_.end()))
    detail::fail<ShapeError>("NpyWriter: rows must have the shape ", row_, " behind axis 0, got ", shape);
  file_.write(bytes_of(rows));
  rows_ += shape[0];
}

template <class T>
std::string NpyWriter<T>::header() const {
  Shape shape = row_;
  shape.insert(shape.begin(), rows_);
  return npy_header<T>(shape, header_size_);
}

template <class T>
void NpyWriter<T>::complete() {
  const std::string text = header();
  file_.overwrite(0, std::as_bytes(std::span(text)));
  file_.cut(header_size_ + rows_ * row_bytes_);
}

template <class T>
void NpyWriter<T>::commit() {
  complete();
  file_.commit();
}

template <class T>
void NpyWriter<T>::commit_as(const std::string& path) {
  complete();
  file_.commit_as(path);
}

template <class T>
StateDict<T> load_npz(const std::string& path) {
  const NpzFile file(path);
  if (!file.others().empty()) throw FileError(file.others().front().reason);
  StateDict<T> arrays;
  for (const TensorView& tensor : file.tensors()) arrays[tensor.name] = detail::array_from<T>(path, tensor);
  return arrays;
}

template <class T>
void save_npz(const StateDict<T>& arrays, const std::string& path) {
  if (arrays.empty()) detail::fail<ValueError>("save_npz: must be given at least one array, got none");
  for (const auto& [name, array] : arrays) {
    if (name.find('\0') != std::string::npos)
      detail::fail<ValueError>("save_npz: a name must have no zero byte, got ", in_quotes(name));
  }
  AtomicFile file(path);
  const auto check = [&](bool done, zip_error_t* error) {
    if (!done) detail::fail<FileError>(path, ": cannot be written: ", text_of_error(error));
  };

  // libzip cannot write to an open file, so it packs into memory.
  ZipError error;
  const Handle<zip_source_t> packed(zip_source_buffer_create(nullptr, 0, 0, error.get()));
  check(packed != nullptr, error.get());
  zip_source_keep(packed.get());
  Handle<zip_t> archive(zip_open_from_source(packed.get(), ZIP_TRUNCATE, error.get()));
  if (!archive) zip_source_free(packed.get());
  check(archive != nullptr, error.get());
  std::vector<std::string> headers;
  headers.reserve(arrays.size());  // libzip reads them when the archive is closed
  for (const auto& [name, array] : arrays) {
    const std::string& header = headers.emplace_back(npy_header<T>(array.shape()));
    const std::span<const std::byte> data = bytes_of(array);
    const zip_buffer_fragment_t parts[] = {
        {reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data())), header.size()},
        {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(data.data())), data.size()}};
    Handle<zip_source_t> content(zip_source_buffer_fragment(archive.get(), parts, data.empty() ? 1 : 2, 0));
    check(content != nullptr, zip_get_error(archive.get()));
    const zip_int64_t index =
        zip_file_add(archive.get(), (name + ".npy").c_str(), content.get(), ZIP_FL_ENC_UTF_8);
    check(index >= 0, zip_get_error(archive.get()));
    static_cast<void>(content.release());  // the archive owns it now
    constexpr zip_uint16_t first_of_1980 = 0x21;
    const auto entry = static_cast<zip_uint64_t>(index);
    check(zip_set_file_compression(archive.get(), entry, ZIP_CM_STORE, 0) == 0 &&
              zip_file_set_dostime(archive.get(), entry, 0, first_of_1980, 0) == 0,
          zip_get_error(archive.get()));
  }
  check(zip_close(archive.get()) == 0, zip_get_error(archive.get()));
  static_cast<void>(archive.release());  // zip_close has freed it

  check(zip_source_open(packed.get()) == 0, zip_source_error(packed.get()));
  std::vector<std::byte> piece(1 << 20);
  zip_int64_t count;
  while ((count = zip_source_read(packed.get(), piece.data(), piece.size())) > 0)
    file.write(std::span(piece).first(static_cast<std::size_t>(count)));
  check(count == 0, zip_source_error(packed.get()));
  zip_source_close(packed.get());
  file.commit();
}

#define XGRAD_INSTANTIATE(T)                                   \
  template Array<T> load_npy(const std::string&);              \
  template void save_npy(const Array<T>&, const std::string&); \
  template class NpyWriter<T>;                                 \
  template StateDict<T> load_npz(const std::string&);          \
  template void save_npz(const StateDict<T>&, const std::string&);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
XGRAD_INSTANTIATE(std::int64_t)
XGRAD_INSTANTIATE(bool)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad
