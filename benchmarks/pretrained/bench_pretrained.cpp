// Fine-tuning steps and forward passes of BERT's sequence classifier at two sizes, beside LibTorch
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <list>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../encoder/measuring.hpp"
#include "workers/protocol.hpp"

using bench::Batch, bench::BertSize, bench::Classifier, bench::Logits, bench::median, bench::Process,
    bench::quantile, bench::Times;
using nlohmann::json;

namespace {

struct Config {
  const char* name;
  BertSize size;
};

constexpr Config configs[] = {
    {"tiny", {100, 128, 32, 2, 2, 64}},
    {"minilm", {30522, 512, 384, 6, 12, 1536}},
    {"bert-base", {30522, 512, 768, 12, 12, 3072}},
};

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const Config& config : configs) names.emplace_back(config.name);
  return names;
}

/// Texts as in a corpus of sentences, of which most are short: the logarithms of their lengths are uniform.
/// The longest comes first.
Batch sentences(std::size_t texts, std::size_t vocab_size) {
  constexpr double shortest = 8, longest = 128;
  std::mt19937 random(0);  // whose numbers are the same everywhere, unlike those of the distributions
  const auto below = [&](std::size_t bound) { return static_cast<std::int64_t>(random() % bound); };
  Batch batch;
  for (std::size_t i = 0; i < texts; ++i) {
    const double share = static_cast<double>(random()) / 0x1p32;
    batch.lengths.push_back(
        static_cast<std::size_t>(std::lround(shortest * std::pow(longest / shortest, share))));
    batch.labels.push_back(below(bench::label_count));
  }
  std::ranges::sort(batch.lengths, std::greater());
  batch.longest = batch.lengths.front();
  for (const std::size_t length : batch.lengths) {
    for (std::size_t i = 0; i < batch.longest; ++i) {
      const bool is_token = i < length;
      batch.mask.push_back(is_token ? 1 : 0);
      batch.ids.push_back(is_token ? 1 + below(vocab_size - 1) : 0);
    }
  }
  return batch;
}

constexpr const char* tasks[] = {"step", "forward"};

/// A library's process, and the times of each task.
struct Runner {
  Runner(const std::string& name, const std::vector<std::string>& command,
         const bench::Environment& environment = {})
      : process(name, command, environment) {}

  Process process;
  std::string library{};  ///< its version
  Times times[std::size(tasks)]{};
};

struct Options {
  std::vector<std::string> configs{"minilm", "bert-base"};
  std::vector<std::string> peers{"libtorch"};
  std::size_t threads = 1, turns = 5;
};

/// Throws std::runtime_error for logits that are not xgrad's from the same weights.
void check(const Runner& runner, const Logits& logits, const Logits& expected) {
  bool same = logits.logits.size() == expected.logits.size();
  for (std::size_t i = 0; same && i < expected.logits.size(); ++i)
    same = std::abs(logits.logits[i] - expected.logits[i]) <= 1e-4;
  if (!same) {
    runner.process.fail("its logits are " + json(logits.logits).dump() + ", those of xgrad " +
                        json(expected.logits).dump() + ": this is not the same model");
  }
}

/// The lines of a config, of which each other one is compared with the first.
void print(const std::list<Runner>& runners, std::size_t texts) {
  std::printf("%-22s %-26s %10s %8s %8s%s\n", "", "wall ms", "CPU ms", "texts", "peak", "   / xgrad's");
  std::printf("%-22s %8s %8s %8s %10s %8s %8s%s\n", "", "median", "min", "90 %", "median", "/ s", "MiB",
              "    wall     min    CPU  memory");
  const Process& xgrad = runners.front().process;
  for (std::size_t task = 0; task < std::size(tasks); ++task) {
    const Times& base = runners.front().times[task];
    for (const Runner& runner : runners) {
      const auto& [wall, cpu] = runner.times[task];
      const double memory = runner.process.peak_memory();
      std::printf("%-7s %-14s %8.4g %8.4g %8.4g %10.4g %8.4g %8.0f", tasks[task],
                  runner.process.name().c_str(), median(wall), quantile(wall, 0), quantile(wall, 0.9),
                  median(cpu), 1e3 * static_cast<double>(texts) / median(wall), memory);
      if (&runner.process != &xgrad) {
        std::printf(" %7.2f %7.2f %6.2f %7.2f", median(wall) / median(base.wall),
                    quantile(wall, 0) / quantile(base.wall, 0), median(cpu) / median(base.cpu),
                    memory / xgrad.peak_memory());
      }
      std::printf("\n");
    }
  }
  for (const Runner& runner : runners) {
    if (!runner.library.empty())
      std::printf("%s: %s\n", runner.process.name().c_str(), runner.library.c_str());
  }
  std::fflush(stdout);
}

std::vector<std::string> peer_command(const std::string& name) {
  if (name == "pytorch") return bench::python_command("pretrained/workers/pytorch.py");
  return {XGRAD_BENCH_PRETRAINED "/bench_pretrained_libtorch"};
}

bench::Environment peer_environment(const std::string& name, std::size_t threads) {
  return name == "pytorch" ? bench::python_environment(threads) : bench::libtorch_environment(name, threads);
}

/// Why a library cannot be run; empty if it can.
std::string missing(const std::string& name) {
  return name == "pytorch" ? bench::missing_pytorch(name) : bench::missing_libtorch(name);
}

/// Starts all libraries with the same weights, and compares their logits.
Classifier start(const Config& config, const Batch& batch, const Options& options,
                 std::list<Runner>& runners) {
  json request{{"do", "start"}, {"threads", options.threads}, {"size", config.size}, {"batch", batch}};
  Classifier model;
  for (const auto& [name, skips] : {std::pair("xgrad", true), std::pair("xgrad-padded", false)}) {
    Runner& runner = runners.emplace_back(
        name, std::vector<std::string>{XGRAD_BENCH_PRETRAINED "/bench_pretrained_xgrad"});
    request["skip_padding"] = skips;
    model = runner.process.ask<Classifier>(request);
  }
  const bench::TemporaryFile weights;
  if (!options.peers.empty()) {
    request["parameters"] =
        runners.front().process.ask<bench::Weights>({{"do", "save"}, {"path", weights.path()}}).parameters;
    request["weights"] = weights.path();
  }
  for (const std::string& name : options.peers) {
    Runner& runner = runners.emplace_back(name, peer_command(name), peer_environment(name, options.threads));
    runner.library = runner.process.ask<Classifier>(request).library;
  }
  const json logits{{"do", "logits"}};
  const auto expected = runners.front().process.ask<Logits>(logits);
  for (Runner& runner : runners) check(runner, runner.process.ask<Logits>(logits), expected);
  return model;
}

void measure(const Config& config, const Options& options) {
  constexpr std::size_t texts = 32;
  const Batch batch = sentences(texts, config.size.vocab_size);
  std::list<Runner> runners;
  const Classifier model = start(config, batch, options, runners);
  bench::Sgemm sgemm;
  for (Runner& runner : runners) bench::run(runner.process, "step", 1, 1, 0);  // fills the pools
  for (std::size_t turn = 0; turn < options.turns; ++turn) {
    sgemm.round();
    for (std::size_t task = 0; task < std::size(tasks); ++task) {
      for (Runner& runner : runners)
        append(runner.times[task], bench::run(runner.process, tasks[task], 1, 1, 0));
    }
  }
  std::printf(
      "\n%s: %zu parameters, %zu texts of %zu to %zu tokens, %zu tokens in %zu places, %zu thread%s\n"
      "%s; OpenBLAS core %s, sgemm %.4g GFLOP/s\n",
      config.name, model.params, texts, batch.lengths.back(), batch.longest,
      std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::size_t{0}), batch.ids.size(),
      options.threads, options.threads == 1 ? "" : "s", bench::processor().c_str(), model.library.c_str(),
      sgemm.gflops());
  print(runners, texts);
}

int run(Options options) {
  std::erase_if(options.peers, [](const std::string& peer) {
    const std::string reason = missing(peer);
    if (!reason.empty()) std::printf("%s\n", reason.c_str());
    return !reason.empty();
  });
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
      "Prints the time of a fine-tuning step (zero_grad, forward with dropout, cross-entropy, backward, "
      "clip_grad_norm, AdamW) and of a forward pass without gradients of BERT's sequence classifier with "
      "random weights, for 32 texts of 8 to 128 tokens. xgrad skips padding, or, in lines of their own, does "
      "not; each library has a process of its own.");
  app.add_option("--config", options.configs, "Sizes of the classifier")
      ->check(apps::one_of(config_names()))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that an op may use")
      ->check(apps::in_range<std::size_t>(1, 1024))
      ->capture_default_str();
  app.add_option("--vs", options.peers, "Other libraries to measure beside, in turns")
      ->check(apps::one_of({"libtorch", "libtorch-tuned", "pytorch"}))
      ->capture_default_str();
  app.add_option("--turns", options.turns, "How often each library takes its turn")
      ->check(apps::in_range<std::size_t>(1, 1000))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;

  return apps::run_program("bench_pretrained", [&] {
    bench::prepare_to_compare(options.threads);
    return run(options);
  });
}
