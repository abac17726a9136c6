// What --report costs the training of the toy encoder, CPU time
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../encoder/configs.hpp"
#include "../encoder/temporary_file.hpp"

using bench::median;

namespace {

/// Of the children that have ended.
double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The CPU seconds of one training.
double train(const std::string& more) {
  const double before = cpu_seconds();
  const std::string command =
      apps::shell_word(XGRAD_PROGRAMS_DIR "/train_toy_encoder") + more + " >/dev/null 2>/dev/null </dev/null";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("train_toy_encoder failed: " + command);
  return cpu_seconds() - before;
}

int measure(std::size_t runs) {
  const bench::TemporaryFile report;
  std::vector<double> without, with, ratios;
  for (std::size_t i = 0; i < runs; ++i) {
    without.push_back(train(""));
    with.push_back(train(" --report " + apps::shell_word(report.path())));
    ratios.push_back(with.back() / without.back());
  }
  std::printf("train_toy_encoder, %zu pairs in turns, CPU seconds\n", runs);
  std::printf("               median    least\n");
  std::printf("without      %8.3f %8.3f\n", median(without), std::ranges::min(without));
  std::printf("with         %8.3f %8.3f\n", median(with), std::ranges::min(with));
  std::printf("with/without %8.3f %8.3f\n", median(ratios),
              std::ranges::min(with) / std::ranges::min(without));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t runs = 11;
  apps::CommandLine app("Trains the toy encoder with and without a report, in turns.");
  app.add_option("--runs", runs, "Pairs of trainings")
      ->check(apps::in_range<std::size_t>(1, 1000))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_report", [&] { return measure(runs); });
}
