#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

using Environment = std::map<std::string, std::string>;

/// Before processes are started and compared: with one thread all of them run on one processor, as those of a
/// virtual machine may be of unequal speed; their OpenBLAS takes the kernels made for it; and a process that
/// ends is an exception. Throws std::system_error if they cannot be bound.
inline void prepare_to_compare(std::size_t threads) {
  if (const int processor = sched_getcpu(); threads == 1 && processor >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(processor), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) {
      throw std::system_error(errno, std::generic_category(), "cannot bind to one processor");
    }
  }
  unsetenv("OPENBLAS_CORETYPE");
  signal(SIGPIPE, SIG_IGN);
}

/// A child process that answers each JSON line with one. Who makes one ignores SIGPIPE.
class Process {
 public:
  /// `name` stands in errors. `changes` are made to this process's environment. Throws std::system_error.
  Process(std::string name, std::vector<std::string> command, const Environment& changes = {},
          std::chrono::milliseconds patience = std::chrono::minutes(10))
      : name_(std::move(name)), patience_(patience) {
    const auto [child_in, requests] = open_pipe();
    const auto [answers, child_out] = open_pipe();
    requests_ = requests;
    answers_ = answers;

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child_out, STDOUT_FILENO);
    std::vector<std::string> variables = environment(changes);
    const int error = posix_spawnp(&process_, command[0].c_str(), &actions, nullptr, pointers(command).data(),
                                   pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(child_in);
    close(child_out);
    if (error == 0) return;
    close(requests_);
    close(answers_);
    throw std::system_error(error, std::generic_category(), name_ + ": cannot run '" + command[0] + "'");
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    close(requests_);
    close(answers_);
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  const std::string& name() const { return name_; }

  /// Throws std::runtime_error if the process ends, is silent for longer than its patience, or does not
  /// answer with an object that is an Answer; or with {"error": "why"}.
  template <class Answer = nlohmann::json>
  Answer ask(const nlohmann::json& request) {
    const std::string line = request.dump() + "\n";
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t written = write(requests_, rest.data(), rest.size());
      if (written > 0) {
        rest.remove_prefix(static_cast<std::size_t>(written));
      } else if (errno != EINTR) {
        fail_ended();
      }
    }
    const std::string text = read_line();
    const nlohmann::json answer = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!answer.is_object()) fail("answered what is no JSON object: " + text.substr(0, longest_quote));
    if (const auto error = answer.find("error"); error != answer.end()) {
      fail(error->is_string() ? error->get<std::string>() : error->dump());
    }
    try {
      return answer.get<Answer>();
    } catch (const nlohmann::json::exception& wrong) {
      fail("answered " + answer.dump().substr(0, longest_quote) + ": " + wrong.what());
    }
  }

  /// The most memory that the process has had so far, in MiB. Its ru_maxrss would count this process's, too.
  double peak_memory() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/status");
    for (std::string word; file >> word;) {
      if (double kib = 0; word == "VmHWM:" && file >> kib) return kib / 1024;
    }
    fail("its peak memory cannot be read");
  }

  [[noreturn]] void fail(const std::string& why) const { throw std::runtime_error(name_ + ": " + why); }

 private:
  static constexpr std::size_t longest_quote = 200;

  static std::pair<int, int> open_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    return {ends[0], ends[1]};
  }

  static std::vector<std::string> environment(const Environment& changes) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable; ++variable) {
      const std::string_view text = *variable;
      if (!changes.contains(std::string(text.substr(0, text.find('='))))) variables.emplace_back(text);
    }
    for (const auto& [name, value] : changes) variables.push_back(name + "=" + value);
    return variables;
  }

  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  std::string read_line() {
    const auto deadline = std::chrono::steady_clock::now() + patience_;
    for (;;) {
      if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
        const std::string line = received_.substr(0, end);
        received_.erase(0, end + 1);
        return line;
      }
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd readable{answers_, POLLIN, 0};
      const int ready = left.count() > 0 ? poll(&readable, 1, static_cast<int>(left.count())) : 0;
      if (ready == 0) fail("no answer in " + std::to_string(patience_.count()) + " ms");
      if (ready < 0) continue;
      std::array<char, 65536> piece;
      const ssize_t count = read(answers_, piece.data(), piece.size());
      if (count > 0) received_.append(piece.data(), static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR)) fail_ended();
    }
  }

  [[noreturn]] void fail_ended() {
    int status = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (waitpid(process_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) fail("closed its output");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process_ = -1;
    fail(WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                             : "ended with exit code " + std::to_string(WEXITSTATUS(status)));
  }

  std::string name_;
  std::chrono::milliseconds patience_;
  int requests_ = -1, answers_ = -1;
  pid_t process_ = -1;
  std::string received_;
};

}  // namespace bench
