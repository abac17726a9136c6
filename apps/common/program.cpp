#include "program.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <xgrad/base/detail/system/retried.hpp>

#include "interruption.hpp"

namespace apps {

std::string shell_word(const std::string& text) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/@[]";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

void tell_where_it_is(const std::string& path) {
  const std::string full = std::filesystem::absolute(path).string();
  std::fprintf(stderr, "report: %s\n", full.c_str());
  const char* const connection = std::getenv("SSH_CONNECTION");  // client, port, server, port
  const char* const user = std::getenv("USER");
  if (connection == nullptr) return;
  std::istringstream parts(connection);
  std::string client, port, server;
  parts >> client >> port >> server;
  const std::string host = server.find(':') == server.npos ? server : "[" + server + "]";
  const std::string source = (user != nullptr ? user + std::string("@") : "") + host + ":" + full;
  std::fprintf(stderr, "to view it on your machine: scp %s .\n", shell_word(source).c_str());
}

std::optional<std::string> next_input_line() {
  std::string line;
  const bool is_whole = xgrad::detail::next_line(stdin, line);
  if (std::ferror(stdin) != 0)
    throw std::runtime_error(std::string("the input cannot be read: ") + std::strerror(errno));
  return !is_whole && line.empty() ? std::nullopt : std::optional(std::move(line));
}

void print_line(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::putchar('\n');
}

namespace {

int open_file(const char* path, int flags) {
  return xgrad::detail::retried([&] { return ::open(path, flags); });
}

/// Flushes the output. The error, or 0 where nobody knows, if it could not be written.
std::optional<int> output_error() {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::cout && std::ferror(stdout) == 0) return std::nullopt;
  return flushed ? 0 : errno;
}

/// The file that the output goes to.
class OutputFile {
 public:
  OutputFile() {
    struct stat status {};
    if (::fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return;
    const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
    begin_ = (flags & O_APPEND) != 0 ? status.st_size : ::lseek(STDOUT_FILENO, 0, SEEK_CUR);
  }

  bool is_regular() const { return begin_ >= 0; }

  /// Removes what is behind the last whole line, and counts the lines. Nothing if it is no regular file, one
  /// that cannot be read, or one that another process writes, too.
  std::optional<std::size_t> keep_whole_lines() const {
    struct stat status {};
    if (begin_ < 0 || ::fstat(STDOUT_FILENO, &status) != 0 ||
        status.st_size != ::lseek(STDOUT_FILENO, 0, SEEK_CUR))
      return std::nullopt;
    const int file = open_file("/dev/stdout", O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    std::array<char, 4096> piece;
    std::size_t lines = 0;
    off_t at = begin_, end = begin_;
    for (ssize_t count; (count = ::pread(file, piece.data(), piece.size(), at)) > 0; at += count) {
      for (ssize_t i = 0; i < count; ++i) {
        if (piece[static_cast<std::size_t>(i)] != '\n') continue;
        ++lines;
        end = at + i + 1;
      }
    }
    ::close(file);
    if (at != status.st_size || !cut(end)) return std::nullopt;
    return lines;
  }

  /// Why nothing can be written, as stdio forgets it; 0 where nobody knows. Call it after keep_whole_lines().
  int write_error() const {
    struct stat status {};
    if (::fstat(STDOUT_FILENO, &status) != 0) return errno;
    const bool is_device = S_ISCHR(status.st_mode) && ::isatty(STDOUT_FILENO) == 0;
    if (begin_ < 0 && !is_device) return 0;
    constexpr std::array<char, 65536> blank{};
    const off_t end = begin_ < 0 ? 0 : ::lseek(STDOUT_FILENO, 0, SEEK_CUR);
    int error = 0;
    for (int i = 0; i < 2 && error == 0; ++i) {
      if (::write(STDOUT_FILENO, blank.data(), is_device ? 1 : blank.size()) < 0) error = errno;
    }
    if (begin_ >= 0) static_cast<void>(cut(end));
    return error;
  }

 private:
  static bool cut(off_t end) {
    return ::ftruncate(STDOUT_FILENO, end) == 0 && ::lseek(STDOUT_FILENO, end, SEEK_SET) == end;
  }

  off_t begin_ = -1;  // of what this program writes; -1: no regular file
};

/// Text on stderr, without memory.
template <class... Texts>
void tell(const Texts&... texts) {
  (std::fputs(texts, stderr), ...);
}

/// As tell(), after the output so far, as both may go to one place.
template <class... Texts>
void tell_after_output(const Texts&... texts) {
  std::cout.flush();
  std::fflush(stdout);
  tell(texts...);
}

/// Says that the output could not be written, once, and takes care that nothing more is written.
int fail_output(const char* name, const OutputFile& output, int error) {
  const std::optional<std::size_t> lines = output.keep_whole_lines();
  if (error == 0 && (lines || !output.is_regular())) error = output.write_error();
  tell(name, ": cannot write the output", error != 0 ? ": " : "", error != 0 ? std::strerror(error) : "");
  if (lines) std::fprintf(stderr, "; it has %zu whole line%s", *lines, *lines == 1 ? "" : "s");
  tell("\n");
  const int nowhere = open_file("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);  // the rest in the buffer would be written at the end
  return 1;
}

}  // namespace

void flush_output() {
  if (const std::optional<int> error = output_error()) throw OutputError{*error};
}

int detail::run_program(const char* name, int (*call)(void* body), void* body) {
  std::signal(SIGXFSZ, SIG_IGN);
  // If a standard stream is closed, the first file that the body opens would get its number, and the output.
  // In its place comes one that cannot be used, so that a program that needs the stream ends with an error.
  constexpr std::array how{O_WRONLY, O_RDONLY, O_RDWR};
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(open_file("/dev/null", how.at(static_cast<std::size_t>(stream))));
  }
  const OutputFile output;
  int exit_code = 1;
  try {
    exit_code = call(body);
  } catch (const Interruption& interruption) {
    const bool told = *interruption.what_is_lost != '\0';
    tell_after_output(name, ": interrupted", told ? "; " : "", interruption.what_is_lost, "\n");
    exit_code = 128 + interruption.signal;
  } catch (const OutputError& error) {
    return fail_output(name, output, error.error);
  } catch (const std::bad_alloc&) {
    tell_after_output(name, ": there is not enough memory\n");
    exit_code = 1;
  } catch (const std::exception& error) {
    tell_after_output(name, ": ", error.what(), "\n");
    exit_code = 1;
  }
  const std::optional<int> error = output_error();
  return error ? fail_output(name, output, *error) : exit_code;
}

}  // namespace apps
