#include "program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>

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

void flush_output() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) throw OutputError();
}

int finish(const std::string& name, int exit_code) {
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::cout && std::ferror(stdout) == 0) return exit_code;
  std::cerr << name << ": cannot write the output\n";
  return 1;
}

int run_program(const char* name, const std::function<int()>& body) {
  std::signal(SIGXFSZ, SIG_IGN);
  // If a standard stream is closed, the first file that the body opens would get its number, and the output.
  // In its place comes one that cannot be used, so that a program that needs the stream ends with an error.
  constexpr std::array how{O_WRONLY, O_RDONLY, O_RDWR};
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", how.at(static_cast<std::size_t>(stream))));
  }
  try {
    const int exit_code = body();
    if (std::ferror(stdin) != 0) throw std::runtime_error("the input cannot be read");
    return finish(name, exit_code);
  } catch (const Interruption& interruption) {
    return finish(name, 128 + interruption.signal);
  } catch (const OutputError&) {
    return finish(name, 1);
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return finish(name, 1);
  }
}

}  // namespace apps
