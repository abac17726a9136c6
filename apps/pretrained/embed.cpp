// Turns texts into vectors with a pretrained sentence encoder, or compares them
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>

#include "../common/command_line.hpp"
#include "../common/interruption.hpp"
#include "../common/program.hpp"
#include "../common/progress.hpp"
#include "common/json_lines.hpp"
#include "common/precision.hpp"
#include "common/texts.hpp"

using namespace apps;
using namespace xgrad::pretrained;
using xgrad::Array, xgrad::NpyWriter;

namespace {

constexpr std::size_t most_compared = 1000;

struct Options {
  std::string folder, npy;
  std::optional<std::string> prompt_name, prompt;
  std::optional<std::size_t> truncate_dim;
  std::vector<std::string> texts;
  std::size_t batch = texts_of_a_batch;
  PrecisionOption precision;
  bool similar = false, json = false, normalize = false, skip_invalid = false;
};

/// Throws std::runtime_error for nan and infinities, as of damaged weights.
void check_finite(const Array<float>& vectors, const std::string& model) {
  const auto wrong = std::ranges::find_if(vectors, [](float number) { return !std::isfinite(number); });
  if (wrong != vectors.end())
    throw std::runtime_error(model + ": vectors must be finite, got " +
                             (std::isnan(*wrong) ? "nan" : std::to_string(*wrong)));
}

double dot(const Array<float>& vectors, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < vectors.shape(1); ++k) sum += double{vectors(i, k)} * double{vectors(j, k)};
  return sum;
}

/// 0 for a vector of zeros.
void print_cosines(const Array<float>& vectors) {
  constexpr double least = 1e-8;  // of a norm, as PyTorch's cosine_similarity has it
  std::vector<double> norms;
  for (std::size_t i = 0; i < vectors.shape(0); ++i)
    norms.push_back(std::max(std::sqrt(dot(vectors, i, i)), least));
  for (std::size_t i = 0; i < norms.size(); ++i) {
    for (std::size_t j = 0; j < norms.size(); ++j)
      std::printf("%s%7.4f", j == 0 ? "" : " ", dot(vectors, i, j) / (norms[i] * norms[j]));
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

void print_json(const std::vector<std::string>& texts, const Array<float>& vectors) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    print_line(vector_json(texts[i], {&vectors(i, 0), vectors.shape(1)}));
}

/// Adds the next texts to those that are compared, as all are embedded at once. False at the end.
bool gather(TextSource& source, std::vector<std::string>& texts) {
  const std::vector<std::string> more = without_numbers(source.next());
  texts.insert(texts.end(), more.begin(), more.end());
  if (texts.size() > most_compared)
    throw std::runtime_error("--similar compares at most " + std::to_string(most_compared) +
                             " texts, got more");
  return !more.empty();
}

/// Keeps the rows that are done, as their computation may have taken hours, and tells where.
void save_part(NpyWriter<float>& file, const std::string& path, std::size_t last_text) {
  const std::string part = path + ".partial";
  if (file.rows() == 0) {
    std::fprintf(stderr, "%s: is not written, as no vector was complete\n", part.c_str());
    return;
  }
  try {
    file.commit_as(part);
    std::fprintf(stderr, "%s: has the vectors of %zu texts, up to text or line %zu\n", part.c_str(),
                 file.rows(), last_text);
  } catch (const xgrad::FileError& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
  }
}

int run(const Options& options) {
  const NotedSignals signals;
  const auto embedder =
      SentenceEmbedder<float>::from_folder(find_model(options.folder), options.precision.load_options());
  embedder.encoder().skip_padding();
  Progress progress("texts");
  std::size_t done = 0, last = 0;
  EmbedOptions how{.batch_size = options.batch,
                   .prompt_name = options.prompt_name,
                   .prompt = options.prompt,
                   .truncate_dim = options.truncate_dim,
                   .normalize = options.normalize,
                   .progress = [&](std::size_t more) {
                     check_interruption();
                     progress.update(done + more);
                   }};
  const std::size_t size = embedder(std::vector<std::string>(), how).shape(1);  // checks the options, too
  const auto note = [&](const std::string& text) {
    progress.clear();
    std::fprintf(stderr, "%s\n", text.c_str());
  };
  TextSource source(options.texts, options.skip_invalid ? note : std::function<void(const std::string&)>());
  std::optional<NpyWriter<float>> file;
  if (!options.npy.empty()) file.emplace(options.npy, xgrad::Shape{size});

  if (options.similar) {
    std::vector<std::string> texts;
    while (gather(source, texts)) continue;
    const Array<float> vectors = embedder(texts, how);
    progress.clear();
    check_finite(vectors, options.folder);
    if (file) file->append(vectors);
    if (file) file->commit();
    print_cosines(vectors);
    return 0;
  }
  try {
    for (;;) {
      const std::vector<NumberedText> numbered = source.next();
      if (numbered.empty()) break;
      // In a file the rows of each batch are complete on their own: a later one may fail.
      const std::size_t at_once = file ? options.batch : numbered.size();
      for (std::size_t begin = 0; begin < numbered.size(); begin += at_once) {
        const std::size_t count = std::min(at_once, numbered.size() - begin);
        const auto first = numbered.begin() + static_cast<std::ptrdiff_t>(begin);
        const std::vector<NumberedText> part(first, first + static_cast<std::ptrdiff_t>(count));
        const std::vector<std::string> texts = without_numbers(part);
        const Array<float> vectors = embedder(texts, how);
        progress.clear();
        check_finite(vectors, options.folder);
        if (file) {
          file->append(vectors);
        } else if (options.json) {
          print_json(texts, vectors);
        } else {
          print_vectors(vectors);
        }
        flush_output();
        done += count;
        last = part.back().number;
      }
    }
    if (file) file->commit();
  } catch (...) {
    progress.clear();
    if (file) save_part(*file, options.npy, last);
    throw;
  }
  return 0;
}

int run_command(int argc, char** argv) {
  Options options;
  CommandLine app(
      "Prints the vector of each text, or of each line of the input, as a line of numbers. modules.json in "
      "the folder of the sentence encoder defines the computation. In a pipe, each line is answered before "
      "the next one is awaited.");
  app.add_option("DIR", options.folder, "The model's folder, or its name in the hub's cache")
      ->required()
      ->path(PathUse::input)
      ->found_by(find_model);
  app.add_option("TEXT", options.texts, "Texts; without any, the lines of the input");
  Option* const json = app.add_flag(
      "--json", options.json, R"(Print an object in each line instead, {"text":"a text","vector":[0.5,-1]})");
  app.add_flag("--similar", options.similar,
               "Print a table of the cosines of all pairs of at most 1000 texts instead")
      ->excludes(json);
  app.add_option("--npy", options.npy,
                 "Save the vectors to this file instead, (texts, size); after an error or Ctrl-C, those that "
                 "are complete to FILE.partial")
      ->path(PathUse::output)
      ->excludes(json);
  Option* const prompt_name =
      app.add_option("--prompt-name", options.prompt_name,
                     "Name of the prompt that goes before each text, instead of the folder's default one");
  app.add_option("--prompt", options.prompt, "The prompt itself, instead of one with a name")
      ->excludes(prompt_name);
  app.add_option("--truncate-dim", options.truncate_dim, "Keep only so many first numbers of each vector")
      ->check(in_range<std::size_t>(1, 1'000'000));
  app.add_flag("--normalize", options.normalize, "Divide each vector by its length, after it is truncated");
  app.add_flag("--skip-invalid", options.skip_invalid, "Leave out lines that are not UTF-8, and tell which");
  app.add_option("--batch", options.batch, "Texts per batch")
      ->check(in_range<std::size_t>(1, 4096))
      ->capture_default_str();
  options.precision.add_to(app);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("embed", [&] { return run_command(argc, argv); });
}
