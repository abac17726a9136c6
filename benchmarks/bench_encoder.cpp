// Training steps and forward passes of an encoder at five sizes: time, GFLOP/s and memory
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "../examples/program.hpp"
#include "encoder/process.hpp"
#include "encoder/size.hpp"

using bench::Process, bench::Size;
using nlohmann::json, nlohmann::ordered_json;

namespace {

struct Config {
  const char* name;
  Size size;
};

constexpr Config configs[] = {
    {"toy", {6, 8, 1, 4, 2, 8, 1, 2}},
    {"small", {100, 16, 16, 64, 4, 256, 2, 10}},
    {"medium", {1000, 64, 16, 256, 4, 1024, 4, 10}},
    {"large", {8000, 128, 8, 512, 8, 2048, 6, 10}},
    {"longseq", {100, 1024, 1, 128, 4, 512, 2, 10}},
};

const Config& config_of(const std::string& name) {
  return *std::ranges::find_if(configs, [&](const Config& config) { return config.name == name; });
}

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const Config& config : configs) names.emplace_back(config.name);
  return names;
}

/// Of the matrix products in a forward pass; a training step has three times as many.
double gflop(const Size& size) {
  const auto product = [](std::size_t m, std::size_t n, std::size_t k) {
    return 2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  };
  const std::size_t tokens = size.batch * size.seq;
  const double projections = 4 * product(tokens, size.d_model, size.d_model);
  const double attention = 2 * product(tokens, size.seq, size.d_model);
  const double feed_forward = 2 * product(tokens, size.d_ff, size.d_model);
  return static_cast<double>(size.layers) * (projections + attention + feed_forward) +
         product(size.batch, size.classes, size.d_model);
}

enum class Task { step, forward };

constexpr Task tasks[] = {Task::step, Task::forward};

const char* name_of(Task task) { return task == Task::step ? "step" : "forward"; }

/// Times of batches of calls, in ms per call.
struct Times {
  std::vector<double> wall, cpu;

  void append(const Times& times) {
    wall.insert(wall.end(), times.wall.begin(), times.wall.end());
    cpu.insert(cpu.end(), times.cpu.begin(), times.cpu.end());
  }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Times, wall, cpu)

/// The value that the part `share` of the others is below.
double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

/// Asks for batches of calls of a task, after so many ms of it.
Times run(Process& process, const std::string& task, std::size_t calls, std::size_t batches, double warm_up) {
  const Times times =
      process.ask<Times>({{"do", task}, {"calls", calls}, {"batches", batches}, {"warm_up", warm_up}});
  const auto are_times = [=](const std::vector<double>& some) {
    return some.size() == batches && std::ranges::all_of(some, [](double time) { return time >= 0; });
  };
  if (!are_times(times.wall) || !are_times(times.cpu)) {
    process.fail("answered " + std::to_string(batches) + " batches of " + task + " with " +
                 json(times).dump());
  }
  return times;
}

constexpr std::size_t rounds = 9;
constexpr double warm_up = 2;  // ms

/// A task of one library: so many batches a round, of so many calls that reading the clock does not count.
class Measurement {
 public:
  Measurement(Process& process, Task task, double seconds) : process_(&process), task_(task) {
    constexpr double shortest_batch = 1, shortest_estimate = 5;  // ms
    run_once(1);                                                 // the first call fills the pools
    double time = run_once(1);
    for (std::size_t calls = 2; time * static_cast<double>(calls) < shortest_estimate; calls *= 2) {
      time = run_once(calls);
    }
    calls_ = static_cast<std::size_t>(std::max(1.0, std::ceil(shortest_batch / time)));
    const double batch_time = time * static_cast<double>(calls_);
    warm_up_ = time < 10 * warm_up ? warm_up : 0;  // a long call warms itself up
    batches_ = static_cast<std::size_t>(std::max(1.0, 1e3 * seconds / rounds / batch_time));
  }

  void round() { times_.append(run(*process_, name_of(task_), calls_, batches_, warm_up_)); }

  Task task() const { return task_; }
  const Process& process() const { return *process_; }
  const Times& times() const { return times_; }

 private:
  double run_once(std::size_t calls) { return run(*process_, name_of(task_), calls, 1, 0).wall[0]; }

  Process* process_;
  Task task_;
  std::size_t calls_, batches_;
  double warm_up_;
  Times times_;
};

/// One thread's share of the machine: the product of two 512 x 512 matrices.
class Sgemm {
 public:
  Sgemm() : process_("sgemm", {XGRAD_BENCH_WORKERS "/bench_encoder_xgrad"}) {
    process_.ask({{"do", "start sgemm"}, {"n", n}});
  }

  void round() { times_.append(run(process_, "sgemm", 1, 10, warm_up)); }
  double gflops() const { return 2e-6 * n * n * n / median(times_.cpu); }

 private:
  static constexpr std::size_t n = 512;

  Process process_;
  Times times_;
};

/// What xgrad's process says of the model.
struct Model {
  std::string core;  ///< that OpenBLAS chose its kernels for
  std::size_t params;
  double loss;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Model, core, params, loss)

struct Options {
  std::vector<std::string> configs = config_names();
  std::size_t threads = 1;
  bool json = false;
  double seconds = 2;
};

/// One thread is seen best in CPU time, which does not count what else the machine does.
double gflops(const Measurement& measured, const Size& size, std::size_t threads) {
  const double work = gflop(size) * (measured.task() == Task::step ? 3 : 1);
  return 1e3 * work / median(threads == 1 ? measured.times().cpu : measured.times().wall);
}

ordered_json json_line(const Config& config, const Options& options, const Model& model,
                       const std::vector<Measurement>& measured, double sgemm) {
  ordered_json line{{"config", config.name}, {"threads", options.threads}, {"params", model.params},
                    {"loss0", model.loss},   {"core", model.core},         {"sgemm_gflops", sgemm}};
  for (const Measurement& one : measured) {
    const std::string key = one.task() == Task::step ? "step" : "fwd";
    line[key + "_ms"] = median(one.times().wall);
    line[key + "_min"] = quantile(one.times().wall, 0);
    line[key + "_p10"] = quantile(one.times().wall, 0.1);
    line[key + "_p90"] = quantile(one.times().wall, 0.9);
    line[key + "_cpu"] = median(one.times().cpu);
    line[key + "_gflops"] = gflops(one, config.size, options.threads);
    line["rss_mb"] = one.process().peak_memory();
  }
  return line;
}

void print_table(const Config& config, const Options& options, const Model& model,
                 const std::vector<Measurement>& measured, double sgemm) {
  std::printf("\n%s: %zu parameters, %zu x %zu tokens, %zu thread%s; OpenBLAS core %s, sgemm %.4g GFLOP/s\n",
              config.name, model.params, config.size.batch, config.size.seq, options.threads,
              options.threads == 1 ? "" : "s", model.core.c_str(), sgemm);
  std::printf("%-22s %-35s %10s %10s %8s %8s\n", "", "wall ms", "CPU ms", "", "of", "peak");
  std::printf("%-22s %8s %8s %8s %8s %10s %10s %8s %8s\n", "", "median", "min", "10 %", "90 %", "median",
              "GFLOP/s", "sgemm", "MiB");
  for (const Measurement& one : measured) {
    const std::vector<double>& wall = one.times().wall;
    const double speed = gflops(one, config.size, options.threads);
    std::printf("%-7s %-14s %8.4g %8.4g %8.4g %8.4g %10.4g %10.4g %6.1f %% %8.0f\n", name_of(one.task()),
                one.process().name().c_str(), median(wall), quantile(wall, 0), quantile(wall, 0.1),
                quantile(wall, 0.9), median(one.times().cpu), speed,
                100 * speed / (sgemm * static_cast<double>(options.threads)), one.process().peak_memory());
  }
  std::fflush(stdout);
}

void measure(const Config& config, const Options& options) {
  Process xgrad("xgrad", {XGRAD_BENCH_WORKERS "/bench_encoder_xgrad"});
  const Model model =
      xgrad.ask<Model>({{"do", "start"}, {"threads", options.threads}, {"size", config.size}});
  Sgemm sgemm;
  std::vector<Measurement> measurements;
  for (const Task task : tasks) measurements.emplace_back(xgrad, task, options.seconds);
  for (std::size_t round = 0; round < rounds; ++round) {
    sgemm.round();
    for (Measurement& measurement : measurements) measurement.round();
  }
  if (options.json) {
    std::cout << json_line(config, options, model, measurements, sgemm.gflops()) << std::endl;
  } else {
    print_table(config, options, model, measurements, sgemm.gflops());
  }
}

int run(const Options& options) {
  for (const std::string& name : options.configs) measure(config_of(name), options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Prints the time of a training step (zero_grad, forward, backward, Adam) and of a forward pass without "
      "gradients of an encoder, each config in a process of its own. GFLOP/s are those of its matrix "
      "products "
      "in CPU time with one thread, in wall time with more.");
  app.add_option("--config", options.configs, "Sizes of the encoder; all by default")
      ->check(CLI::IsMember(config_names()));
  app.add_option("--threads", options.threads, "Threads that an op may use")
      ->check(examples::in_range<std::size_t>(1, 1024))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print one JSON object per config instead of a table");
  app.add_option("--seconds", options.seconds, "Time of the training steps of each config, and of its passes")
      ->check(examples::in_range(1e-3, 1000.0))
      ->capture_default_str();
  if (const std::optional<int> exit_code = examples::parse(app, argc, argv)) return *exit_code;

  unsetenv("OPENBLAS_CORETYPE");  // a figure is worth something only with the kernels made for the processor
  std::signal(SIGPIPE, SIG_IGN);  // a process that ends is an exception
  return examples::run_program("bench_encoder", [&] { return run(options); });
}
