// Training steps of convolutional and recurrent models, beside PyTorch
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <list>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../apps/common/command_line.hpp"
#include "../apps/common/program.hpp"
#include "encoder/measurement.hpp"
#include "layers/protocol.hpp"

using bench::Measurement, bench::median, bench::quantile, bench::Times, bench::TrainedModel;
using nlohmann::json;

namespace {

struct Config {
  const char *name, *input;
};

constexpr Config configs[] = {
    {"lenet", "64 images of 28 x 28"},         {"resnet", "64 images of 32 x 32"},
    {"lstm-128", "32 sequences of 128 x 128"}, {"lstm-512", "32 sequences of 128 x 512"},
    {"gru-128", "32 sequences of 128 x 128"},  {"gru-512", "32 sequences of 128 x 512"},
};

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const Config& config : configs) names.emplace_back(config.name);
  return names;
}

struct Options {
  std::vector<std::string> configs = config_names(), peers;
  std::size_t threads = 1;
  double seconds = 2;
};

/// A library's process and what is measured of it.
struct Runner {
  Runner(const std::string& name, const std::vector<std::string>& command,
         const bench::Environment& environment)
      : process(name, command, environment) {}

  bench::Process process;
  TrainedModel model{};
  std::vector<Measurement> step{};
};

/// Throws std::runtime_error for losses that are not xgrad's from the same seed.
void check(const Runner& runner, const TrainedModel& expected) {
  constexpr double tolerance = 1e-4;
  const std::vector<double>& losses = runner.model.losses;
  bool same = runner.model.params == expected.params && losses.size() == expected.losses.size();
  for (std::size_t i = 0; same && i < losses.size(); ++i)
    same = std::abs(losses[i] - expected.losses[i]) <= tolerance * expected.losses[i];
  if (!same) {
    runner.process.fail("it is " + json(runner.model).dump() + ", xgrad's from the same seed " +
                        json(expected).dump() + ": this is not the same model");
  }
}

void print(const std::list<Runner>& runners) {
  std::printf("%-15s %-35s %10s %8s%s\n", "", "wall ms", "CPU ms", "peak",
              runners.size() > 1 ? "   / xgrad's" : "");
  std::printf("%-15s %8s %8s %8s %8s %10s %8s%s\n", "", "median", "min", "10 %", "90 %", "median", "MiB",
              runners.size() > 1 ? "    wall     min    CPU  memory" : "");
  const Runner& xgrad = runners.front();
  for (const Runner& runner : runners) {
    const auto& [wall, cpu] = runner.step.front().times();
    const double memory = runner.process.peak_memory();
    std::printf("step    %-7s %8.4g %8.4g %8.4g %8.4g %10.4g %8.0f", runner.process.name().c_str(),
                median(wall), quantile(wall, 0), quantile(wall, 0.1), quantile(wall, 0.9), median(cpu),
                memory);
    if (&runner != &xgrad) {
      const Times& base = xgrad.step.front().times();
      std::printf(" %7.2f %7.2f %6.2f %7.2f", median(wall) / median(base.wall),
                  quantile(wall, 0) / quantile(base.wall, 0), median(cpu) / median(base.cpu),
                  memory / xgrad.process.peak_memory());
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

void measure(const Config& config, const Options& options) {
  std::list<Runner> runners;
  runners.emplace_back("xgrad", std::vector<std::string>{XGRAD_BENCH_ENCODERS "/bench_layers_xgrad"},
                       bench::Environment());
  for (const std::string& peer : options.peers) {
    runners.emplace_back(peer, bench::python_command("layers/pytorch.py"),
                         bench::python_environment(options.threads));
  }
  const json request{{"do", "start"}, {"threads", options.threads}, {"seed", 0}, {"config", config.name}};
  const TrainedModel& xgrad = runners.front().model;
  for (Runner& runner : runners) {
    runner.model = runner.process.ask<TrainedModel>(request);
    check(runner, xgrad);
  }
  for (Runner& runner : runners) runner.step.emplace_back(runner.process, bench::Task::step, options.seconds);
  for (std::size_t round = 0; round < bench::rounds; ++round)
    for (Runner& runner : runners) runner.step.front().round();
  std::printf("\n%s: %zu parameters, %s, %zu thread%s\n%s; OpenBLAS core %s", config.name, xgrad.params,
              config.input, options.threads, options.threads == 1 ? "" : "s", bench::processor().c_str(),
              xgrad.library.c_str());
  for (const Runner& runner : runners)
    if (&runner.model != &xgrad) std::printf("; %s", runner.model.library.c_str());
  std::printf("\n");
  print(runners);
}

int run(const Options& options) {
  for (const std::string& name : options.configs) {
    measure(*std::ranges::find_if(configs, [&](const Config& config) { return config.name == name; }),
            options);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  apps::CommandLine app(
      "Prints the time and the peak memory of a training step (zero_grad, forward, cross-entropy, backward, "
      "SGD) of LeNet, of a residual network, and of an LSTM and a GRU of one layer, each in a process of its "
      "own.");
  app.add_option("--config", options.configs, "Models; all by default")->check(apps::one_of(config_names()));
  app.add_option("--threads", options.threads, "Threads that an op may use")
      ->check(apps::in_range<std::size_t>(1, 1024))
      ->capture_default_str();
  app.add_option("--vs", options.peers, "Other libraries to measure beside, in turns")
      ->check(apps::one_of({"pytorch"}))
      ->check(apps::Check{bench::missing_pytorch, ""});
  app.add_option("--seconds", options.seconds, "Time of the training steps of each model")
      ->check(apps::in_range(1e-3, 1000.0))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;

  return apps::run_program("bench_layers", [&] {
    bench::prepare_to_compare(options.threads);
    return run(options);
  });
}
