// A pretrained encoder, and the same read from an ONNX file: the forward pass, CPU time
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <xgrad/onnx.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../../apps/program.hpp"
#include "../encoder/configs.hpp"
#include "../encoder/temporary_file.hpp"
#include "../in_turns.hpp"

namespace {

namespace onnx = xgrad::onnx;
using xgrad::Ids, xgrad::Variable;
using Values = onnx::Values<float>;

struct Sizes {
  std::size_t layers = 4, width = 256, heads = 4, batch = 8, length = 64;
};

xgrad::pretrained::Config config_of(const Sizes& sizes) {
  auto config = xgrad::pretrained::Config::of(xgrad::pretrained::Family::bert);
  config.vocab_size = 1000;
  config.hidden_size = config.embedding_size = sizes.width;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.intermediate_size = 4 * sizes.width;
  return config;
}

Values forward(const xgrad::pretrained::Encoder<float>& model, const Values& in) {
  const auto output =
      model({std::get<Ids>(in.at("input_ids")), std::get<Ids>(in.at("attention_mask")), std::nullopt});
  return {{"last_hidden_state", output.last_hidden_state}};
}

/// A third of the sequences end with padding.
Values examples(const Sizes& sizes) {
  Ids ids = xgrad::randint(1, 1000, {sizes.batch, sizes.length}), mask(ids.shape(), 1);
  for (std::size_t row = 0; row < sizes.batch; row += 3)
    for (std::size_t i = sizes.length - sizes.length / 4; i < sizes.length; ++i)
      ids(row, i) = mask(row, i) = 0;
  return {{"input_ids", ids}, {"attention_mask", mask}};
}

int measure(const Sizes& sizes, std::size_t rounds) {
  const xgrad::NoGrad guard;
  xgrad::set_num_threads(1);
  xgrad::manual_seed(0);
  const xgrad::pretrained::Encoder<float> model(config_of(sizes));
  model.eval();
  const bench::TemporaryFile file;
  onnx::save<float>(
      model, file.path(),
      {{"input_ids", {"batch", "sequence"}, 0, 1000, 0}, {"attention_mask", {"batch", "sequence"}, 0, 2}},
      [&](const Values& in) { return forward(model, in); });
  const onnx::Graph<float> graph(file.path());
  const Values in = examples(sizes);
  const std::vector<bench::DoSoManyTimes> runs = {[&](std::size_t calls) {
                                                    for (; calls > 0; --calls) forward(model, in);
                                                  },
                                                  [&](std::size_t calls) {
                                                    for (; calls > 0; --calls) graph(in);
                                                  }};
  std::vector<double> native, imported, ratios;
  for (const auto& run : runs) run(2);
  for (std::size_t round = 0; round < rounds; ++round) {
    native.push_back(1e3 * bench::seconds_of(runs[0], 1));
    imported.push_back(1e3 * bench::seconds_of(runs[1], 1));
    ratios.push_back(imported.back() / native.back());
  }
  std::printf("BERT of %zu layers x %zu, %zu heads, batch %zu x %zu, one thread, %zu calls in turns\n",
              sizes.layers, sizes.width, sizes.heads, sizes.batch, sizes.length, rounds);
  std::printf("                    median    least  largest\n");
  const auto print = [](const char* name, const std::vector<double>& all) {
    std::printf("%-16s  %8.3f %8.3f %8.3f\n", name, bench::median(all), std::ranges::min(all),
                std::ranges::max(all));
  };
  print("native, ms", native);
  print("imported, ms", imported);
  print("imported/native", ratios);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  std::size_t rounds = 51;
  CLI::App app(
      "Measures the forward pass of a fresh BERT, and of the graph that it is exported to and read back as.");
  const auto size = [&](const char* name, std::size_t& value, std::size_t most, const char* what) {
    app.add_option(name, value, what)->check(apps::in_range<std::size_t>(1, most))->capture_default_str();
  };
  size("--layers", sizes.layers, 48, "Layers");
  size("--width", sizes.width, 4096, "Width; the heads divide it");
  size("--heads", sizes.heads, 64, "Heads");
  size("--batch", sizes.batch, 1024, "Sequences of a call");
  size("--length", sizes.length, 512, "Tokens of a sequence");
  size("--rounds", rounds, 100000, "Calls of each");
  if (const std::optional<int> exit_code = apps::parse(app, argc, argv)) return *exit_code;
  return apps::run_program("bench_onnx", [&] { return measure(sizes, rounds); });
}
