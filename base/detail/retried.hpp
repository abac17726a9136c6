#pragma once

#include <cerrno>
#include <cstdio>
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

}  // namespace xgrad::detail
