// Continues texts with a language model, and prints them as they are written
#include <iostream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/command_line.hpp"
#include "../common/interruption.hpp"
#include "../common/program.hpp"
#include "../pretrained/common/precision.hpp"
#include "../pretrained/common/texts.hpp"
#include "common/language_model.hpp"

using namespace apps;
using xgrad::generation::GenerationOptions;

namespace {

/// What the command line says of GenerationOptions, by their names.
struct Choices {
  std::optional<std::size_t> max_new_tokens, top_k, no_repeat_ngram_size;
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty;
  std::vector<std::string> stop_strings;
  bool do_sample = false, greedy = false;

  void add_to(CommandLine& app) {
    app.add_option(
           "--max-new-tokens", max_new_tokens,
           "Tokens to write behind the prompt, unless the text ends before; by default as the model's "
           "folder says, or 100")
        ->check(in_range<std::size_t>(1, 100000000));
    Option* const sample =
        app.add_flag("--do-sample", do_sample, "Draw each token, instead of the most probable one");
    app.add_flag("--greedy", greedy, "Take the most probable token, whatever the model's folder says")
        ->excludes(sample);
    app.add_option("--temperature", temperature,
                   "What logits are divided by before a token is drawn; less is more probable text")
        ->check(in_range<double>(1e-6, 1e6));
    app.add_option("--top-k", top_k, "Draw from so many most probable tokens only; 0: from all")
        ->check(in_range<std::size_t>(0, 100000000));
    app.add_option("--top-p", top_p, "Draw from the most probable tokens that make this probability only")
        ->check(in_range<double>(0, 1));
    app.add_option("--min-p", min_p, "Draw from tokens with this share of the highest probability only")
        ->check(in_range<double>(0, 1));
    app.add_option("--typical-p", typical_p,
                   "Draw from the tokens nearest to the entropy that make this probability only")
        ->check(in_range<double>(1e-6, 1));
    app.add_option("--repetition-penalty", repetition_penalty,
                   "Above 1: tokens that the text has are less probable")
        ->check(in_range<double>(1e-6, 1e6));
    app.add_option("--no-repeat-ngram-size", no_repeat_ngram_size,
                   "So many tokens in a row occur once only; 0: any number of times")
        ->check(in_range<std::size_t>(0, 100000000));
    app.add_option("--stop-string", stop_strings, "End the text after this; more than one may be given");
  }

  /// The model's options with those that were given.
  GenerationOptions with(GenerationOptions options) const {
    const auto set = [](const auto& given, auto& option) {
      if (given) option = *given;
    };
    options.num_return_sequences = 1;
    if (greedy) options.num_beams = 1;
    if (!options.max_length && !options.max_new_tokens) options.max_new_tokens = 100;
    set(max_new_tokens, options.max_new_tokens);
    set(temperature, options.temperature);
    set(top_k, options.top_k);
    set(top_p, options.top_p);
    set(min_p, options.min_p);
    set(typical_p, options.typical_p);
    set(repetition_penalty, options.repetition_penalty);
    set(no_repeat_ngram_size, options.no_repeat_ngram_size);
    if (!stop_strings.empty()) options.stop_strings = stop_strings;
    options.do_sample = (options.do_sample || do_sample) && !greedy;
    options.check();
    return options;
  }

  /// Of the options that were given, those that matter where tokens are drawn only.
  std::string of_sampling(bool seed) const {
    std::string names;
    for (const auto& [given, name] : {std::pair{temperature.has_value(), "--temperature"},
                                      {top_k.has_value(), "--top-k"},
                                      {top_p.has_value(), "--top-p"},
                                      {min_p.has_value(), "--min-p"},
                                      {typical_p.has_value(), "--typical-p"},
                                      {seed, "--seed"}}) {
      if (given) names += (names.empty() ? "" : ", ") + std::string(name);
    }
    return names;
  }
};

/// Ends the line of a text, also if the program is interrupted.
struct LineEnd {
  LineEnd() = default;
  LineEnd(const LineEnd&) = delete;
  LineEnd& operator=(const LineEnd&) = delete;
  ~LineEnd() { std::cout << '\n'; }
};

int run_command(int argc, char** argv) {
  std::string path;
  std::vector<std::string> texts;
  std::optional<std::uint64_t> seed;
  bool slide = false, bfloat16 = false;
  Choices choices;
  PrecisionOption precision;
  CommandLine app(
      "Continues texts, or each line of the input, with a pretrained decoder or a model that train_gpt "
      "saved, and prints what it writes as soon as it is written.");
  app.add_option("MODEL", path,
                 "The model's folder, its name in the hub's cache, a GGUF file, or a model or a checkpoint "
                 "of train_gpt")
      ->required()
      ->path(PathUse::input);
  app.add_option("TEXT", texts, "Texts to continue; without any, the lines of the input");
  choices.add_to(app);
  app.add_option("--seed", seed, "Seed of what is drawn; by default 0")
      ->check(in_range<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()));
  app.add_flag(
      "--slide", slide,
      "Where a text becomes longer than the model sees, forget its first half, as models of train_gpt always "
      "do; else that is an error");
  app.add_flag("--bfloat16-weights", bfloat16,
               "Keep the matrices of a folder as bfloat16 numbers, in half of the memory");
  precision.add_to(app);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  const auto dtype = bfloat16 ? std::optional(xgrad::DType::BF16) : std::nullopt;
  const auto model = LanguageModel::load(path, precision.load_options({.dtype = dtype}));
  const GenerationOptions options = choices.with(model->options());
  if (options.num_beams != 1)
    throw std::runtime_error(xgrad::pretrained::find_model(path) +
                             "/generation_config.json: num_beams must be 1, as a text is shown while "
                             "it is written, got " +
                             std::to_string(options.num_beams) + "; --greedy takes 1");
  const std::string unused = options.do_sample ? "" : choices.of_sampling(seed.has_value());
  if (!unused.empty())
    std::cerr << unused << ": no effect, as the most probable token is taken; --do-sample draws tokens\n";
  xgrad::manual_seed(seed.value_or(0));
  const NotedSignals signals;
  const auto show = [](std::string_view more) {
    std::cout << more;
    flush_output();
    check_interruption();
  };
  for_each_text(texts, [&](const std::string& text) {
    const std::vector<std::int64_t> ids = model->ids(text);
    if (ids.empty()) throw std::invalid_argument("a text must have tokens, got none");
    if (const auto max_length = model->trained_length(); max_length && ids.size() > *max_length)
      std::cerr << "a text has " << ids.size() << " tokens, more than the " << *max_length
                << " of the model's training (max_position_embeddings): what follows may make no sense\n";
    std::cout << text;
    flush_output();
    const LineEnd line_end;
    model->write(ids, options, slide, show);
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("generate", [&] { return run_command(argc, argv); });
}
