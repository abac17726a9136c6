#pragma once

// A program that a test talks to while it runs.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace xgrad_tests {

/// A program of this project whose input and output are pipes, and whose errors go to a file if it has a
/// path.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& arguments, const std::string& errors = "") {
    int input[2], output[2];
    if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(input[0], STDIN_FILENO);
      ::dup2(output[1], STDOUT_FILENO);
      if (!errors.empty()) ::dup2(::open(errors.c_str(), O_WRONLY | O_CREAT, 0666), STDERR_FILENO);
      ::signal(SIGINT, SIG_DFL);
      std::string program = std::string(XGRAD_PROGRAMS_DIR) + "/" + arguments.front();
      std::vector<char*> texts{program.data()};
      for (std::size_t i = 1; i < arguments.size(); ++i)
        texts.push_back(const_cast<char*>(arguments[i].c_str()));
      texts.push_back(nullptr);
      ::execv(program.c_str(), texts.data());
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    to_ = input[1];
    from_ = output[0];
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      wait();
    }
    ::close(to_);
    ::close(from_);
  }

  void write(const std::string& text) {
    if (::write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("the program does not read");
  }

  /// The next line of the output with its end; "" if none comes for a minute, or no more.
  std::string line() {
    std::string line;
    pollfd file{from_, POLLIN, 0};
    for (char c = 0; c != '\n'; line += c) {
      if (::poll(&file, 1, 60'000) <= 0 || ::read(from_, &c, 1) != 1) return "";
    }
    return line;
  }

  /// Whether there is output that has not been read.
  bool has_output() const {
    pollfd file{from_, POLLIN, 0};
    return ::poll(&file, 1, 0) > 0;
  }

  void send(int signal) { ::kill(process_, signal); }

  /// The exit code; -1 if a signal has ended the program.
  int wait() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace xgrad_tests
