// Forward passes of an encoder in float32, bfloat16 and int8, beside other libraries
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <list>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../encoder/measuring.hpp"
#include "workers/precision.hpp"

using bench::BertSize, bench::Folder, bench::median, bench::Process, bench::quantile, bench::Times,
    bench::Vectors;
using nlohmann::json;

namespace {

constexpr std::pair<const char*, BertSize> sizes[] = {{"minilm", {30522, 512, 384, 6, 12, 1536}},
                                                      {"bert-base", {30522, 512, 768, 12, 12, 3072}}};

struct Options {
  std::vector<std::string> models{"minilm", "bert-base"}, peers{};
  std::size_t threads = 1, turns = 7, texts = 16, tokens = 64;
};

/// A library at a precision.
struct Runner {
  Runner(const std::string& library, const std::string& precision, const std::vector<std::string>& command,
         const bench::Environment& environment)
      : process(library + " " + precision, command, environment), library(library), precision(precision) {}

  Process process;
  std::string library, precision;
  Vectors answer{};
  Times times{};

  bool is_own() const { return library == "xgrad"; }
};

/// The cosines of vectors that stand one after the other, as many of both.
std::vector<double> cosines(const std::vector<double>& a, const std::vector<double>& b, std::size_t count) {
  std::vector<double> all;
  const std::size_t size = a.size() / count;
  for (std::size_t i = 0; i < count; ++i) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t k = i * size; k < (i + 1) * size; ++k) {
      ab += a[k] * b[k];
      aa += a[k] * a[k];
      bb += b[k] * b[k];
    }
    all.push_back(ab / std::sqrt(aa * bb));
  }
  return all;
}

void print(const std::list<Runner>& runners, const Options& options) {
  std::printf("%-29s %8s %8s %8s %8s %9s %9s %8s %6s\n", "", "CPU ms", "least", "wall ms", "/ first",
              "least cos", "mean cos", "start ms", "MiB");
  const Runner& first = runners.front();
  for (const Runner& runner : runners) {
    const std::vector<double> found = cosines(runner.answer.vectors, first.answer.vectors, options.texts);
    double sum = 0;
    for (const double one : found) sum += one;
    std::printf("%-20s %-8s %8.4g %8.4g %8.4g %8.3f %9.6f %9.6f", runner.library.c_str(),
                runner.precision.c_str(), median(runner.times.cpu), quantile(runner.times.cpu, 0),
                median(runner.times.wall), median(runner.times.cpu) / median(first.times.cpu),
                *std::ranges::min_element(found), sum / static_cast<double>(found.size()));
    // the others convert the folder first
    if (runner.is_own()) std::printf(" %8.4g %6.0f", runner.answer.start, runner.process.peak_memory());
    std::printf("\n");
  }
  for (const Runner& runner : runners) {
    if (!runner.is_own())
      std::printf("%s %s: %s\n", runner.library.c_str(), runner.precision.c_str(),
                  runner.answer.library.c_str());
  }
  std::fflush(stdout);
}

/// A folder of random weights for a size, or the one that is given.
std::string folder_of(const std::string& model, const bench::TemporaryFile& file) {
  for (const auto& [name, size] : sizes) {
    if (model != name) continue;
    const std::string folder = file.path() + ".folder";
    Process maker("xgrad", {XGRAD_BENCH_PRETRAINED "/bench_precision_precision"});
    maker.ask({{"do", "save"}, {"size", size}, {"folder", folder}});
    return folder;
  }
  return model;
}

void measure(const std::string& model, const Options& options) {
  const bench::TemporaryFile file;
  Folder folder{folder_of(model, file), "", "", std::vector<std::size_t>(options.texts, options.tokens), {}};
  std::mt19937 random(0);
  for (std::size_t i = 0; i < options.texts * options.tokens; ++i)
    folder.ids.push_back(1000 + static_cast<std::int64_t>(random() % 20000));
  std::list<Runner> runners;
  const auto start = [&](const std::string& library, const std::string& precision,
                         const std::vector<std::string>& command, const bench::Environment& environment) {
    folder.library = library;
    folder.precision = precision;
    json request = folder;
    request["do"] = "start";
    request["threads"] = options.threads;
    Runner& runner = runners.emplace_back(library, precision, command, environment);
    runner.answer = runner.process.ask<Vectors>(request);
  };
  for (const char* const precision : {"float32", "bfloat16", "int8"})
    start("xgrad", precision, {XGRAD_BENCH_PRETRAINED "/bench_precision_precision"}, bench::limited_to(1));
  for (const std::string& peer : options.peers) {
    const std::size_t dash = peer.rfind('-');
    start(peer.substr(0, dash), peer.substr(dash + 1), bench::python_command("pretrained/workers/peers.py"),
          bench::python_environment(options.threads));
  }
  for (std::size_t turn = 0; turn < options.turns; ++turn) {
    for (Runner& runner : runners) append(runner.times, bench::run(runner.process, "forward", 1, 1, 1));
  }
  std::printf("\n%s: %zu texts of %zu tokens, %zu thread%s, %zu turns; OpenBLAS core %s\n", model.c_str(),
              options.texts, options.tokens, options.threads, options.threads == 1 ? "" : "s", options.turns,
              runners.front().answer.library.c_str());
  print(runners, options);
  if (folder.folder != model) std::filesystem::remove_all(folder.folder);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  apps::CommandLine app(
      "Prints the time of a forward pass without gradients of an encoder for texts of equal length, in "
      "float32, "
      "bfloat16 and int8, the cosines of the mean hidden states with those in float32, and CPU time until "
      "the "
      "first vectors. Each has a process of its own, and they take turns.");
  app.add_option("MODEL", options.models, "minilm and bert-base, with random weights, or folders of encoders")
      ->capture_default_str();
  app.add_option("--vs", options.peers, "Other libraries to measure beside, which python3 has to find")
      ->check(apps::one_of({"onnxruntime-float32", "onnxruntime-int8", "ctranslate2-float32",
                            "ctranslate2-int8", "pytorch-float32"}));
  app.add_option("--threads", options.threads, "Threads that an op may use")
      ->check(apps::in_range<std::size_t>(1, 1024))
      ->capture_default_str();
  app.add_option("--turns", options.turns, "How often each takes its turn")
      ->check(apps::in_range<std::size_t>(1, 1000))
      ->capture_default_str();
  app.add_option("--texts", options.texts, "Texts of the batch")
      ->check(apps::in_range<std::size_t>(1, 4096))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "Tokens of a text")
      ->check(apps::in_range<std::size_t>(1, 512))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_precision", [&] {
    bench::prepare_to_compare(options.threads);
    for (const std::string& model : options.models) measure(model, options);
    return 0;
  });
}
