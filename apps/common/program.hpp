#pragma once

// What all programs do: read the command line, report errors, and check that their output was written.

#include <functional>
#include <optional>
#include <string>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace apps {

/// Checks that an option is a number in [least, most]. CLI::Range would accept nan, and would turn -1 into
/// the largest number of an unsigned type. T: double or an unsigned type.
template <class T>
CLI::Validator in_range(T least, T most);

/// A word as a shell reads it.
std::string shell_word(const std::string& text);

/// Tells on stderr where a page was written and, to someone who is logged in from elsewhere, how to get it.
void tell_where_it_is(const std::string& path);

/// Reads the command line. Returns an exit code if the program should end: 0 after --help, 2 after an error
/// in the arguments, which is one line on stderr.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

/// Runs a program's body; an exception becomes one line on stderr and exit code 1, and so does output that
/// cannot be written, be it for the limit on file sizes (ulimit -f).
int run_program(const char* name, const std::function<int()>& body);

}  // namespace apps
