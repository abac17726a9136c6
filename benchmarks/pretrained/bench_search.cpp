// Building an index of many vectors, opening it, and the exact search in it
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <xgrad/base/threads.hpp>
#include <xgrad/retrieval/search_index.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"
#include "../encoder/temporary_file.hpp"

using namespace xgrad::retrieval;
using xgrad::Array;

namespace {

struct Options {
  std::size_t texts = 1'000'000, size = 384, threads = 1, turns = 5;
};

/// Vectors with numbers from -1 to 1, the same every time.
Array<float> random_vectors(std::size_t count, std::size_t size, std::mt19937& random) {
  Array<float> vectors = Array<float>::from_shape({count, size});
  for (float& number : vectors) number = static_cast<float>(random()) * 0x1p-31f - 1;
  return vectors;
}

/// The milliseconds of a call.
template <class F>
double time_of(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

int run(const Options& options) {
  xgrad::set_num_threads(options.threads);
  std::mt19937 random(0);
  const bench::TemporaryFile corpus, path;
  const std::vector<TextPlace> places(options.texts, TextPlace{1, 0, 0});
  double writing = 0;
  {
    SearchIndexWriter<float> writer(path.path(), places, options.size);
    constexpr std::size_t at_once = 2048;
    for (std::size_t begin = 0; begin < options.texts; begin += at_once) {
      const Array<float> vectors =
          random_vectors(std::min(at_once, options.texts - begin), options.size, random);
      writing += time_of([&] { writer.append(vectors); });
    }
    writing += time_of([&] { writer.commit(); });
  }
  std::printf("%zu vectors of %zu numbers, %.0f MiB, %zu threads\n", options.texts, options.size,
              static_cast<double>(std::filesystem::file_size(path.path())) / 0x1p20, options.threads);
  std::printf("writing              %10.1f ms\n", writing);
  std::optional<SearchIndex<float>> index;
  std::printf("opening              %10.3f ms\n",
              time_of([&] { index.emplace(path.path(), corpus.path()); }));
  for (const std::size_t queries : {1, 10, 100}) {
    const Array<float> vectors = random_vectors(queries, options.size, random);
    std::vector<double> times;
    for (std::size_t turn = 0; turn < options.turns; ++turn)
      times.push_back(time_of([&] { index->search(vectors, {.top_k = 10}); }));
    std::ranges::sort(times);
    std::printf("%3zu queries, top 10  %10.1f ms, %.2f ms each\n", queries, times[times.size() / 2],
                times[times.size() / 2] / static_cast<double>(queries));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  apps::CommandLine app(
      "Measures writing, opening and searching an index of random vectors; medians of the turns.");
  app.add_option("--texts", options.texts, "Vectors")
      ->check(apps::in_range<std::size_t>(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--size", options.size, "Numbers of a vector")
      ->check(apps::in_range<std::size_t>(1, 10'000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads")
      ->check(apps::in_range<std::size_t>(1, 1024))
      ->capture_default_str();
  app.add_option("--turns", options.turns, "Searches of each kind")
      ->check(apps::in_range<std::size_t>(1, 1000))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_search", [&] { return run(options); });
}
