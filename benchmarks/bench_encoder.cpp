// Training steps and forward passes of an encoder at several sizes: time, GFLOP/s and memory
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <list>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../apps/common/command_line.hpp"
#include "../apps/common/program.hpp"
#include "encoder/configs.hpp"
#include "encoder/measurement.hpp"
#include "encoder/process.hpp"
#include "encoder/protocol.hpp"

using bench::Config, bench::config_names, bench::config_of, bench::Measurement, bench::median, bench::Model,
    bench::name_of, bench::PeerModel, bench::Process, bench::quantile, bench::rounds, bench::Sgemm,
    bench::Size, bench::Task, bench::tasks, bench::TemporaryFile, bench::Times;
using nlohmann::json, nlohmann::ordered_json;

namespace {

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

/// Another library that runs the same model.
struct Peer {
  std::string name;
  std::vector<std::string> command;
  bench::Environment environment;
  bool trains = true;
};

const std::vector<std::string> peer_names{
    "libtorch",         "libtorch-tuned",   "libtorch-autocast",         "pytorch",
    "pytorch-compiled", "pytorch-autocast", "pytorch-compiled-autocast", "onnxruntime",
    "onnxruntime-int8"};

bool is_onnxruntime(const std::string& peer) { return peer.starts_with("onnxruntime"); }
bool is_pytorch(const std::string& peer) { return peer.starts_with("pytorch"); }
bool is_compiled(const std::string& peer) { return peer.starts_with("pytorch-compiled"); }
bool is_autocast(const std::string& peer) { return peer.ends_with("autocast"); }
bool is_int8(const std::string& peer) { return peer.ends_with("int8"); }

/// Why a peer cannot be run; empty if it can.
std::string missing(const std::string& peer) {
#ifndef XGRAD_BENCH_ONNX
  if (is_onnxruntime(peer)) return peer + " needs xgrad::onnx, which was not there when this was built";
#endif
  if (is_onnxruntime(peer)) return bench::missing_onnxruntime(peer);
  return is_pytorch(peer) ? bench::missing_pytorch(peer) : bench::missing_libtorch(peer);
}

Peer peer_of(const std::string& name, std::size_t threads) {
  if (is_onnxruntime(name) || is_pytorch(name)) {
    return {name, bench::python_command(is_pytorch(name) ? "encoder/pytorch.py" : "encoder/onnx_runtime.py"),
            bench::python_environment(threads), /*trains=*/is_pytorch(name)};
  }
  return {name, {XGRAD_BENCH_ENCODERS "/bench_encoder_libtorch"}, bench::libtorch_environment(name, threads)};
}

/// A library's process and what is measured of it.
struct Runner {
  explicit Runner(const Peer& peer)
      : process(peer.name, peer.command, peer.environment), trains(peer.trains) {}

  const Measurement* find(Task task) const {
    const auto found = std::ranges::find(measurements, task, &Measurement::task);
    return found == measurements.end() ? nullptr : &*found;
  }

  Process process;
  bool trains;
  std::string library{};  ///< its version
  double loss = 0;
  std::vector<Measurement> measurements{};
};

struct Options {
  std::vector<std::string> configs{"toy", "small", "medium", "large", "longseq"};
  std::vector<std::string> peers;
  std::size_t threads = 1;
  std::string precision = "highest";
  double dropout = 0;
  bool json = false;
  double seconds = 2;
};

Size size_of(const Config& config, const Options& options) {
  Size size = config.size;
  size.dropout = options.dropout;
  return size;
}

/// A config's figures.
class Report {
 public:
  Report(const Config& config, const Options& options, const Model& model, const std::list<Runner>& runners,
         double sgemm)
      : config_(config), options_(options), model_(model), runners_(runners), sgemm_(sgemm) {}

  ordered_json json_line() const {
    ordered_json line{{"config", config_.name},        {"threads", options_.threads},
                      {"params", model_.params},       {"core", model_.core},
                      {"precision", model_.precision}, {"sgemm_gflops", sgemm_},
                      {"dropout", options_.dropout}};
    line.update(figures(xgrad()));
    for (const Runner& peer : runners_) {
      if (&peer == &xgrad()) continue;
      ordered_json& entry = line["peers"][peer.process.name()] = {{"library", peer.library}};
      entry.update(figures(peer));
      const std::vector<const char*> both =
          peer.trains ? std::vector{"step_ms", "fwd_ms", "step_cpu", "fwd_cpu", "rss_mb"}
                      : std::vector{"fwd_ms", "fwd_cpu"};
      for (const char* key : both) {
        entry["ratios"][key] = entry[key].get<double>() / line[key].get<double>();
      }
    }
    return line;
  }

  void print() const {
    std::printf(
        "\n%s: %zu parameters, %zu x %zu tokens, %zu thread%s; OpenBLAS core %s, sgemm %.4g GFLOP/s; "
        "precision %s%s\n",
        config_.name, model_.params, config_.size.batch, config_.size.seq, options_.threads,
        options_.threads == 1 ? "" : "s", model_.core.c_str(), sgemm_, model_.precision.c_str(),
        options_.dropout > 0 ? ("; dropout " + json(options_.dropout).dump()).c_str() : "");
    const bool with_peers = runners_.size() > 1;
    std::printf("%-*s %-35s %10s %10s %8s %8s%s\n", width() + 8, "", "wall ms", "CPU ms", "", "of", "peak",
                with_peers ? "   / xgrad's" : "");
    std::printf("%-*s %8s %8s %8s %8s %10s %10s %8s %8s%s\n", width() + 8, "", "median", "min", "10 %",
                "90 %", "median", "GFLOP/s", "sgemm", "MiB", with_peers ? "    wall    CPU  memory" : "");
    for (const Task task : tasks) {
      for (const Runner& runner : runners_) {
        if (const Measurement* const measured = runner.find(task)) print_row(runner, *measured);
      }
    }
    for (const Runner& runner : runners_) {
      if (!runner.library.empty())
        std::printf("%s: %s; loss %.5g, xgrad's %.5g\n", runner.process.name().c_str(),
                    runner.library.c_str(), runner.loss, xgrad().loss);
    }
    std::fflush(stdout);
  }

 private:
  const Runner& xgrad() const { return runners_.front(); }

  /// Of the libraries' names.
  int width() const {
    std::size_t longest = 0;
    for (const Runner& runner : runners_) longest = std::max(longest, runner.process.name().size());
    return static_cast<int>(longest);
  }

  /// One thread is seen best in CPU time, which does not count what else the machine does.
  double gflops(const Measurement& measured) const {
    const double work = gflop(config_.size) * (measured.task() == Task::step ? 3 : 1);
    return 1e3 * work / median(options_.threads == 1 ? measured.times().cpu : measured.times().wall);
  }

  ordered_json figures(const Runner& runner) const {
    ordered_json figures{{"loss0", runner.loss}};
    for (const Measurement& measured : runner.measurements) {
      const std::string task = measured.task() == Task::step ? "step" : "fwd";
      figures[task + "_ms"] = median(measured.times().wall);
      figures[task + "_min"] = quantile(measured.times().wall, 0);
      figures[task + "_p10"] = quantile(measured.times().wall, 0.1);
      figures[task + "_p90"] = quantile(measured.times().wall, 0.9);
      figures[task + "_cpu"] = median(measured.times().cpu);
      figures[task + "_gflops"] = gflops(measured);
    }
    figures["rss_mb"] = runner.process.peak_memory();
    return figures;
  }

  void print_row(const Runner& runner, const Measurement& measured) const {
    const std::vector<double>&wall = measured.times().wall, &cpu = measured.times().cpu;
    const double speed = gflops(measured), memory = runner.process.peak_memory();
    std::printf("%-7s %-*s %8.4g %8.4g %8.4g %8.4g %10.4g %10.4g %6.1f %% %8.0f", name_of(measured.task()),
                width(), runner.process.name().c_str(), median(wall), quantile(wall, 0), quantile(wall, 0.1),
                quantile(wall, 0.9), median(cpu), speed,
                100 * speed / (sgemm_ * static_cast<double>(options_.threads)), memory);
    if (&runner != &xgrad()) {
      const Times& base = xgrad().find(measured.task())->times();
      std::printf(" %7.2f %6.2f", median(wall) / median(base.wall), median(cpu) / median(base.cpu));
      if (runner.trains) std::printf(" %7.2f", memory / xgrad().process.peak_memory());
    }
    std::printf("\n");
  }

  const Config& config_;
  const Options& options_;
  const Model& model_;
  const std::list<Runner>& runners_;
  double sgemm_;
};

/// Of rows of logits, the mean.
double cross_entropy(const std::vector<double>& logits, const std::vector<std::int64_t>& labels) {
  const std::size_t classes = logits.size() / labels.size();
  double sum = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto* const begin = logits.data() + row * classes;
    double total = 0;
    for (std::size_t i = 0; i < classes; ++i) total += std::exp(begin[i]);
    sum += std::log(total) - begin[labels[row]];
  }
  return sum / static_cast<double>(labels.size());
}

/// Starts ONNX Runtime with a file that xgrad exports: in another process, as the memory of the first is
/// measured.
PeerModel start_onnxruntime(Process& peer, const Size& size, const Model& model, const Options& options) {
  const TemporaryFile file;
  Process exporter("xgrad::onnx", {XGRAD_BENCH_ENCODERS "/bench_encoder_onnx"});
  exporter.ask({{"do", "export"}, {"size", size}, {"path", file.path()}});
  const json ids{{"shape", {size.batch, size.seq}}, {"data", model.ids}};
  const auto [library, logits, loading] = peer.ask<bench::OnnxFile>({{"do", "start"},
                                                                     {"threads", options.threads},
                                                                     {"path", file.path()},
                                                                     {"int8", is_int8(peer.name())},
                                                                     {"inputs", {{"ids", ids}}}});
  if (logits.size() != size.batch * size.classes) {
    peer.fail("expected " + std::to_string(size.batch * size.classes) + " logits, got " +
              std::to_string(logits.size()));
  }
  return {library, cross_entropy(logits, model.labels)};
}

/// Starts another library with the parameters of xgrad's process.
PeerModel start(Process& peer, Process& xgrad, const Size& size, const Model& model, const Options& options) {
  if (is_onnxruntime(peer.name())) return start_onnxruntime(peer, size, model, options);
  const TemporaryFile weights;
  const auto saved = xgrad.ask<bench::Weights>({{"do", "save"}, {"path", weights.path()}});
  return peer.ask<PeerModel>({{"do", "start"},
                              {"threads", options.threads},
                              {"autocast", is_autocast(peer.name())},
                              {"compile", is_compiled(peer.name())},
                              {"size", size},
                              {"weights", weights.path()},
                              {"parameters", saved.parameters},
                              {"ids", model.ids},
                              {"labels", model.labels}});
}

/// Of a loss, to xgrad's.
double tolerance_of(const std::string& peer, const Model& model) {
  if (is_int8(peer)) return 5e-2;
  return is_autocast(peer) || model.precision == "medium" ? 1e-2 : 1e-4;
}

/// Starts the peers with xgrad's weights. Throws std::runtime_error if a peer's loss is not xgrad's.
void start_peers(const Config& config, const Options& options, const Model& model,
                 std::list<Runner>& runners) {
  for (const std::string& name : options.peers) {
    Runner& runner = runners.emplace_back(peer_of(name, options.threads));
    const PeerModel started =
        start(runner.process, runners.front().process, size_of(config, options), model, options);
    const double tolerance = tolerance_of(name, model);
    if (!(std::abs(started.loss - model.loss) <= tolerance * model.loss)) {
      runner.process.fail("its loss is " + json(started.loss).dump() + ", xgrad's from the same weights " +
                          json(model.loss).dump() + ": this is not the same model");
    }
    runner.library = started.library;
    runner.loss = started.loss;
  }
}

void measure(const Config& config, const Options& options) {
  std::list<Runner> runners;
  Runner& xgrad = runners.emplace_back(Peer{"xgrad", {XGRAD_BENCH_ENCODERS "/bench_encoder_xgrad"}, {}});
  const auto model = xgrad.process.ask<Model>({{"do", "start"},
                                               {"threads", options.threads},
                                               {"precision", options.precision},
                                               {"size", size_of(config, options)}});
  xgrad.loss = model.loss;
  start_peers(config, options, model, runners);
  Sgemm sgemm;
  for (Runner& runner : runners) {
    for (const Task task : tasks) {
      if (runner.trains || task == Task::forward) {
        runner.measurements.emplace_back(runner.process, task, options.seconds);
      }
    }
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    sgemm.round();
    for (const Task task : tasks) {
      for (Runner& runner : runners) {
        for (Measurement& measurement : runner.measurements) {
          if (measurement.task() == task) measurement.round();
        }
      }
    }
  }
  const Report report(config, options, model, runners, sgemm.gflops());
  if (options.json) {
    std::cout << report.json_line() << std::endl;
  } else {
    report.print();
  }
}

int run(const Options& options) {
  for (const std::string& name : options.configs) measure(config_of(name), options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  apps::CommandLine app(
      "Prints the time of a training step (zero_grad, forward, backward, Adam) and of a forward pass without "
      "gradients of an encoder, each config in a process of its own. GFLOP/s are those of its matrix "
      "products "
      "in CPU time with one thread, in wall time with more.");
  app.add_option("--config", options.configs, "Sizes of the encoder; the first five by default")
      ->check(apps::one_of(config_names()));
  app.add_option("--threads", options.threads, "Threads that an op may use")
      ->check(apps::in_range<std::size_t>(1, 1024))
      ->capture_default_str();
  app.add_option("--vs", options.peers, "Other libraries to measure beside, in turns")
      ->check(apps::one_of(peer_names))
      ->check(apps::Check{missing, ""});
  app.add_option("--precision", options.precision, "Precision of xgrad's matrix products")
      ->check(apps::one_of({"highest", "medium"}))
      ->capture_default_str();
  app.add_option("--dropout", options.dropout,
                 "Probability of dropout in training steps: of attention weights, inner activations and what "
                 "is added to the residual stream")
      ->check(apps::in_range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print one JSON object per config instead of a table");
  app.add_option("--seconds", options.seconds, "Time of the training steps of each config, and of its passes")
      ->check(apps::in_range(1e-3, 1000.0))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;

  return apps::run_program("bench_encoder", [&] {
    bench::prepare_to_compare(options.threads);
    return run(options);
  });
}
