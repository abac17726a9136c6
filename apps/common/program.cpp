#include "program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <vector>

#include <CLI/CLI.hpp>
#include <xgrad/base/detail/launcher.hpp>
#include <xgrad/base/detail/parse.hpp>
#include <xgrad/base/error.hpp>

namespace apps {
namespace {

/// Flushes the output and returns the program's exit code: 1, and a line on stderr, if it could not be
/// written.
int finish(const std::string& name, int exit_code) {
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::cout && std::ferror(stdout) == 0) return exit_code;
  std::cerr << name << ": cannot write the output\n";
  return 1;
}

/// Whether this is the rank that prints: rank 0, or a process that mpirun has not started.
bool is_first_rank() { return xgrad::detail::launched_rank().value_or(0) == 0; }

}  // namespace

template <class T>
CLI::Validator in_range(T least, T most) {
  const std::string range =
      xgrad::detail::join({"[", xgrad::detail::text(least), ", ", xgrad::detail::text(most), "]"});
  const auto wrong = [=](const std::string& text) {
    const std::optional<T> number = xgrad::detail::parsed<T>(text);
    const bool right = number && least <= *number && *number <= most;
    return right ? std::string() : "must be a number in " + range + ", got " + text;
  };
  return {wrong, "in " + range};
}

// std::size_t and std::uint64_t, whatever they are.
template CLI::Validator in_range(double, double);
template CLI::Validator in_range(unsigned, unsigned);
template CLI::Validator in_range(unsigned long, unsigned long);
template CLI::Validator in_range(unsigned long long, unsigned long long);

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

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    return is_first_rank() ? finish(name, app.exit(asked)) : 0;
  } catch (const CLI::ParseError& error) {
    // Of several unknown arguments the first; where one is required, a mistyped one may be why it is missing.
    const std::vector<std::string> unknown = app.remaining();
    if (is_first_rank()) {
      std::cerr << name << ": "
                << (unknown.empty() ? error.what() : "there is no argument '" + unknown.front() + "'")
                << "; --help lists the arguments\n";
    }
    return 2;
  }
}

int run_program(const char* name, const std::function<int()>& body) {
  std::signal(SIGXFSZ, SIG_IGN);
  // If a standard stream is closed, the first file that the body opens would get its number, and the output.
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
