// grad() beside backward(), for graphs of 20 to 200,000 operations on small arrays
#include <cstdio>
#include <vector>

#include <xgrad/xgrad.hpp>

#include "../apps/common/command_line.hpp"
#include "../apps/common/program.hpp"
#include "in_turns.hpp"

namespace {

using V = xgrad::Variable<float>;

/// A scalar after so many operations on ten numbers, half of them with a parameter.
V chain(const V& x, const V& w, std::size_t ops) {
  V y = x;
  for (std::size_t op = 2; op < ops; op += 2) y = tanh(y * w);
  return sum(y);
}

void run(std::size_t ops, double seconds) {
  const V x(xgrad::uniform<float>({10}, -1, 1), true), w(xgrad::uniform<float>({10}, 0.5, 1), true);
  const V y = chain(x, w, ops);
  const auto backward = [&](std::size_t calls) {
    for (; calls > 0; --calls) {
      x.zero_grad();
      w.zero_grad();
      y.backward({.retain_graph = true});
    }
  };
  const auto grad_of_leaves = [&](std::size_t calls) {
    for (; calls > 0; --calls) grad(y, {x, w}, {.retain_graph = true});
  };
  const std::vector<double> us = bench::measure({backward, grad_of_leaves}, seconds);
  std::printf("%8zu %14.4f %14.4f %14.3f\n", ops, us[0] / static_cast<double>(ops),
              us[1] / static_cast<double>(ops), us[1] / us[0]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes{20, 200, 2000, 20000, 200000};
  double seconds = 0.5;
  apps::CommandLine app(
      "Prints the time per operation of backward() and of grad() for the leaves, on one thread.");
  app.add_option("--ops", sizes, "Operations of the graphs")
      ->check(apps::in_range<std::size_t>(3, 10000000))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "CPU time of each measurement")
      ->check(apps::in_range(1e-4, 100.0))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_grad", [&] {
    xgrad::manual_seed(0);
    xgrad::set_num_threads(1);
    std::printf("%8s %14s %14s %14s\n", "ops", "backward us/op", "grad us/op", "grad/backward");
    for (const std::size_t ops : sizes) run(ops, seconds);
    return 0;
  });
}
