// A pretrained encoder, and the same read from an ONNX file: the forward pass, CPU time
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../../apps/onnx/common/exports.hpp"
#include "../encoder/configs.hpp"
#include "../encoder/measuring.hpp"
#include "../encoder/temporary_file.hpp"
#include "../in_turns.hpp"

namespace {

namespace onnx = xgrad::onnx;
using bench::Size, nlohmann::json, xgrad::Ids, xgrad::Variable;
using Values = onnx::Values<float>;

constexpr const char* output_name = "last_hidden_state";

xgrad::pretrained::Config config_of(const Size& size) {
  auto config = xgrad::pretrained::Config::of(xgrad::pretrained::Family::bert);
  config.vocab_size = size.vocab;
  config.hidden_size = config.embedding_size = size.d_model;
  config.num_hidden_layers = size.layers;
  config.num_attention_heads = size.heads;
  config.intermediate_size = size.d_ff;
  config.max_position_embeddings = std::max<std::size_t>(512, size.seq);
  return config;
}

Values forward(const xgrad::pretrained::Encoder<float>& model, const Values& in) {
  const auto output =
      model({std::get<Ids>(in.at("input_ids")), std::get<Ids>(in.at("attention_mask")), std::nullopt});
  return {{output_name, output.last_hidden_state}};
}

/// A third of the sequences end with padding.
Values examples(const Size& size) {
  Ids ids = xgrad::randint(1, static_cast<std::int64_t>(size.vocab), {size.batch, size.seq}),
      mask(ids.shape(), 1);
  for (std::size_t row = 0; row < size.batch; row += 3)
    for (std::size_t i = size.seq - size.seq / 4; i < size.seq; ++i) ids(row, i) = mask(row, i) = 0;
  return {{"input_ids", ids}, {"attention_mask", mask}};
}

/// ONNX Runtime's process with the file, or with its 8-bit weights, which are left in another file.
class OnnxRuntime {
 public:
  OnnxRuntime(const std::string& path, const Values& in, std::size_t threads,
              const std::string& int8_path = "")
      : process_("onnxruntime", bench::python_command("encoder/onnx_runtime.py"),
                 bench::python_environment(threads)) {
    json inputs;
    for (const auto& [name, value] : in) {
      const Ids& ids = std::get<Ids>(value);
      inputs[name] = {{"shape", std::vector<std::size_t>(ids.shape().begin(), ids.shape().end())},
                      {"data", std::vector<std::int64_t>(ids.begin(), ids.end())}};
    }
    file_ = process_.ask<bench::OnnxFile>({{"do", "start"},
                                           {"path", path},
                                           {"threads", threads},
                                           {"inputs", inputs},
                                           {"int8", !int8_path.empty()},
                                           {"kept", int8_path}});
  }

  /// Throws std::runtime_error if it computes something else.
  void expect(const Variable<float>& expected) const {
    const std::vector<double>& got = file_.output;
    double worst = got.size() == expected.size() ? 0 : INFINITY, largest = 0;
    for (std::size_t i = 0; i < expected.size() && worst < INFINITY; ++i) {
      const double difference = std::abs(got[i] - static_cast<double>(expected.value().data()[i]));
      worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
      largest = std::max(largest, std::abs(got[i]));
    }
    if (!(worst <= 1e-5 * largest))
      process_.fail("its output differs by " + std::to_string(worst) +
                    " from xgrad's: this is not the same model");
  }

  const bench::OnnxFile& file() const { return file_; }

  /// ms per call.
  bench::Times times_of(std::size_t calls) {
    constexpr double one_call = 1e-6;  // ms of it at least
    return bench::run(process_, "forward", calls, 1, one_call);
  }

 private:
  bench::Process process_;
  bench::OnnxFile file_;
};

/// Something that is measured, and the milliseconds of a call in each round.
struct Runner {
  const char* name;
  std::function<double(std::size_t calls)> seconds_of;
  std::vector<double> times = {};
};

void print_row(const char* name, const std::vector<double>& all) {
  std::printf("  %-22s %9.4g %9.4g %9.4g\n", name, bench::median(all), std::ranges::min(all),
              std::ranges::max(all));
}

void measure(const bench::Config& config, bool with_onnxruntime, double seconds) {
  const Size& size = config.size;
  xgrad::manual_seed(0);
  const xgrad::pretrained::Encoder<float> model(config_of(size));
  model.eval();
  const bench::TemporaryFile file;
  onnx::save<float>(model, file.path(),
                    {{"input_ids", {"batch", "sequence"}, 0, static_cast<std::int64_t>(size.vocab), 0},
                     {"attention_mask", {"batch", "sequence"}, 0, 2}},
                    [&](const Values& in) { return forward(model, in); });
  const onnx::Graph<float> graph(file.path());
  const Values in = examples(size);
  const auto repeated = [](const auto& call) {
    const bench::DoSoManyTimes run = [call](std::size_t calls) {
      for (; calls > 0; --calls) call();
    };
    return [run](std::size_t calls) {
      run(1);  // takes the caches back from the one before
      return bench::seconds_of(run, calls);
    };
  };
  std::vector<Runner> runners{{"native, ms", repeated([&] { forward(model, in); })},
                              {"imported, ms", repeated([&] { graph(in); })}};
  std::optional<OnnxRuntime> peer;
  if (with_onnxruntime) {
    peer.emplace(file.path(), in, 1);
    peer->expect(std::get<Variable<float>>(forward(model, in).at(output_name)));
    runners.push_back({"onnxruntime, ms", [&](std::size_t calls) {
                         return 1e-3 * static_cast<double>(calls) * peer->times_of(calls).cpu[0];
                       }});
  }
  constexpr std::size_t rounds = 21;
  const double one = runners[0].seconds_of(1);
  const auto calls =
      static_cast<std::size_t>(std::max(1.0, seconds / (one * static_cast<double>(rounds * runners.size()))));
  for (std::size_t round = 0; round < rounds; ++round)
    for (Runner& runner : runners)
      runner.times.push_back(1e3 * runner.seconds_of(calls) / static_cast<double>(calls));

  std::printf("%s: BERT of %zu x %zu, %zu heads, batch %zu x %zu; %zu rounds of %zu calls, one thread%s%s\n",
              config.name, size.layers, size.d_model, size.heads, size.batch, size.seq, rounds, calls,
              peer ? "; " : "", peer ? peer->file().library.c_str() : "");
  std::printf("  %-22s %9s %9s %9s\n", "", "median", "least", "largest");
  for (const Runner& runner : runners) print_row(runner.name, runner.times);
  const auto print_ratios = [&](const char* name, std::size_t i) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < rounds; ++round)
      ratios.push_back(runners[i].times[round] / runners[0].times[round]);
    print_row(name, ratios);
  };
  print_ratios("imported/native", 1);
  if (peer) print_ratios("onnxruntime/native", 2);
  std::fflush(stdout);
}

// ---- The encoder of a folder, in float32 and in int8 ----

struct FolderOptions {
  std::size_t threads = 1, turns = 7, texts = 16, tokens = 64;
};

double cpu_ms() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// What makes last hidden states, and what was measured of it.
struct Column {
  const char *name, *precision;
  double start;  ///< CPU time of loading, ms
  std::function<void()> call;
  std::vector<double> output;
  OnnxRuntime* peer = nullptr;
  bench::Times times = {};

  void measure() {
    if (peer != nullptr) return bench::append(times, peer->times_of(1));
    call();  // takes the caches back from the one before
    const auto wall = std::chrono::steady_clock::now();
    const double cpu = cpu_ms();
    call();
    times.cpu.push_back(cpu_ms() - cpu);
    times.wall.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - wall).count());
  }
};

/// The least cosine of the rows of both.
double least_cosine(const std::vector<double>& a, const std::vector<double>& b, std::size_t width) {
  double least = 1;
  for (std::size_t row = 0; row + width <= std::min(a.size(), b.size()); row += width) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = row; i < row + width; ++i) {
      ab += a[i] * b[i];
      aa += a[i] * a[i];
      bb += b[i] * b[i];
    }
    least = std::min(least, ab / std::sqrt(aa * bb));
  }
  return least;
}

void measure_folder(const std::string& folder, bool with_onnxruntime, const FolderOptions& options) {
  namespace pretrained = xgrad::pretrained;
  const bench::TemporaryFile float_file, int8_file;
  const apps::ExportedModel exported = apps::exported_model(folder);
  exported.save(float_file.path());
  Values in;
  for (const onnx::Input& input : exported.inputs) {
    Ids ids(xgrad::Shape{options.texts, options.tokens}, input.name == "attention_mask" ? 1 : 0);
    if (input.name == "input_ids") ids = xgrad::randint(1, input.below, {options.texts, options.tokens});
    in.emplace(input.name, ids);
  }

  std::vector<Column> columns;
  std::list<pretrained::Encoder<float>> models;
  std::list<onnx::Graph<float>> graphs;
  std::list<OnnxRuntime> peers;
  const auto add = [&](const char* name, const char* precision, double begin,
                       std::function<Variable<float>()> f) {
    const Variable<float> y = f();
    columns.push_back({name, precision, cpu_ms() - begin, f, {y.value().begin(), y.value().end()}});
  };
  const auto add_model = [&](const char* name, pretrained::Precision precision) {
    const double begin = cpu_ms();
    const auto& model =
        models.emplace_back(pretrained::Encoder<float>::from_folder(folder, {.precision = precision}));
    add("native", name, begin, [&] { return std::get<Variable<float>>(forward(model, in).at(output_name)); });
  };
  const auto add_graph = [&](const char* name, const std::string& path) {
    const double begin = cpu_ms();
    const auto& graph = graphs.emplace_back(path);
    add("imported", name, begin, [&] { return std::get<Variable<float>>(graph(in).at(output_name)); });
  };
  const auto add_peer = [&](const char* name, const std::string& int8_path) {
    OnnxRuntime& peer = peers.emplace_back(float_file.path(), in, options.threads, int8_path);
    columns.push_back({"onnxruntime", name, peer.file().start, {}, peer.file().output, &peer});
  };
  add_model("float32", pretrained::Precision::float32);
  add_graph("float32", float_file.path());
  if (with_onnxruntime) add_peer("float32", "");
  add_model("int8", pretrained::Precision::int8);
  if (with_onnxruntime) {
    add_peer("int8", int8_file.path());
    add_graph("int8", int8_file.path());
  }
  for (std::size_t turn = 0; turn < options.turns; ++turn)
    for (Column& column : columns) column.measure();

  const auto megabytes = [](const std::string& path) {
    return 1e-6 * static_cast<double>(std::filesystem::file_size(path));
  };
  std::printf("%s: %zu texts of %zu tokens, %zu thread%s, %zu turns; %s; file of %.1f MB", folder.c_str(),
              options.texts, options.tokens, options.threads, options.threads == 1 ? "" : "s", options.turns,
              bench::processor().c_str(), megabytes(float_file.path()));
  if (with_onnxruntime)
    std::printf(", in int8 %.1f MB; %s", megabytes(int8_file.path()), peers.front().file().library.c_str());
  std::printf("\n%-12s %-8s %8s %8s %8s %8s %9s\n", "", "", "CPU ms", "least", "wall ms", "load ms",
              "least cos");
  const std::size_t width = columns.front().output.size() / (options.texts * options.tokens);
  for (const Column& column : columns) {
    std::printf("%-12s %-8s %8.4g %8.4g %8.4g %8.4g %9.6f\n", column.name, column.precision,
                bench::median(column.times.cpu), std::ranges::min(column.times.cpu),
                bench::median(column.times.wall), column.start,
                least_cosine(column.output, columns.front().output, width));
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> configs{"toy", "small", "medium", "large", "longseq"};
  std::string peer, folder;
  double seconds = 3;
  FolderOptions options;
  apps::CommandLine app(
      "Measures the forward pass of a fresh BERT, or of the encoder in a folder, and of the graph that it is "
      "exported to and read back as.");
  app.add_option(
      "FOLDER", folder,
      "An encoder, which is also measured with 8-bit weights; ONNX Runtime writes the file of these");
  app.add_option("--config", configs,
                 "Sizes of the encoder, as bench_encoder has them; the first five by default")
      ->check(apps::one_of(bench::config_names()));
  app.add_option("--vs", peer, "Another library to measure beside, in turns")
      ->check(apps::one_of({"onnxruntime"}))
      ->check(apps::Check{bench::missing_onnxruntime, ""});
  app.add_option("--seconds", seconds, "Time of each size")
      ->check(apps::in_range(1e-3, 1000.0))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that an op may use; of FOLDER alone, as what follows")
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
  return apps::run_program("bench_onnx", [&] {
    bench::prepare_to_compare(options.threads);
    const xgrad::NoGrad guard;
    xgrad::set_num_threads(options.threads);
    if (!folder.empty()) {
      measure_folder(folder, !peer.empty(), options);
      return 0;
    }
    for (const std::string& name : configs) measure(bench::config_of(name), !peer.empty(), seconds);
    return 0;
  });
}
