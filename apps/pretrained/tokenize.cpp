// Splits texts into the tokens that a pretrained model knows
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/pretrained/find_model.hpp>
#include <xgrad/tokenizers.hpp>

#include "../common/columns.hpp"
#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "common/texts.hpp"

using namespace apps;
using xgrad::tokenizers::EncodeOptions, xgrad::tokenizers::Encoding, xgrad::tokenizers::Tokenizer;

namespace {

struct Options {
  std::string folder;
  std::vector<std::string> texts;
  std::string second;
  std::optional<std::size_t> max_length;
  bool ids = false, table = false;
};

void print_table(const Tokenizer& tokenizer, const Encoding& encoding) {
  std::size_t widest = 5;
  for (const std::int64_t id : encoding.ids) widest = std::max(widest, width_of(tokenizer.token(id)));
  std::printf("%s %8s %10s %6s %4s\n", on_the_left("token", widest).c_str(), "id", "characters", "word",
              "type");
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const auto [begin, end] = encoding.offsets[i];
    const std::string place =
        encoding.special[i] != 0 ? "" : std::to_string(begin) + "-" + std::to_string(end);
    const std::string word = encoding.words[i] ? std::to_string(*encoding.words[i]) : "";
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, " %8lld %10s %6s %4lld", static_cast<long long>(encoding.ids[i]),
                  place.c_str(), word.c_str(), static_cast<long long>(encoding.type_ids[i]));
    print_line(on_the_left(tokenizer.token(encoding.ids[i]), widest) + numbers);
  }
}

void print_tokens(const Tokenizer& tokenizer, const Encoding& encoding, bool ids) {
  std::string line;
  for (const std::int64_t id : encoding.ids) {
    if (!line.empty()) line += ' ';
    line += ids ? std::to_string(id) : tokenizer.token(id);
  }
  print_line(line);
}

int run(const Options& options) {
  const Tokenizer tokenizer = Tokenizer::from_folder(xgrad::pretrained::find_model(options.folder));
  const EncodeOptions how{.max_length = options.max_length};
  for_each_text(options.texts, [&](const std::string& text) {
    const Encoding encoding =
        options.second.empty() ? tokenizer.encode(text, how) : tokenizer.encode(text, options.second, how);
    if (options.table) {
      print_table(tokenizer, encoding);
    } else {
      print_tokens(tokenizer, encoding, options.ids);
    }
  });
  return 0;
}

int run_command(int argc, char** argv) {
  Options options;
  CommandLine app(
      "Prints the tokens of each text, or of each line of the input, as a pretrained model's tokenizer makes "
      "them.");
  app.add_option("DIR", options.folder, "The model's folder, or its name in the hub's cache")
      ->required()
      ->path(PathUse::input);
  app.add_option("TEXT", options.texts, "Texts; without any, the lines of the input");
  app.add_option("--second", options.second, "A second text, to encode each text as a pair with it");
  app.add_option("--max-length", options.max_length,
                 "Maximum number of tokens of a text, including special tokens")
      ->check(in_range<std::size_t>(1, 1'000'000));
  auto* ids = app.add_flag("--ids", options.ids, "Print the numbers of the tokens instead");
  app.add_flag("--table", options.table, "A line for each token, with its number, place, word and type")
      ->excludes(ids);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("tokenize", [&] { return run_command(argc, argv); });
}
