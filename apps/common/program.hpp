#pragma once

// What all programs do: report errors, and check that their output was written.

#include <functional>
#include <string>

namespace apps {

/// A word as a shell reads it.
std::string shell_word(const std::string& text);

/// Tells on stderr where a page was written and, to someone who is logged in from elsewhere, how to get it.
void tell_where_it_is(const std::string& path);

/// Flushes the output, so that who reads it need not wait. Throws OutputError if it cannot be written.
struct OutputError {};
void flush_output();

/// Flushes the output and returns the program's exit code: 1, and a line on stderr, if it could not be
/// written.
int finish(const std::string& name, int exit_code);

/// Runs a program's body; an exception becomes one line on stderr and exit code 1, and so does output that
/// cannot be written, be it for the limit on file sizes (ulimit -f). An Interruption becomes its exit code
/// alone.
int run_program(const char* name, const std::function<int()>& body);

}  // namespace apps
