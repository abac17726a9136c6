// A pretrained encoder, and the same read from an ONNX file: the forward pass, CPU time
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
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

/// ONNX Runtime's process with the file. Throws std::runtime_error if it computes something else.
class OnnxRuntime {
 public:
  OnnxRuntime(const std::string& path, const Values& in, const Variable<float>& expected)
      : process_("onnxruntime", bench::python_command("encoder/onnx_runtime.py"),
                 bench::python_environment(1)) {
    json inputs;
    for (const auto& [name, value] : in) {
      const Ids& ids = std::get<Ids>(value);
      inputs[name] = {{"shape", std::vector<std::size_t>(ids.shape().begin(), ids.shape().end())},
                      {"data", std::vector<std::int64_t>(ids.begin(), ids.end())}};
    }
    const auto [library, got] = process_.ask<bench::OnnxFile>(
        {{"do", "start"}, {"path", path}, {"threads", 1}, {"inputs", inputs}, {"int8", false}});
    library_ = library;
    double worst = got.size() == expected.size() ? 0 : INFINITY, largest = 0;
    for (std::size_t i = 0; i < expected.size() && worst < INFINITY; ++i) {
      worst = std::max(worst, std::abs(got[i] - static_cast<double>(expected.value().data()[i])));
      largest = std::max(largest, std::abs(got[i]));
    }
    if (!(worst <= 1e-5 * largest))
      process_.fail("its output differs by " + std::to_string(worst) +
                    " from xgrad's: this is not the same model");
  }

  const std::string& library() const { return library_; }

  double seconds_of(std::size_t calls) {
    constexpr double one_call = 1e-6;  // ms of it at least
    return 1e-3 * static_cast<double>(calls) * bench::run(process_, "forward", calls, 1, one_call).cpu[0];
  }

 private:
  bench::Process process_;
  std::string library_;
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
    peer.emplace(file.path(), in, std::get<Variable<float>>(forward(model, in).at(output_name)));
    runners.push_back({"onnxruntime, ms", [&](std::size_t calls) { return peer->seconds_of(calls); }});
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
              peer ? "; " : "", peer ? peer->library().c_str() : "");
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

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> configs{"toy", "small", "medium", "large", "longseq"};
  std::string peer;
  double seconds = 3;
  apps::CommandLine app(
      "Measures the forward pass of a fresh BERT, and of the graph that it is exported to and read back as.");
  app.add_option("--config", configs,
                 "Sizes of the encoder, as bench_encoder has them; the first five by default")
      ->check(apps::one_of(bench::config_names()));
  app.add_option("--vs", peer, "Another library to measure beside, in turns")
      ->check(apps::one_of({"onnxruntime"}))
      ->check(apps::Check{bench::missing_onnxruntime, ""});
  app.add_option("--seconds", seconds, "Time of each size")
      ->check(apps::in_range(1e-3, 1000.0))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_onnx", [&] {
    bench::prepare_to_compare(1);
    const xgrad::NoGrad guard;
    xgrad::set_num_threads(1);
    for (const std::string& name : configs) measure(bench::config_of(name), !peer.empty(), seconds);
    return 0;
  });
}
