#pragma once

// Processes that are stopped, or killed, at a chosen moment.

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <stdexcept>

namespace xgrad_tests {

/// Whether a system call may change files, and is not that of another thread or of the standard streams.
inline bool changes_files(std::uint64_t call, const std::uint64_t* arguments) {
  if (call == SYS_openat) return (arguments[2] & O_CREAT) != 0;
  if (call == SYS_write) return arguments[0] > 2;
  const std::initializer_list<std::uint64_t> changing{
      SYS_fsync,    SYS_pwrite64, SYS_ftruncate, SYS_fchmod, SYS_fchmodat,  SYS_mkdirat,
      SYS_unlinkat, SYS_renameat, SYS_linkat,    SYS_flock,  SYS_renameat2, SYS_symlinkat,
#ifdef SYS_rename
      SYS_rename,   SYS_mkdir,    SYS_unlink,    SYS_rmdir,  SYS_chmod,
#endif
  };
  return std::ranges::find(changing, call) != changing.end();
}

/// Whether a system call may wait for another process's lock.
inline bool waits_for_lock(std::uint64_t call, const std::uint64_t* arguments) {
  return call == SYS_flock && (arguments[1] & LOCK_EX) != 0 && (arguments[1] & LOCK_NB) == 0;
}

/// Runs body() in a child process, from one chosen system call to the next. It is killed at the end, unless
/// it has ended before.
class TracedProcess {
 public:
  enum class State { stopped, done, failed, not_traced };

  template <class Body>
  explicit TracedProcess(const Body& body) : child_(::fork()) {
    if (child_ < 0) throw std::runtime_error("TracedProcess: no process");
    if (child_ == 0) {
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(not_traced_code);
      ::raise(SIGSTOP);
      try {
        body();
        ::_exit(0);
      } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
      }
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child_, &status, 0);
    if (ended(status)) return;
    ::ptrace(PTRACE_SETOPTIONS, child_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  }

  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  ~TracedProcess() {
    if (state_ != State::stopped) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  State state() const { return state_; }

  /// Runs on until before a call for which stops(number of the call, its arguments), or to the end.
  template <class Stops>
  State run_until(const Stops& stops) {
    for (int signal = 0; state_ == State::stopped;) {
      ::ptrace(PTRACE_SYSCALL, child_, nullptr, signal);
      int status = 0;
      ::waitpid(child_, &status, 0);
      if (ended(status)) break;
      signal = WSTOPSIG(status);
      if (signal == SIGTRAP) signal = 0;  // that of exec
      if (signal != (SIGTRAP | 0x80)) continue;
      signal = 0;
      __ptrace_syscall_info info{};
      ::ptrace(PTRACE_GET_SYSCALL_INFO, child_, sizeof info, &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY && stops(info.entry.nr, info.entry.args)) break;
    }
    return state_;
  }

 private:
  static constexpr int not_traced_code = 77;

  bool ended(int status) {
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) return false;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    state_ = code == 0 ? State::done : code == not_traced_code ? State::not_traced : State::failed;
    return true;
  }

  pid_t child_;
  State state_ = State::stopped;
};

enum class Ending { killed, done, failed, not_traced };

/// Runs body() in a child process, which is killed at its call with this number that may change files, from 0
/// on, before the call is made. `done` if it makes fewer.
template <class Body>
Ending killed_at(std::size_t number, const Body& body) {
  TracedProcess process(body);
  std::size_t count = 0;
  switch (process.run_until([&](std::uint64_t call, const std::uint64_t* arguments) {
    return changes_files(call, arguments) && count++ == number;
  })) {
    case TracedProcess::State::stopped:
      return Ending::killed;
    case TracedProcess::State::done:
      return Ending::done;
    case TracedProcess::State::not_traced:
      return Ending::not_traced;
    default:
      return Ending::failed;
  }
}

}  // namespace xgrad_tests
