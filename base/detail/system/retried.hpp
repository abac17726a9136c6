#pragma once

#include <cerrno>
#include <cstdio>
#include <string>
#include <type_traits>

namespace xgrad::detail {

/// The result of a system call, which is repeated while a signal interrupts it (EINTR). Not for close(): on
/// Linux the file is closed nevertheless, and its number may be another's by then.
template <typename Call>
auto retried(const Call& call) {
  for (;;) {
    const auto result = call();
    bool failed = false;
    if constexpr (std::is_pointer_v<decltype(call())>) {
      failed = result == nullptr;
    } else {
      failed = result == -1;
    }
    if (!failed || errno != EINTR) return result;
  }
}

/// The next byte of a file; EOF at its end, and where ferror() tells that it cannot be read.
inline int next_byte(std::FILE* file) {
  for (;;) {
    const int byte = std::getc(file);
    if (byte != EOF || std::ferror(file) == 0 || errno != EINTR) return byte;
    std::clearerr(file);
  }
}

/// Reads a line without its end. False where the file ends before that, or cannot be read, as ferror() tells.
inline bool next_line(std::FILE* file, std::string& line) {
  line.clear();
  int byte = 0;
  while ((byte = next_byte(file)) != EOF && byte != '\n') line += static_cast<char>(byte);
  return byte != EOF;
}

/// The deleter of a std::unique_ptr<std::FILE, CloseFile>.
struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

}  // namespace xgrad::detail
