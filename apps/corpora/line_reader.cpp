#include "line_reader.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <utility>

#include <xgrad/base/detail/system/retried.hpp>

#include "utf8.hpp"

namespace apps {
namespace {

std::string kind(const std::filesystem::file_status& status) {
  if (std::filesystem::is_directory(status)) return "a directory";
  if (std::filesystem::is_fifo(status)) return "a FIFO";
  return "a device or socket";
}

// Opening a FIFO waits for its writer, and a device may never end.
void check_regular_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::status_known(status) || !std::filesystem::exists(status)) {
    throw std::runtime_error(path + ": cannot open: " + error.message());
  }
  if (std::filesystem::is_regular_file(status)) return;
  throw std::runtime_error(path + ": must be a regular file, got " + kind(status));
}

}  // namespace

/// The bytes of a file, plain or compressed by gzip (RFC 1952), with nothing behind its last member.
/// Decompresses by inflate(), as gzread() of zlib 1.3.2 gives what stands before the end of a cut file and no
/// error.
class LineReader::ByteReader {
 public:
  /// Throws std::runtime_error.
  explicit ByteReader(const std::string& path)
      : file_(xgrad::detail::retried([&] { return std::fopen(path.c_str(), "rb"); })) {
    if (!file_) throw std::runtime_error(std::strerror(errno));
    read_input();
    compressed_ = input_size_ >= 2 && input_[0] == 0x1F && input_[1] == 0x8B;
    if (compressed_ && inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK) throw std::bad_alloc();
  }
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;
  ~ByteReader() {
    if (compressed_) inflateEnd(&stream_);
  }

  /// The next byte; -1 at the end. Throws std::runtime_error.
  int next() {
    if (at_ == size_ && !(compressed_ ? inflate_more() : copy_more())) return -1;
    return output_[at_++];
  }

 private:
  void read_input() {
    do {
      std::clearerr(file_.get());
      input_size_ = std::fread(input_.data(), 1, input_.size(), file_.get());
    } while (input_size_ == 0 && std::ferror(file_.get()) != 0 && errno == EINTR);
    if (std::ferror(file_.get()) != 0 && errno != EINTR) throw std::runtime_error(std::strerror(errno));
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(input_size_);
  }

  bool copy_more() {
    output_ = input_;
    at_ = 0;
    size_ = input_size_;
    if (size_ > 0) read_input();
    return size_ > 0;
  }

  bool inflate_more() {
    at_ = size_ = 0;
    while (size_ == 0) {
      if (stream_.avail_in == 0) read_input();
      if (stream_.avail_in == 0 && !in_member_) return false;
      if (!in_member_) inflateReset(&stream_);  // a file may have several members
      stream_.next_out = output_.data();
      stream_.avail_out = static_cast<uInt>(output_.size());
      const int code = stream_.avail_in == 0 ? Z_BUF_ERROR : inflate(&stream_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END) throw std::runtime_error("damaged or incomplete gzip data");
      in_member_ = code == Z_OK;
      size_ = output_.size() - stream_.avail_out;
    }
    return true;
  }

  std::unique_ptr<std::FILE, xgrad::detail::CloseFile> file_;
  std::array<unsigned char, 1 << 14> input_, output_;
  std::size_t input_size_ = 0, at_ = 0, size_ = 0;
  bool compressed_ = false, in_member_ = false;
  z_stream stream_ = {};
};

LineReader::LineReader(std::string path) : path_(std::move(path)) {
  check_regular_file(path_);
  try {
    bytes_ = std::make_unique<ByteReader>(path_);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path_ + ": cannot open: " + error.what());
  }
}

LineReader::~LineReader() = default;

bool LineReader::next(std::string& line) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  line.clear();
  ++number_;
  int c;
  while ((c = next_byte()) != -1 && c != '\n') {
    if (line.size() == max_line_bytes) {
      fail("a line must be at most " + std::to_string(max_line_bytes) + " bytes", line);
    }
    line.push_back(static_cast<char>(c));
  }
  const bool found = c == '\n' || !line.empty();
  line_end_ = c == '\n' ? "\n" : "";
  if (line.ends_with('\r')) {
    line.pop_back();
    line_end_ = c == '\n' ? "\r\n" : "\r";
  }
  if (number_ == 1 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
  return found;
}

void LineReader::check_text(std::string_view line) const {
  const auto points = decode_utf8(line);
  if (!points) fail("a line must be valid UTF-8", line);
  const auto forbidden = [](char32_t point) { return is_control(point) && point != U'\t'; };
  if (std::ranges::any_of(*points, forbidden)) fail("a line must hold no control characters", line);
}

void LineReader::fail(const std::string& rule, std::string_view got) const {
  throw std::runtime_error(here() + rule + ", got " + printable(got));
}

std::string LineReader::here() const { return path_ + ":" + std::to_string(number_) + ": "; }

int LineReader::next_byte() {
  try {
    return bytes_->next();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(here() + "cannot read: " + error.what());
  }
}

}  // namespace apps
