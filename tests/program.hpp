#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace xgrad_tests {

struct ProgramResult {
  int exit_code;  ///< -1 if a signal ended it
  std::string output;
};

/// Runs a command of the shell.
inline ProgramResult run_command(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  char piece[4096];
  while (const std::size_t count = std::fread(piece, 1, sizeof piece, pipe)) text.append(piece, count);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

/// Runs a program of this project with arguments for the shell.
inline ProgramResult run_program(const std::string& program_and_arguments) {
  return run_command(std::string(XGRAD_PROGRAMS_DIR) + "/" + program_and_arguments);
}

/// What such a program prints; a failure unless it exits with 0.
inline std::string output_of(const std::string& program_and_arguments) {
  const ProgramResult result = run_program(program_and_arguments);
  EXPECT_EQ(result.exit_code, 0) << program_and_arguments;
  return result.output;
}

/// What such a program says on stderr; a failure unless it exits with that code.
inline std::string error_of(const std::string& command, int exit_code = 1) {
  const ProgramResult result = run_program(command + " 2>&1 >/dev/null");
  EXPECT_EQ(result.exit_code, exit_code) << command;
  return result.output;
}

}  // namespace xgrad_tests
