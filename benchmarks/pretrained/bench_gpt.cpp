// Training steps of GPTs, and their decoding, beside PyTorch
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../encoder/measuring.hpp"
#include "workers/gpt.hpp"

using bench::Gpt, bench::GptDecoder, bench::GptPeer, bench::GptSize, bench::median, bench::Process,
    bench::quantile, bench::Times;
using nlohmann::json;

namespace {

struct Config {
  const char* name;
  GptSize size;
};

constexpr Config configs[] = {
    {"tiny", {50, 8, 2, 16, 2, 2, true}},
    {"nano", {65, 64, 12, 128, 4, 4, false}},
    {"gpt2", {50257, 64, 4, 768, 12, 12, true}},
    {"gpt2long", {50257, 1024, 1, 768, 12, 12, true}},
    {"gpt2batch", {50257, 1024, 4, 768, 12, 12, true}},
};

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const Config& config : configs) names.emplace_back(config.name);
  return names;
}

struct Options {
  std::vector<std::string> configs{"nano", "gpt2", "gpt2long"}, peers;
  std::size_t threads = 1, turns = 5;
  std::string precision = "highest";
  bool checkpoint = false, decode = false, busy = false;
};

/// A library's process, and the times of each task.
struct Runner {
  Runner(const std::string& name, const std::vector<std::string>& command,
         const bench::Environment& environment, std::size_t threads)
      : process(name, command, environment), threads(threads) {}

  bool is_own() const { return process.name().starts_with("xgrad"); }

  Process process;
  std::size_t threads;
  std::string library{};
  std::vector<Times> times{};  ///< of each task
};

Runner& start_own(std::list<Runner>& runners, const std::string& name, std::size_t threads) {
  return runners.emplace_back(name, std::vector<std::string>{XGRAD_BENCH_PRETRAINED "/bench_gpt_gpt"},
                              bench::limited_to(threads), threads);
}
Runner& start_peer(std::list<Runner>& runners, const std::string& name, std::size_t threads) {
  return runners.emplace_back(name, bench::python_command("pretrained/workers/gpt.py"),
                              bench::python_environment(threads), threads);
}

/// Of the matrix products of a forward pass, in which each token attends to itself and those before it, with
/// the logits of so many tokens.
double forward_gflop(const GptSize& size, std::size_t batch, std::size_t predicted) {
  const auto product = [](std::size_t m, std::size_t n, std::size_t k) {
    return 2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  };
  const std::size_t tokens = batch * size.seq, d = size.d_model;
  const double attention = product(tokens, d, size.seq + 1);  // both products, of half of the keys
  const double layer = 12 * product(tokens, d, d) + attention;
  return static_cast<double>(size.layers) * layer + product(predicted, size.vocab, d);
}

/// Measures some tasks of all processes in turns, each so many calls at once, and returns the GFLOP/s of
/// OpenBLAS on one thread.
double take_turns(std::list<Runner>& runners, const std::vector<std::string>& tasks,
                  const std::vector<std::size_t>& calls, std::size_t turns) {
  bench::Sgemm sgemm;
  for (Runner& runner : runners) runner.times.resize(tasks.size());
  for (std::size_t turn = 0; turn <= turns; ++turn) {
    sgemm.round();
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      for (Runner& runner : runners) {
        if (tasks[task] == "read" && !runner.is_own()) continue;
        const Times times = bench::run(runner.process, tasks[task], calls[task], 1, 0);
        if (turn > 0) append(runner.times[task], times);  // the first fills the pools
      }
    }
  }
  return sgemm.gflops();
}

void print_title(const Config& config, const std::list<Runner>& runners, double sgemm) {
  std::printf("\n%s: %zu x %zu tokens\n%s; OpenBLAS core %s, sgemm %.4g GFLOP/s", config.name,
              config.size.batch, config.size.seq, bench::processor().c_str(), runners.front().library.c_str(),
              sgemm);
  for (const Runner& runner : runners)
    if (!runner.is_own()) std::printf("; %s: %s", runner.process.name().c_str(), runner.library.c_str());
  std::printf("\n%-33s %-26s %10s %20s %8s%s\n", "", "wall ms", "CPU ms", "", "peak",
              runners.size() > 1 ? "  / the first" : "");
  std::printf("%-33s %8s %8s %8s %10s %20s %8s%s\n", "", "median", "min", "90 %", "median", "speed", "MiB",
              runners.size() > 1 ? "   wall    CPU" : "");
}

/// One thread is seen best in CPU time, which does not count what else the machine does.
double time_of(const Runner& runner, std::size_t task) {
  return median(runner.threads == 1 ? runner.times[task].cpu : runner.times[task].wall);
}

/// What is done in a second, and what bounds it.
struct Speed {
  double reached, bound;
  const char* unit;
};

/// The rows of a task, of which each is compared with the first.
template <class SpeedOf>
void print_rows(const std::list<Runner>& runners, std::size_t task, const char* name,
                const SpeedOf& speed_of) {
  const Times& base = runners.front().times[task];
  for (const Runner& runner : runners) {
    const auto& [wall, cpu] = runner.times[task];
    const auto [reached, bound, unit] = speed_of(runner);
    std::printf("%-7s %-25s %8.4g %8.4g %8.4g %10.4g %6.4g %s %3.0f %% %8.0f", name,
                runner.process.name().c_str(), median(wall), quantile(wall, 0), quantile(wall, 0.9),
                median(cpu), reached, unit, 100 * reached / bound, runner.process.peak_memory());
    if (&runner != &runners.front())
      std::printf(" %6.2f %6.2f", median(wall) / median(base.wall), median(cpu) / median(base.cpu));
    std::printf("\n");
  }
  std::fflush(stdout);
}

bool is_autocast(const std::string& peer) { return peer.ends_with("autocast"); }

/// Starts another library with the weights and the batch of xgrad's process. Throws std::runtime_error if
/// its loss is not the same.
void start_training_peer(std::list<Runner>& runners, const std::string& name, const Gpt& model,
                         const GptSize& size, const Options& options) {
  Process& xgrad = runners.front().process;
  Runner& runner = start_peer(runners, name, options.threads);
  const bench::TemporaryFile weights;
  const auto saved = xgrad.ask<bench::Weights>({{"do", "save"}, {"path", weights.path()}});
  const auto [library, loss] = runner.process.ask<GptPeer>({{"do", "start"},
                                                            {"decoding", false},
                                                            {"threads", options.threads},
                                                            {"size", size},
                                                            {"autocast", is_autocast(name)},
                                                            {"compile", name.starts_with("pytorch-compiled")},
                                                            {"weights", weights.path()},
                                                            {"parameters", saved.parameters},
                                                            {"ids", model.ids},
                                                            {"targets", model.targets}});
  const double tolerance = is_autocast(name) || options.precision != "highest" ? 1e-2 : 1e-4;
  if (!(std::abs(loss - model.loss) <= tolerance * model.loss)) {
    runner.process.fail("its loss is " + json(loss).dump() + ", xgrad's from the same weights " +
                        json(model.loss).dump() + ": this is not the same model");
  }
  runner.library = library;
}

/// Training steps on as many threads as each of `threads` says.
void measure_training(const Config& config, const Options& options, const std::vector<std::size_t>& threads) {
  std::list<Runner> runners;
  std::optional<Gpt> model;
  for (const std::size_t count : threads) {
    const std::string suffix = count == 1 ? ", 1 thread" : ", " + std::to_string(count) + " threads";
    Runner& runner = start_own(runners, threads.size() > 1 ? "xgrad" + suffix : "xgrad", count);
    model = runner.process.ask<Gpt>({{"do", "start"},
                                     {"threads", count},
                                     {"precision", options.precision},
                                     {"checkpoint", options.checkpoint},
                                     {"size", config.size}});
    runner.library = model->library;
  }
  for (const std::string& name : options.peers)
    start_training_peer(runners, name, *model, config.size, options);
  const std::size_t calls = config.size.d_model < 768 ? 5 : 1;
  const double sgemm = take_turns(runners, {"step"}, {calls}, options.turns);
  print_title(config, runners, sgemm);
  const double gflop = 3 * forward_gflop(config.size, config.size.batch, config.size.batch * config.size.seq);
  print_rows(runners, 0, "step", [&](const Runner& runner) {
    return Speed{1e3 * gflop / time_of(runner, 0), sgemm * static_cast<double>(runner.threads), "GFLOP/s"};
  });
}

/// Prompts of the config's length, and tokens behind one, of weights of float32 and of bfloat16.
void measure_decoding(const Config& config, const Options& options) {
  const std::vector<std::string> tasks{"token", "prompt", "read"};
  std::list<Runner> runners;
  for (const bool bfloat16 : {false, true}) {
    const std::string suffix = bfloat16 ? ", bfloat16" : ", float32";
    json request{{"threads", options.threads},
                 {"precision", bfloat16 ? "medium" : "highest"},
                 {"decoding", true},
                 {"bfloat16", bfloat16},
                 {"size", config.size}};
    const auto start = [&](Runner& runner, const char* what) {
      request["do"] = what;
      runner.library = runner.process.ask<GptDecoder>(request).library;
    };
    start(start_own(runners, "xgrad" + suffix, options.threads), "start decoding");
    for (const std::string& name : options.peers)
      start(start_peer(runners, name + suffix, options.threads), "start");
  }
  const double sgemm = take_turns(runners, tasks, {20, 1, 5}, options.turns);
  print_title(config, runners, sgemm);
  const auto read_speed = [&](const Runner& runner, std::size_t task) {
    const bool bfloat16 = runner.process.name().ends_with("bfloat16");
    return 1e-6 * static_cast<double>(bench::decoded_bytes(config.size, bfloat16)) / time_of(runner, task);
  };
  const double bandwidth = read_speed(runners.front(), 2);
  print_rows(runners, 0, "token", [&](const Runner& runner) {
    return Speed{read_speed(runner, 0), bandwidth, "GB/s   "};
  });
  const double gflop = forward_gflop(config.size, 1, 1);
  print_rows(runners, 1, "prompt", [&](const Runner& runner) {
    return Speed{1e3 * gflop / time_of(runner, 1), sgemm * static_cast<double>(runner.threads), "GFLOP/s"};
  });
}

int run(const Options& options) {
  std::optional<Process> busy;
  if (options.busy)
    busy.emplace("the busy process", std::vector<std::string>{"sh", "-c", "while :; do :; done"});
  for (const std::string& name : options.configs) {
    const Config& config =
        *std::ranges::find_if(configs, [&](const Config& some) { return some.name == name; });
    if (options.decode) {
      measure_decoding(config, options);
    } else {
      measure_training(config, options,
                       options.busy ? std::vector<std::size_t>{1, 2} : std::vector{options.threads});
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  apps::CommandLine app(
      "Prints the time and the peak memory of a training step (zero_grad, forward, cross-entropy, backward, "
      "AdamW) of GPTs with random weights, each library in a process of its own. Speeds are those of the "
      "matrix products, as parts of OpenBLAS's in a product of 512 x 512 matrices, or, with --decode, those "
      "at which a token reads the weights, as parts of a loop's that only reads; in CPU time with one "
      "thread, "
      "in wall time with more.");
  app.add_option("--config", options.configs, "Sizes of the model and of its batch")
      ->check(apps::one_of(config_names()))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that an op may use")
      ->check(apps::in_range<std::size_t>(1, 1024))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "Precision of xgrad's matrix products in training")
      ->check(apps::one_of({"highest", "medium"}))
      ->capture_default_str();
  app.add_flag("--checkpoint", options.checkpoint,
               "xgrad computes layers again in the backward, and caches 128 MiB at most");
  app.add_flag("--decode", options.decode,
               "Measure prompts as long as the config's texts, and tokens behind one, of weights of float32 "
               "and of bfloat16, instead of training steps");
  app.add_flag("--busy", options.busy,
               "Measure training steps on one thread and on two, beside a process that is busy");
  app.add_option("--vs", options.peers, "Other libraries to measure beside, in turns")
      ->check(apps::one_of({"pytorch", "pytorch-compiled", "pytorch-autocast", "pytorch-compiled-autocast"}))
      ->check(apps::Check{bench::missing_pytorch, ""});
  app.add_option("--turns", options.turns, "How often each library takes its turn")
      ->check(apps::in_range<std::size_t>(1, 1000))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;

  return apps::run_program("bench_gpt", [&] {
    bench::prepare_to_compare(options.busy ? 2 : options.threads);
    return run(options);
  });
}
