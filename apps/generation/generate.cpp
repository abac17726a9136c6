// Continues texts with a language model, and prints them as they are written
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/command_line.hpp"
#include "../common/interruption.hpp"
#include "../common/program.hpp"
#include "../pretrained/common/texts.hpp"
#include "common/language_model.hpp"

using namespace apps;
using xgrad::generation::GenerationOptions;

namespace {

/// Options of the fields' names.
void add_options(CommandLine& app, GenerationOptions& options) {
  app.add_option("--max-new-tokens", options.max_new_tokens,
                 "Tokens to write behind the text, unless it ends before; by default 100")
      ->check(in_range<std::size_t>(1, 100000000));
  app.add_option("--stop-string", options.stop_strings,
                 "End the text behind this; more than one may be given");
  app.add_option("--repetition-penalty", options.repetition_penalty,
                 "Above 1: tokens that the text has are less probable")
      ->check(in_range<double>(1e-6, 1e6))
      ->capture_default_str();
  app.add_option("--no-repeat-ngram-size", options.no_repeat_ngram_size,
                 "So many tokens in a row occur once only; 0: any number of times")
      ->check(in_range<std::size_t>(0, 100000000))
      ->capture_default_str();
  app.add_flag("--do-sample", options.do_sample, "Draw each token, instead of the most probable one");
  app.add_option("--temperature", options.temperature,
                 "What logits are divided by before a token is drawn; less is more probable text")
      ->check(in_range<double>(1e-6, 1e6))
      ->capture_default_str();
  app.add_option("--top-k", options.top_k, "Draw from so many most probable tokens only; 0: from all")
      ->check(in_range<std::size_t>(0, 100000000))
      ->capture_default_str();
  app.add_option("--top-p", options.top_p,
                 "Draw from the most probable tokens that make this probability only")
      ->check(in_range<double>(0, 1))
      ->capture_default_str();
  app.add_option("--min-p", options.min_p,
                 "Draw from tokens with this share of the highest probability only; by default from all")
      ->check(in_range<double>(0, 1));
  app.add_option("--typical-p", options.typical_p,
                 "Draw from the tokens nearest to the entropy that make this probability only")
      ->check(in_range<double>(0, 1))
      ->capture_default_str();
}

/// Ends the line of a text, also if the program is interrupted.
struct LineEnd {
  LineEnd() = default;
  LineEnd(const LineEnd&) = delete;
  LineEnd& operator=(const LineEnd&) = delete;
  ~LineEnd() { std::cout << '\n'; }
};

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  std::vector<std::string> texts;
  std::uint64_t seed = 0;
  GenerationOptions options{.max_new_tokens = 100};
  CommandLine app(
      "Continues texts, or each line of the input, with a model that train_gpt saved, and prints what it "
      "writes as soon as it is written.");
  app.add_option("MODEL", path, "The file of the model")->required()->path(PathUse::input);
  app.add_option("TEXT", texts, "Texts to continue; without any, the lines of the input");
  add_options(app, options);
  app.add_option("--seed", seed, "Seed of what is drawn")
      ->check(in_range<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_program("generate", [&] {
    const auto model = LanguageModel::load(path);
    options.check();
    xgrad::manual_seed(seed);
    const NotedSignals signals;
    for_each_text(texts, 1, [&](std::span<const std::string> some) {
      for (const std::string& text : some) {
        const std::vector<std::int64_t> ids = model->ids(text);
        std::cout << text;
        flush_output();
        const LineEnd line_end;
        const auto show = [](std::string_view more) {
          std::cout << more;
          flush_output();
          check_interruption();
          return true;
        };
        model->write(ids, options, show);
      }
    });
    return 0;
  });
}
