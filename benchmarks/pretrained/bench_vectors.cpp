// How far the vectors of texts in bfloat16 and int8 are from those in float32
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <xgrad/pretrained.hpp>

#include "../../apps/common/command_line.hpp"
#include "../../apps/common/program.hpp"

using namespace xgrad::pretrained;
using xgrad::Array;

namespace {

constexpr std::size_t neighbours = 10;

/// Rows of length 1.
Array<float> vectors_of(const std::string& folder, Precision precision, std::span<const std::string> texts) {
  const auto embedder = SentenceEmbedder<float>::from_folder(folder, {.precision = precision});
  embedder.encoder().skip_padding();
  Array<float> vectors = embedder(texts);
  for (std::size_t i = 0; i < vectors.shape(0); ++i) {
    double square = 0;
    for (std::size_t k = 0; k < vectors.shape(1); ++k)
      square += double{vectors(i, k)} * double{vectors(i, k)};
    for (std::size_t k = 0; k < vectors.shape(1); ++k)
      vectors(i, k) = static_cast<float>(double{vectors(i, k)} / std::sqrt(square));
  }
  return vectors;
}

double cosine(const Array<float>& a, std::size_t i, const Array<float>& b, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < a.shape(1); ++k) sum += double{a(i, k)} * double{b(j, k)};
  return sum;
}

/// The texts that are nearest to text i, in order of their numbers.
std::vector<std::size_t> nearest(const Array<float>& vectors, std::size_t i) {
  std::vector<std::pair<double, std::size_t>> all;
  for (std::size_t j = 0; j < vectors.shape(0); ++j)
    if (j != i) all.emplace_back(-cosine(vectors, i, vectors, j), j);
  std::partial_sort(all.begin(), all.begin() + neighbours, all.end());
  std::vector<std::size_t> found;
  for (std::size_t n = 0; n < neighbours; ++n) found.push_back(all[n].second);
  std::sort(found.begin(), found.end());
  return found;
}

void compare(const char* name, const Array<float>& vectors, const Array<float>& exact) {
  const std::size_t count = exact.shape(0);
  double least = 1, sum = 0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double one = cosine(vectors, i, exact, i);
    least = std::min(least, one);
    sum += one;
    const std::vector<std::size_t> a = nearest(vectors, i), b = nearest(exact, i);
    std::vector<std::size_t> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    equal += both.size();
  }
  const auto of_all = static_cast<double>(count);
  std::printf(
      "%-8s  cosine with float32: least %.6f, mean %.6f; %.2f %% of the %zu nearest texts are equal\n", name,
      least, sum / of_all, 100 * static_cast<double>(equal) / (neighbours * of_all), neighbours);
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  apps::CommandLine app(
      "Compares the vectors of the lines of the input in bfloat16 and in int8 with those in "
      "float32: their cosines, and how many of the ten nearest texts of each text are the same.");
  app.add_option("DIR", folder, "The folder of a sentence encoder, or its name in the hub's cache")
      ->required();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return apps::run_program("bench_vectors", [&] {
    folder = find_model(folder);
    std::vector<std::string> all;
    for (std::string line; std::getline(std::cin, line);)
      if (!line.empty()) all.push_back(line);
    if (all.size() <= neighbours)
      throw std::runtime_error("needs more than " + std::to_string(neighbours) + " texts, got " +
                               std::to_string(all.size()));
    const Array<float> exact = vectors_of(folder, Precision::float32, all);
    std::printf("%zu texts\n", all.size());
    compare("bfloat16", vectors_of(folder, Precision::bfloat16, all), exact);
    compare("int8", vectors_of(folder, Precision::int8, all), exact);
    return 0;
  });
}
