#pragma once

// A process that is killed at a chosen moment.

#include <fcntl.h>
#include <signal.h>
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

enum class Ending { killed, done, failed, not_traced };

/// Runs body() in a child process, which is killed at its call with this number that may change files, from 0
/// on, before the call is made. `done` if it makes fewer.
template <class Body>
Ending killed_at(std::size_t number, const Body& body) {
  constexpr int not_traced = 77;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("killed_at: no process");
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(not_traced);
    ::raise(SIGSTOP);
    try {
      body();
      ::_exit(0);
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
    }
    ::_exit(1);
  }
  std::size_t count = 0;
  for (bool is_first = true;; is_first = false) {
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == not_traced) return Ending::not_traced;
      return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Ending::done : Ending::failed;
    }
    if (is_first) ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      signal = 0;
      __ptrace_syscall_info info{};
      ::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY && changes_files(info.entry.nr, info.entry.args) &&
          count++ == number) {
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        return Ending::killed;
      }
    }
    if (signal == SIGTRAP || is_first) signal = 0;  // those of exec and of the start
    ::ptrace(PTRACE_SYSCALL, child, nullptr, signal);
  }
}

}  // namespace xgrad_tests
