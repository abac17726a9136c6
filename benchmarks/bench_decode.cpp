// A step of a decoder reads all of its weights for a row or a few: how fast, beside a loop that only reads
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <xgrad/xgrad.hpp>

#include "../apps/common/command_line.hpp"
#include "../apps/common/program.hpp"
#include "in_turns.hpp"
#include "reading.hpp"

namespace {

using xgrad::Variable, xgrad::Weight;

/// The weights of a GPT-2 (124M), which do not fit into any cache: 12 layers and the head.
struct Weights {
  std::vector<Variable<float>> floats;
  std::vector<Weight<float>> halves;
  std::size_t numbers = 0;

  Weights() {
    constexpr std::size_t layers = 12, d = 768, vocabulary = 50257;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      add({3 * d, d});
      add({d, d});
      add({4 * d, d});
      add({d, 4 * d});
    }
    add({vocabulary, d});
  }

 private:
  void add(const xgrad::Shape& shape) {
    floats.emplace_back(xgrad::normal<float>(shape));
    halves.push_back(Weight<float>::bfloat16(floats.back().value()));
    numbers += floats.back().size();
  }
};

/// CPU time on one thread, which other processes take nothing of.
double now() {
  if (xgrad::num_threads() == 1) return bench::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds_of(const auto& run) {
  const double start = now();
  run();
  return now() - start;
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void run(const Weights& weights, std::size_t rows, std::size_t rounds) {
  std::vector<Variable<float>> narrow_and_wide;
  for (const std::size_t width : {768, 3072})
    narrow_and_wide.emplace_back(xgrad::normal<float>({rows, width}));
  const auto input_of = [&](std::size_t in) { return narrow_and_wide[in == 768 ? 0 : 1]; };
  static const xgrad::Array<float> memory = xgrad::normal<float>({weights.numbers});
  std::vector<double> reading, in_float, in_bfloat16;
  volatile float sink = 0;
  for (std::size_t round = 0; round <= rounds; ++round) {
    const double read_seconds = seconds_of([&] { sink = bench::read(memory); });
    const double float_seconds = seconds_of([&] {
      for (const Variable<float>& weight : weights.floats) linear(input_of(weight.shape(1)), weight);
    });
    const double bfloat16_seconds = seconds_of([&] {
      for (const Weight<float>& weight : weights.halves) linear(input_of(weight.shape()[1]), weight);
    });
    if (round == 0) continue;  // the first fills the pools
    reading.push_back(read_seconds);
    in_float.push_back(float_seconds);
    in_bfloat16.push_back(bfloat16_seconds);
  }
  const double bandwidth = 4e-9 * static_cast<double>(weights.numbers) / median(reading);
  std::printf("%4zu %10.1f", rows, bandwidth);
  for (const auto& [times, bytes] : {std::pair(in_float, 4), std::pair(in_bfloat16, 2)}) {
    const double speed = 1e-9 * bytes * static_cast<double>(weights.numbers) / median(times);
    std::printf(" %9.2f %7.1f %5.0f %%", 1e3 * median(times), speed, 100 * speed / bandwidth);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t threads = 1, rounds = 5;
  apps::CommandLine app(
      "Times the products of a GPT-2's (124M) step for a few rows, beside reading as much.");
  app.add_option("--threads", threads, "Threads")
      ->check(apps::in_range<std::size_t>(1, 64))
      ->capture_default_str();
  app.add_option("--rounds", rounds, "Measurements, whose median is shown")
      ->check(apps::in_range<std::size_t>(1, 1000))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_decode", [&] {
    xgrad::manual_seed(0);
    xgrad::set_num_threads(threads);
    const xgrad::NoGrad guard;
    const Weights weights;
    std::printf("%4s %10s %9s %7s %7s %9s %7s %7s\n", "rows", "read GB/s", "float ms", "GB/s", "", "bfloat16",
                "GB/s", "");
    for (const std::size_t rows : {1, 2, 4, 8}) run(weights, rows, rounds);
    return 0;
  });
}
