#pragma once

// What all programs do: report errors, and check that their output was written.

#include <optional>
#include <string>
#include <string_view>

namespace apps {

/// A word as a shell reads it.
std::string shell_word(const std::string& text);

/// Tells on stderr where a page was written and, to someone who is logged in from elsewhere, how to get it.
void tell_where_it_is(const std::string& path);

/// The next line of the input, without its end; none at the end of the input. Throws std::runtime_error if it
/// cannot be read.
std::optional<std::string> next_input_line();

/// Prints a line, which may have any characters.
void print_line(std::string_view text);

/// Flushes the output, so that who reads it need not wait. Throws OutputError if it cannot be written.
struct OutputError {
  int error;  ///< errno, or 0 if it is not known
};
void flush_output();

namespace detail {

int run_program(const char* name, int (*call)(void* body), void* body);

}  // namespace detail

/// Runs a program's body, with its command line, as memory may fail there, too. An exception becomes one line
/// on stderr and exit code 1, and so does output that cannot be written, be it for the limit on file sizes
/// (ulimit -f): if it is a regular file, it is cut behind the last whole line, and the line on stderr says
/// how many there are. An Interruption becomes one line, too, and its exit code.
template <class Body>
int run_program(const char* name, const Body& body) {
  const auto call = [](void* given) { return (*static_cast<const Body*>(given))(); };
  return detail::run_program(name, call, const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace apps
