#pragma once

// What the mains of the programs have in common: the command line, errors and the end.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <xgrad/graph/error.hpp>

namespace apps {

/// The check of an option that it is a number in [least, most]. CLI::Range lets nan pass, and takes the -1 of
/// a number without a sign for its largest one.
template <class T>
CLI::Validator in_range(T least, T most) {
  const std::string range =
      xgrad::detail::join({"[", xgrad::detail::text(least), ", ", xgrad::detail::text(most), "]"});
  const auto wrong = [=](const std::string& text) {
    const char* const end = text.data() + text.size();
    T number{};
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool right = error == std::errc() && stop == end && least <= number && number <= most;
    return right ? std::string() : "must be a number in " + range + ", got " + text;
  };
  return {wrong, "in " + range};
}

/// The exit code of a program that is done: 1, and a line on stderr, if its output has not arrived.
inline int finish(const std::string& name, int exit_code) {
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::cout && std::ferror(stdout) == 0) return exit_code;
  std::cerr << name << ": cannot write the output\n";
  return 1;
}

/// Reads the command line. Returns what to exit with where there is nothing to run: 0 after --help, 2 after
/// one line on stderr for arguments that cannot be.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    return finish(name, app.exit(asked));
  } catch (const CLI::ParseError& error) {
    std::cerr << name << ": " << error.what() << "; --help lists the arguments\n";
    return 2;
  }
}

/// Runs a program's body; an exception becomes one line on stderr and exit code 1, and so does output that
/// cannot be written.
template <class Body>
int run_program(const char* name, Body&& body) {
  // Without this a file that the body opens takes the place of a closed stream, and its output goes there.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_RDWR));
  }
  try {
    return finish(name, body());
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return finish(name, 1);
  }
}

}  // namespace apps
