// Turns texts into vectors with a pretrained sentence encoder, or compares them
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "common/texts.hpp"

using namespace apps;
using namespace xgrad::pretrained;
using xgrad::Array;

namespace {

struct Options {
  std::string folder, npy;
  std::optional<std::string> prompt_name;
  std::vector<std::string> texts;
  std::size_t batch = texts_of_a_batch;
  bool similar = false;
};

double dot(const Array<float>& vectors, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < vectors.shape(1); ++k) sum += double{vectors(i, k)} * double{vectors(j, k)};
  return sum;
}

void print_cosines(const Array<float>& vectors, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j)
      std::printf("%s%7.4f", j == 0 ? "" : " ",
                  dot(vectors, i, j) / std::sqrt(dot(vectors, i, i) * dot(vectors, j, j)));
    std::putchar('\n');
  }
}

void print_vectors(const Array<float>& vectors) {
  for (std::size_t i = 0; i < vectors.shape(0); ++i) {
    for (std::size_t k = 0; k < vectors.shape(1); ++k)
      std::printf("%s%.9g", k == 0 ? "" : " ", double{vectors(i, k)});
    std::putchar('\n');
  }
}

int run(const Options& options) {
  const auto embedder = SentenceEmbedder<float>::from_folder(find_model(options.folder));
  embedder.encoder().skip_padding();
  std::vector<float> all;  // what is compared or saved together
  std::size_t count = 0;
  for_each_text(options.texts, texts_at_once, [&](std::span<const std::string> texts) {
    const Array<float> vectors =
        embedder(texts, {.batch_size = options.batch, .prompt_name = options.prompt_name});
    count += texts.size();
    if (options.similar || !options.npy.empty()) {
      all.insert(all.end(), vectors.begin(), vectors.end());
    } else {
      print_vectors(vectors);
    }
  });
  Array<float> vectors = Array<float>::from_shape({count, embedder.size()});
  if (all.empty()) return 0;
  std::ranges::copy(all, vectors.begin());
  if (!options.npy.empty()) xgrad::save_npy(vectors, options.npy);
  if (options.similar) print_cosines(vectors, count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine app(
      "Prints the vector of each text, or of each line of the input, as a line of numbers. modules.json in "
      "the folder of the sentence encoder defines the computation.");
  app.add_option("DIR", options.folder, "The model's folder, or its name in the hub's cache")->required();
  app.add_option("TEXT", options.texts, "Texts; without any, the lines of the input");
  app.add_flag("--similar", options.similar, "Print a table of the cosines of all pairs of texts instead");
  app.add_option("--npy", options.npy, "Save the vectors to this file instead, (texts, size)");
  app.add_option("--prompt-name", options.prompt_name,
                 "Name of the prompt that goes before each text, instead of the folder's default one");
  app.add_option("--batch", options.batch, "Texts per batch")
      ->check(in_range<std::size_t>(1, 4096))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_program("embed", [&] { return run(options); });
}
