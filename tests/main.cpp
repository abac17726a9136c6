// Runs the tests that it is linked with, and names those that are skipped and the one in which the process
// dies.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include <gtest/gtest.h>

namespace {

constexpr int deadly[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
struct sigaction before[std::size(deadly)];

void write_text(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

/// Names the test and lets what handled the signal before do so: a sanitizer, or the system.
void name_test(int signal, siginfo_t* info, void*) {
  if (const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info()) {
    for (const char* part : {"died in ", test->test_suite_name(), ".", test->name(), "\n"}) write_text(part);
  }
  for (std::size_t i = 0; i < std::size(deadly); ++i)
    if (deadly[i] == signal) sigaction(signal, &before[i], nullptr);
  if (info->si_code <= 0) raise(signal);  // sent by a process; what the processor refuses happens again
}

class SkippedTests : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Skipped()) std::printf("skipped %s.%s\n", test.test_suite_name(), test.name());
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SkippedTests);
  struct sigaction action = {};
  action.sa_sigaction = name_test;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < std::size(deadly); ++i) sigaction(deadly[i], &action, &before[i]);
  return RUN_ALL_TESTS();
}
