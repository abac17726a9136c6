#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace apps {

inline constexpr std::size_t max_line_bytes = std::size_t{1} << 20;

/// The lines of a regular file, plain or compressed by gzip, read one at a time. Throws std::runtime_error,
/// `FILE:LINE: what must hold, got what`.
class LineReader {
 public:
  explicit LineReader(std::string path);
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader();

  /// Reads the next line without its LF or CRLF; false at the end of the file.
  bool next(std::string& line);

  std::size_t number() const { return number_; }

  /// What ended the last line: LF or CRLF; nothing or CR at the end of the file.
  std::string_view line_end() const { return line_end_; }

  /// Throws unless the line is UTF-8 without control characters.
  void check_text(std::string_view line) const;

  [[noreturn]] void fail(const std::string& rule, std::string_view got) const;

 private:
  class ByteReader;

  std::string here() const;
  int next_byte();

  std::string path_;
  std::unique_ptr<ByteReader> bytes_;
  std::size_t number_ = 0;
  std::string_view line_end_;
};

}  // namespace apps
