// Trains a small GPT on a text, and prints what it writes as it learns
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

#include "common/command_line.hpp"
#include "common/program.hpp"
#include "corpora/plain_text.hpp"
#include "corpora/utf8.hpp"
#include "models/text_model.hpp"
#include "ranks/run_training.hpp"
#include "training/training_run.hpp"
#include "training/warmup_and_cosine.hpp"

using namespace apps;
using xgrad::Ids, xgrad::Variable;

namespace {

struct GptOptions : TrainingOptions {
  std::string text, save, prompt = "\n";
  std::size_t context = 64, patience = 10, evaluate_every = 250, validation_windows = 1000;
  std::size_t sample_length = 200;
  std::optional<std::size_t> warmup, vocabulary;
  std::optional<double> min_lr;
  double dropout = 0, weight_decay = 0.1, beta2 = 0.99, clip = 1, temperature = 0.8;
};

/// The text in two parts: the last tenth of its characters is for the validation.
struct TextSplit {
  std::string training, validation;
};

TextSplit split(const std::string& text) {
  const auto begins_character = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && ++seen > count - (count + 9) / 10) break;
  }
  return {text.substr(0, end), text.substr(end)};
}

/// The tokens of a part of the text, and windows of them.
class TokenStream {
 public:
  /// Throws std::invalid_argument unless there are more than `context` tokens.
  TokenStream(std::vector<std::int64_t> tokens, std::size_t context, const char* part)
      : tokens_(std::move(tokens)), context_(context) {
    if (tokens_.size() <= context_)
      throw std::invalid_argument("the part of the text to " + std::string(part) +
                                  " must have more tokens than the context, " + std::to_string(context_) +
                                  ", got " + std::to_string(tokens_.size()));
  }

  std::size_t size() const { return tokens_.size(); }

  /// The number of windows of context + 1 tokens.
  std::size_t windows() const { return tokens_.size() - context_; }

  /// The windows that begin there.
  Ids windows_at(std::span<const std::size_t> starts) const {
    Ids windows = Ids::from_shape({starts.size(), context_ + 1});
    for (std::size_t row = 0; row < starts.size(); ++row) {
      const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(starts[row]);
      std::copy_n(first, context_ + 1, &windows(row, 0));
    }
    return windows;
  }

  /// The first tokens.
  std::vector<std::int64_t> first(std::size_t count) const {
    return {tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(std::min(count, size()))};
  }

 private:
  std::vector<std::int64_t> tokens_;
  std::size_t context_;
};

/// The mean loss of a token of the validation text, in windows that are evenly spaced; ranks share them.
double validation_loss(const TextModel& model, const TokenStream& text, const GptOptions& options) {
  const xgrad::NoGrad no_grad;
  const xgrad::EvalMode eval_mode(model.model());
  std::vector<std::size_t> starts(std::min(options.validation_windows, text.windows()));
  for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = i * text.windows() / starts.size();
  const double sum = sum_over_parts(options, starts, [&](std::span<const std::size_t> part) {
    double losses = 0;
    for (std::size_t begin = 0; begin < part.size(); begin += options.batch) {
      const auto batch = part.subspan(begin, std::min(options.batch, part.size() - begin));
      losses += static_cast<double>(model.loss(text.windows_at(batch)).item());
    }
    return losses;
  });
  return sum / static_cast<double>(starts.size() * options.context);
}

/// Prints what the model writes after the prompt, with a mark before each line. The training draws the same
/// random numbers with and without it.
void print_sample(const TextModel& model, const GptOptions& options, std::uint64_t seed) {
  if (options.sample_length == 0 || !options.leads()) return;
  xgrad::Generator generator(seed);
  const xgrad::UseGenerator use(generator);
  const xgrad::EvalMode eval_mode(model.model());
  const std::vector<std::vector<std::int64_t>> written =
      generate(model.model(), {model.tokens().ids(options.prompt)},
               {.max_new_tokens = options.sample_length,
                .do_sample = true,
                .temperature = options.temperature,
                .top_k = 0},
               {}, xgrad::generation::ContextEnd::slide);
  std::string text = options.prompt + model.tokens().text(written.front());
  text.erase(0, text.find_first_not_of('\n'));
  std::string shown;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    shown += "  | " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  std::printf("%s\n", shown.c_str());
}

/// What is evaluated on the way: printed, with a sample.
class Evaluations {
 public:
  Evaluations(const TextModel& model, const GptOptions& options) : model_(model), options_(options) {}

  void show(std::size_t step, double loss) {
    all_.push_back({{"step", step}, {"validation_loss", loss}});
    std::printf("step %zu: validation loss %.4f\n", step, loss);
    print_sample(model_, options_, options_.seed + step);
    flush_output();
  }

  const xgrad::detail::JsonTree& all() const { return all_; }

 private:
  const TextModel& model_;
  const GptOptions& options_;
  xgrad::detail::JsonTree all_ = xgrad::detail::JsonTree::array();
};

/// Shows the first tokens of the validation text in the report, and what the model expects behind each.
void show_in_report(TrainingRun& run, const TextModel& model, const TokenStream& text,
                    const GptOptions& options) {
  const std::vector<std::int64_t> ids = text.first(std::min<std::size_t>(options.context, 24) + 1);
  const std::vector<std::string> labels = model.tokens().labels();
  std::vector<std::string> tokens;
  for (const std::int64_t id : ids) tokens.push_back(labels[static_cast<std::size_t>(id)]);
  const std::string truth = tokens.back();
  tokens.pop_back();
  const auto predictions = [=](xgrad::ReportStep& step) {
    const Ids input = xgrad::pad_sequence({{ids.begin(), ids.end() - 1}});
    const Variable<float> probabilities = softmax(model.model().token_logits(input));
    std::string before;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      before += tokens[i];
      step.prediction(before + " ...",
                      xgrad::most_probable(labels, {&probabilities.value()(0, i, 0), labels.size()}),
                      i + 1 < tokens.size() ? tokens[i + 1] : truth);
    }
  };
  const Ids window = xgrad::pad_sequence({ids});
  const auto loss = [=] { return model.loss(window) / static_cast<float>(tokens.size()); };
  run.show({"the validation text", {tokens}}, loss, predictions);
}

TrainingRecipe recipe_of(const GptOptions& options, const xgrad::Module<float>& model, std::size_t warmup,
                         double min_lr) {
  const xgrad::AdamWOptions decaying{
      .lr = options.lr, .betas = {0.9, options.beta2}, .weight_decay = options.weight_decay};
  std::vector<xgrad::ParameterGroup<float, xgrad::AdamWOptions>> groups{{{}, decaying}, {{}, decaying}};
  groups[1].options.weight_decay = 0;  // biases and norms
  for (const Variable<float>& parameter : model.parameters())
    groups[parameter.dimension() > 1 ? 0 : 1].parameters.push_back(parameter);
  return {.groups = groups,
          .schedule =
              [=, steps = options.steps](xgrad::Optimizer<float>& optimizer) {
                return warmup_and_cosine(optimizer, steps, warmup, min_lr);
              },
          .clip = options.clip};
}

/// Throws for characters that the tokens lack, before the training.
void check_prompt(const TextTokens& tokens, const std::string& prompt) {
  try {
    static_cast<void>(tokens.ids(prompt));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--prompt: ") + error.what());
  }
}

int run(const GptOptions& options) {
  if (options.prompt.empty()) throw std::invalid_argument("--prompt must have a character, got none");
  if (!decode_utf8(options.prompt))
    throw std::invalid_argument("--prompt must be valid UTF-8, got " + printable(options.prompt));
  const std::size_t warmup = options.warmup.value_or(options.steps / 20);
  if (warmup > options.steps)
    throw std::invalid_argument("--warmup must be at most --steps, " + std::to_string(options.steps) +
                                ", got " + std::to_string(warmup));
  const double min_lr = options.min_lr.value_or(options.lr / 10);
  if (min_lr > options.lr)
    throw std::invalid_argument("--min-lr must be at most --lr, " + xgrad::detail::number_text(options.lr) +
                                ", got " + xgrad::detail::number_text(min_lr));
  MetricsFile metrics(options.metrics);
  check_writable(options.save);
  const std::string text = whole_text_of(options.text);
  const auto [training_text, validation_text] = split(text);
  TextTokens tokens = options.vocabulary ? TextTokens::of_byte_pairs(training_text, *options.vocabulary)
                                         : TextTokens::of_characters(text);
  if (options.leads() && tokens.size() < options.vocabulary.value_or(0))
    std::fprintf(stderr, "the text has only %zu of the %zu tokens of --vocabulary\n", tokens.size(),
                 *options.vocabulary);
  check_prompt(tokens, options.prompt);
  const TokenStream training(tokens.ids(training_text), options.context, "train on"),
      validation(tokens.ids(validation_text), options.context, "validate");

  xgrad::manual_seed(options.seed);
  const TextModel model(std::move(tokens), options.context,
                        {.d_model = options.d_model,
                         .heads = options.heads,
                         .d_ff = options.d_ff,
                         .layers = options.layers,
                         .dropout = options.dropout});
  std::printf("%zu %s to train on, %zu to validate, %zu different ones, %zu parameters\n\n", training.size(),
              model.tokens().name(), validation.size(), model.tokens().size(),
              model.model().parameter_count());
  flush_output();

  TrainingRun training_run(options, model.model(), recipe_of(options, model.model(), warmup, min_lr),
                           {{"--text", options.text},
                            {"--vocabulary", std::to_string(options.vocabulary.value_or(0))},
                            {"--context", std::to_string(options.context)},
                            {"--warmup", std::to_string(warmup)},
                            {"--min-lr", xgrad::detail::number_text(min_lr)},
                            {"--dropout", xgrad::detail::number_text(options.dropout)},
                            {"--weight-decay", xgrad::detail::number_text(options.weight_decay)},
                            {"--beta2", xgrad::detail::number_text(options.beta2)},
                            {"--clip", xgrad::detail::number_text(options.clip)},
                            {"the checksum of the text", std::to_string(checksum_of({&text, 1}, 0))}});
  training_run.describe(model.metadata());
  Evaluations evaluations(model, options);
  training_run.evaluate(
      options.evaluate_every, options.patience, [&] { return -validation_loss(model, validation, options); },
      [&](std::size_t step, double score, bool is_best) {
        evaluations.show(step, -score);
        if (is_best) training_run.save_so_far();
      });
  const auto loss = [&](std::span<const std::size_t> starts) {
    const std::size_t predicted = starts.size() * options.context;
    return xgrad::WeightedLoss<float>{.sum = model.loss(training.windows_at(starts)),
                                      .weight = static_cast<double>(predicted),
                                      .tokens = predicted};
  };
  show_in_report(training_run, model, validation, options);
  training_run.save_to(
      options.save, [&](const std::string& path) { model.save(path); }, true);
  const xgrad::TrainingLog log = training_run.fit([&] {
    const Ids starts = xgrad::randint(0, static_cast<std::int64_t>(training.windows()), {options.batch});
    return training_run.update({starts.begin(), starts.end()}, loss);
  });
  training_run.save(log);

  const double reached = validation_loss(model, validation, options);
  std::printf("%s after %zu steps, %.0f s; validation loss %.4f\n", outcome(log), log.steps, log.seconds,
              reached);
  print_sample(model, options, options.seed);
  xgrad::detail::JsonTree report = training_run.metrics(log);
  report.update({{"validation_loss", reached}, {"evaluations", evaluations.all()}});
  metrics.write(report);
  return training_run.exit_code();
}

int run_command(int argc, char** argv) {
  GptOptions options;
  static_cast<TrainingOptions&>(options) = {{.steps = 2000, .batch = 12, .lr = 1e-3},
                                            {.d_model = 128, .heads = 4, .d_ff = 512, .layers = 4}};
  CommandLine app(
      "Trains a small GPT to write like a text, character by character or token by token: the Brown corpus, "
      "or "
      "a text of your own. The defaults are nanoGPT's for a CPU.");
  add_options(app, options);
  app.add_option(
         "--text", options.text,
         "Train on this file in UTF-8 instead, plain or compressed by gzip; its last tenth is for the "
         "validation")
      ->path(PathUse::input);
  app.add_option("--vocabulary", options.vocabulary,
                 "Learn so many tokens of byte pair encoding from the text, instead of characters")
      ->check(in_range<std::size_t>(257, 1000000));
  app.add_option("--context", options.context, "Tokens that the model sees")
      ->check(in_range<std::size_t>(2, TextModel::longest_context))
      ->capture_default_str();
  app.add_option("--dropout", options.dropout, "Dropout of the layers")
      ->check(in_range<double>(0, 0.9))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup,
                 "Steps in which the learning rate rises; by default a twentieth of all")
      ->check(in_range<std::size_t>(0, 100000000));
  app.add_option("--min-lr", options.min_lr, "Learning rate at the end; by default a tenth of --lr")
      ->check(in_range<double>(0, 10));
  app.add_option("--weight-decay", options.weight_decay, "AdamW's decay of matrices")
      ->check(in_range<double>(0, 10))
      ->capture_default_str();
  app.add_option("--beta2", options.beta2, "AdamW's decay of squared gradients")
      ->check(in_range<double>(0, 0.99999))
      ->capture_default_str();
  app.add_option("--clip", options.clip, "Largest norm of all gradients")
      ->check(in_range<double>(1e-6, 1e6))
      ->capture_default_str();
  app.add_option("--evaluate-every", options.evaluate_every,
                 "Steps between evaluations, which print a sample")
      ->check(in_range<std::size_t>(1, 100000000))
      ->capture_default_str();
  app.add_option("--validation-windows", options.validation_windows,
                 "Windows of the validation text that are evaluated")
      ->check(in_range<std::size_t>(1, 100000000))
      ->capture_default_str();
  app.add_option("--patience", options.patience, "Evaluations without progress before it stops")
      ->check(in_range<std::size_t>(1, 1000000))
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "What samples begin with; by default a line break");
  app.add_option("--sample-length", options.sample_length,
                 "Tokens of a sample after the prompt; 0: no samples")
      ->check(in_range<std::size_t>(0, 1000000))
      ->capture_default_str();
  app.add_option("--temperature", options.temperature,
                 "What the logits of samples are divided by; less is more probable text")
      ->check(in_range<double>(0.01, 100))
      ->capture_default_str();
  app.add_option("--save", options.save, "Save the best model so far to this file")->path(PathUse::output);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_training("train_gpt", options, run);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("train_gpt", [&] { return run_command(argc, argv); });
}
