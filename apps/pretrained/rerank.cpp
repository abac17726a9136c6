// Sorts texts by how well they answer a query, with a cross-encoder
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/pretrained.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "common/texts.hpp"

using namespace apps;
using namespace xgrad::pretrained;

namespace {

struct Options {
  std::string folder, query;
  std::vector<std::string> texts;
  std::optional<std::string> prompt_name;
  std::optional<std::size_t> top;
  std::size_t batch = texts_of_a_batch;
};

int run(const Options& options) {
  const auto encoder = CrossEncoder<float>::from_folder(find_model(options.folder));
  encoder.classifier().encoder().skip_padding();
  std::vector<std::string> all;
  for_each_text(options.texts, texts_at_once, [&](std::span<const std::string> texts) {
    all.insert(all.end(), texts.begin(), texts.end());
  });
  auto ranked =
      encoder.rank(options.query, all, {.batch_size = options.batch, .prompt_name = options.prompt_name});
  ranked.resize(std::min(options.top.value_or(ranked.size()), ranked.size()));
  for (const auto& [i, score] : ranked) std::printf("%.6f\t%s\n", double{score}, all[i].c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine app(
      "Prints each text, or each line of the input, behind its score with the query, the highest score "
      "first.");
  app.add_option("DIR", options.folder,
                 "The folder of a cross-encoder with one label, or its name in the hub's cache")
      ->required();
  app.add_option("QUERY", options.query, "The query, the first text of each pair")->required();
  app.add_option("TEXT", options.texts, "Texts; without any, the lines of the input");
  app.add_option("--top", options.top, "Print only so many texts")
      ->check(in_range<std::size_t>(1, 1'000'000));
  app.add_option("--prompt-name", options.prompt_name,
                 "Name of the prompt that goes before the query, instead of the folder's default one");
  app.add_option("--batch", options.batch, "Pairs per batch")
      ->check(in_range<std::size_t>(1, 4096))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_program("rerank", [&] { return run(options); });
}
