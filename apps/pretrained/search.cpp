// Finds the texts of a file that are nearest to a query, with a pretrained sentence encoder
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/files.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/retrieval.hpp>

#include "../common/command_line.hpp"
#include "../common/interruption.hpp"
#include "../common/program.hpp"
#include "../common/progress.hpp"
#include "../common/temporary_folder.hpp"
#include "common/json_lines.hpp"
#include "common/precision.hpp"
#include "common/texts.hpp"

using namespace apps;
using namespace xgrad::pretrained;
using namespace xgrad::retrieval;
using xgrad::Array;

namespace {

struct Options {
  std::string folder, corpus, index;
  std::vector<std::string> queries;
  std::optional<std::string> prompt_name, prompt, document_prompt_name, document_prompt;
  std::size_t top = 10, batch = texts_of_a_batch;
  PrecisionOption precision;
  bool json = false, skip_invalid = false;
};

std::vector<RankedText> ranked(const SearchIndex<float>& index, const std::vector<SearchHit>& hits) {
  std::vector<RankedText> texts;
  for (const auto& [i, score] : hits) texts.push_back({score, index.line(i), index.text(i)});
  return texts;
}

void print(const std::vector<RankedText>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::printf("%zu\t%.6f\t%zu\t", i + 1, texts[i].score, texts[i].line);
    print_line(texts[i].text);
  }
}

SearchIndex<float> index_at(const std::string& path, const Options& options,
                            const SentenceEmbedder<float>& embedder,
                            const std::function<void(const std::string&)>& note = {}) {
  Progress progress("texts");
  return SearchIndex<float>::open(path, options.corpus, embedder,
                                  {.batch_size = options.batch,
                                   .prompt_name = options.document_prompt_name,
                                   .prompt = options.document_prompt,
                                   .skip_invalid = options.skip_invalid,
                                   .note = note,
                                   .progress = [&](std::size_t done, std::size_t all) {
                                     check_interruption("the index was not complete, and is not kept");
                                     progress.update(done, all);
                                   }});
}

/// The index of the corpus, which is not kept where it cannot be written beside the corpus.
SearchIndex<float> index_of(const Options& options, const SentenceEmbedder<float>& embedder) {
  const std::string path = options.index.empty() ? options.corpus + ".index" : options.index;
  check_paths({{"CORPUS", options.corpus, PathUse::input}, {"the index", path, PathUse::output}});
  try {
    return index_at(path, options, embedder);
  } catch (const xgrad::FileError& error) {
    if (!options.index.empty() || !std::string(error.what()).starts_with(path + ": cannot be written")) throw;
    std::fprintf(stderr, "%s; the index is not kept, which --index FILE does elsewhere\n", error.what());
  }
  const TemporaryFolder folder;  // what is mapped stays without its name
  return index_at(folder.path() + "/index", options, embedder, [](const std::string&) {});  // all is told
}

int run(const Options& options) {
  const NotedSignals signals;
  const auto embedder =
      SentenceEmbedder<float>::from_folder(find_model(options.folder), options.precision.load_options());
  embedder.encoder().skip_padding();
  const SearchOptions search{.top_k = options.top, .similarity = embedder.similarity()};
  const EmbedOptions how{.batch_size = options.batch,
                         .prompt_name = options.prompt_name ? options.prompt_name : embedder.query_prompt(),
                         .prompt = options.prompt,
                         .progress = [](std::size_t) { check_interruption(); }};
  const Array<float> none = embedder(std::vector<std::string>(), how);
  semantic_search(none, none, search);  // checks the options before the vectors of the file are made
  SearchIndex<float> index = index_of(options, embedder);
  if (index.size() == 0) std::fprintf(stderr, "%s: has no lines with a text\n", options.corpus.c_str());
  TextSource source(options.queries);
  for (bool is_first = true;;) {
    const std::vector<std::string> queries = without_numbers(source.next());
    if (queries.empty()) break;
    if (!index.is_current()) index = index_of(options, embedder);
    const std::vector<std::vector<SearchHit>> hits = index.search(embedder(queries, how), search);
    for (std::size_t i = 0; i < queries.size(); ++i, is_first = false) {
      const std::vector<RankedText> texts = ranked(index, hits[i]);
      if (options.json) {
        print_line(ranking_json(queries[i], texts));
      } else {
        if (!is_first) std::putchar('\n');
        print(texts);
      }
    }
    flush_output();
  }
  return 0;
}

int run_command(int argc, char** argv) {
  Options options;
  CommandLine app(
      "Prints the lines of a file that are nearest to each query, or to each line of the input: rank, score, "
      "number of the line and text, with tabs between them, and a blank line between two queries. The first "
      "run makes the vectors of the file, later runs read them, until the file or the model changes.");
  app.add_option("DIR", options.folder,
                 "The folder of a sentence encoder, or its name in the hub's cache; its "
                 "config_sentence_transformers.json says whether cosines or dot products are compared")
      ->required()
      ->path(PathUse::input)
      ->found_by(find_model);
  app.add_option("CORPUS", options.corpus, "The file, a text in each line; blank lines are none")
      ->required()
      ->path(PathUse::input);
  app.add_option("QUERY", options.queries, "Queries; without any, the lines of the input");
  app.add_option("--top", options.top, "Lines for each query")
      ->check(in_range<std::size_t>(1, 1'000'000))
      ->capture_default_str();
  app.add_flag(
      "--json", options.json,
      R"(Print an object for each query instead, {"query":"a query","hits":[{"rank":1,"score":0.5,"line":3,"text":"a text"}]})");
  app.add_option("--index", options.index, "File for the vectors; without it, CORPUS.index")
      ->path(PathUse::output);
  Option* const prompt_name =
      app.add_option("--prompt-name", options.prompt_name,
                     "Name of the prompt that goes before a query; without it, query, if the folder has it");
  app.add_option("--prompt", options.prompt, "The prompt itself, instead of one with a name")
      ->excludes(prompt_name);
  Option* const document_prompt_name = app.add_option(
      "--document-prompt-name", options.document_prompt_name,
      "Name of the prompt that goes before a line of the file; without it, the first of document, passage "
      "and corpus that the folder has");
  app.add_option("--document-prompt", options.document_prompt, "That prompt itself")
      ->excludes(document_prompt_name);
  app.add_flag("--skip-invalid", options.skip_invalid,
               "Leave out lines of the file that are not UTF-8, and tell which");
  options.precision.add_to(app);
  app.add_option("--batch", options.batch, "Texts per batch")
      ->check(in_range<std::size_t>(1, 4096))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("search", [&] { return run_command(argc, argv); });
}
