// Sorts texts by how well they answer a query, with a cross-encoder
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

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

namespace {

struct Options {
  std::string folder, query;
  std::vector<std::string> texts;
  std::optional<std::string> prompt_name, prompt;
  std::size_t top = SIZE_MAX;
  std::size_t batch = texts_of_a_batch;
  PrecisionOption precision;
  bool json = false, skip_invalid = false;
};

/// Adds texts with their scores, and keeps the `top` best, the best first; equal ones by their lines.
void add(std::vector<RankedText>& best, const std::vector<NumberedText>& texts,
         const std::vector<std::pair<std::size_t, float>>& scores, std::size_t top) {
  const auto before = static_cast<std::ptrdiff_t>(best.size());
  for (const auto& [i, score] : scores) best.push_back({double{score}, texts[i].number, texts[i].text});
  std::inplace_merge(best.begin(), best.begin() + before, best.end(),
                     [](const RankedText& a, const RankedText& b) { return a.score > b.score; });
  if (best.size() > top) best.erase(best.begin() + static_cast<std::ptrdiff_t>(top), best.end());
}

int run(const Options& options) {
  const NotedSignals signals;
  const auto encoder = CrossEncoder<float>::from_folder(find_model(options.folder),
                                                        options.precision.load_options({.complete = true}));
  encoder.classifier().encoder().skip_padding();
  Progress progress("texts");
  std::size_t done = 0;
  const ScoreOptions how{.batch_size = options.batch,
                         .prompt_name = options.prompt_name,
                         .prompt = options.prompt,
                         .progress = [&](std::size_t more) {
                           check_interruption();
                           progress.update(done + more);
                         }};
  const auto note = [&](const std::string& text) {
    progress.clear();
    std::fprintf(stderr, "%s\n", text.c_str());
  };
  TextSource source(options.texts, options.skip_invalid ? note : std::function<void(const std::string&)>());
  std::vector<RankedText> best;
  for (;;) {
    const std::vector<NumberedText> texts = source.next();
    if (texts.empty()) break;
    const auto scores = encoder.rank(options.query, without_numbers(texts), how);
    if (std::ranges::any_of(scores, [](const auto& one) { return std::isnan(one.second); }))
      throw std::runtime_error(options.folder + ": scores must be numbers, got nan");
    add(best, texts, scores, options.top);
    done += texts.size();
  }
  progress.clear();
  if (options.json) {
    print_line(ranking_json(options.query, best));
  } else {
    for (const RankedText& one : best) {
      std::printf("%.6f\t", one.score);
      print_line(one.text);
    }
  }
  return 0;
}

int run_command(int argc, char** argv) {
  Options options;
  CommandLine app(
      "Prints each text, or each line of the input, behind its score with the query, the highest score "
      "first.");
  app.add_option("DIR", options.folder,
                 "The folder of a cross-encoder with one label, or its name in the hub's cache")
      ->required()
      ->path(PathUse::input);
  app.add_option("QUERY", options.query, "The query, the first text of each pair")->required();
  app.add_option("TEXT", options.texts, "Texts; without any, the lines of the input");
  app.add_option("--top", options.top, "Print only so many texts")
      ->check(in_range<std::size_t>(1, 1'000'000));
  app.add_flag(
      "--json", options.json,
      R"(Print an object instead, {"query":"a query","hits":[{"rank":1,"score":0.5,"line":3,"text":"a text"}]})");
  Option* const prompt_name =
      app.add_option("--prompt-name", options.prompt_name,
                     "Name of the prompt that goes before the query, instead of the folder's default one");
  app.add_option("--prompt", options.prompt, "The prompt itself, instead of one with a name")
      ->excludes(prompt_name);
  app.add_flag("--skip-invalid", options.skip_invalid, "Leave out lines that are not UTF-8, and tell which");
  app.add_option("--batch", options.batch, "Pairs per batch")
      ->check(in_range<std::size_t>(1, 4096))
      ->capture_default_str();
  options.precision.add_to(app);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("rerank", [&] { return run_command(argc, argv); });
}
