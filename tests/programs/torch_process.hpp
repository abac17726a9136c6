#pragma once

// A Python script beside this program, which answers each line of JSON with one.

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

namespace xgrad_tests {

class TorchProcess {
 public:
  /// Starts the script. What it does not import is told by available().
  TorchProcess(const std::string& python, const std::string& script) {
    int to[2], from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) throw std::runtime_error("there are no more pipes");
    std::signal(SIGPIPE, SIG_IGN);
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("there are no more processes");
    if (child_ == 0) {
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      for (const int end : {to[0], to[1], from[0], from[1]}) ::close(end);
      ::execlp(python.c_str(), python.c_str(), script.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
    version_ = line();
  }
  TorchProcess(const TorchProcess&) = delete;
  TorchProcess& operator=(const TorchProcess&) = delete;

  ~TorchProcess() {
    std::fclose(to_);
    std::fclose(from_);
    ::waitpid(child_, nullptr, 0);
  }

  bool available() const { return !version_.empty(); }
  /// Of torch.
  const std::string& version() const { return version_; }

  nlohmann::json answer(const nlohmann::json& question) {
    const std::string text = question.dump() + "\n";
    std::fwrite(text.data(), 1, text.size(), to_);
    std::fflush(to_);
    const std::string reply = line();
    if (reply.empty()) throw std::runtime_error("the process with PyTorch has ended");
    return nlohmann::json::parse(reply);
  }

 private:
  std::string line() {
    std::string text;
    for (int letter = 0; (letter = std::fgetc(from_)) != EOF && letter != '\n';)
      text += static_cast<char>(letter);
    return text;
  }

  pid_t child_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
  std::string version_;
};

}  // namespace xgrad_tests
