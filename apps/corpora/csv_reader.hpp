#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "line_reader.hpp"

namespace apps {

/// The records of a file of comma-separated values (RFC 4180), or of another separator, plain or compressed
/// by gzip. A field in quotes may have separators, line ends (as LF) and quotes, each written twice; one
/// without has no quote. Blank lines between records are left out. Throws std::runtime_error, `FILE:LINE:
/// what must hold, got what`, also for records of more than max_line_bytes.
class CsvReader {
 public:
  explicit CsvReader(const std::string& path, char separator = ',') : lines_(path), separator_(separator) {}

  /// Reads the next record; false at the end of the file.
  bool next(std::vector<std::string>& fields);

  /// The line that the record begins in.
  std::size_t line() const { return line_; }
  /// How many blank lines were left out.
  std::size_t blank_lines() const { return blank_lines_; }

 private:
  /// Appends the field that begins at `place` of the text, and moves `place` behind it; the text gets more
  /// lines if the field has some.
  void read_field(std::string& text, std::size_t& place, std::vector<std::string>& fields);

  LineReader lines_;
  char separator_;
  std::size_t line_ = 0, blank_lines_ = 0;
};

}  // namespace apps
