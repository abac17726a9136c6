// Writes tagged sentences of the Brown corpus in columns, as fine_tune reads them
#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <xgrad/base/file.hpp>
#include <xgrad/train/data.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "../corpora/brown_corpus.hpp"

using namespace apps;

namespace {

std::string in_columns(const TaggedSentence& sentence) {
  std::string lines;
  for (std::size_t i = 0; i < sentence.words.size(); ++i)
    lines += sentence.words[i] + '\t' + sentence.tags[i] + '\n';
  return lines + '\n';
}

int run_command(int argc, char** argv) {
  std::string path;
  std::size_t count = 1000;
  std::uint64_t seed = 0;
  CommandLine app(
      "Writes sentences of the Brown corpus, drawn at random, a line for each word, with its part of speech, "
      "and a "
      "blank line after each sentence.");
  app.add_option("FILE", path, "The file to write")->required()->path(PathUse::output);
  app.add_option("--sentences", count, "Number of sentences; all if there are fewer")
      ->check(in_range<std::size_t>(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", seed, "Seed of the random choice")
      ->check(in_range<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  std::vector<TaggedSentence> sentences;
  for (const TaggedFile& file : brown_corpus()) sentences.insert(sentences.end(), file.begin(), file.end());
  const std::size_t chosen = std::min(count, sentences.size());
  xgrad::Generator generator(seed);
  const auto order = xgrad::random_split(sentences.size(), {chosen, sentences.size() - chosen}, generator);
  xgrad::AtomicFile file(path);
  for (const std::size_t i : order[0]) {
    const std::string lines = in_columns(sentences[i]);
    file.write(std::as_bytes(std::span(lines)));
  }
  file.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("brown_columns", [&] { return run_command(argc, argv); });
}
