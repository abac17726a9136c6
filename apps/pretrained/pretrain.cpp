// Trains a BERT to predict hidden tokens, on the Brown corpus or a text of your own
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <span>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "../corpora/plain_text.hpp"
#include "../ranks/run_training.hpp"
#include "../training/training_run.hpp"
#include "common/masked_pieces.hpp"
#include "common/recipe.hpp"

using namespace apps;
namespace pretrained = xgrad::pretrained;
namespace tokenizers = xgrad::tokenizers;
using Model = pretrained::MaskedLM<float>;

namespace {

struct PretrainOptions : RunOptions {
  std::string model, text, save;
  std::optional<std::size_t> max_length;
  std::size_t short_length = 16, evaluate_every = 500;
};

/// The most tokens of a piece, in each step: few at first and then twice as many, again and again, since a
/// model learns sooner to look at neighbours where these are a large part of what it sees (Devlin et al.
/// 2019, appendix A.2, begin with shorter pieces, too).
class Lengths {
 public:
  Lengths(std::size_t first, std::size_t last, std::size_t steps) : steps_(steps) {
    for (std::size_t length = first; length < last; length *= 2) lengths_.push_back(length);
    lengths_.push_back(last);
  }

  const std::vector<std::size_t>& all() const { return lengths_; }
  std::size_t last() const { return lengths_.back(); }

  /// The first one for half of the steps, the others for equal parts of the rest.
  std::size_t at(std::size_t step) const {
    const std::size_t half = steps_ / 2, others = lengths_.size() - 1;
    return step < half ? lengths_.front()
                       : lengths_[std::min(others, 1 + (step - half) * others / (steps_ - half))];
  }

 private:
  std::vector<std::size_t> lengths_;
  std::size_t steps_;
};

/// The text in pieces.
struct Pieces {
  std::vector<Piece> training;
  std::map<std::size_t, std::vector<MaskedPiece>> held_out;  // by the most tokens of a piece

  std::vector<std::size_t> lengths() const {
    std::vector<std::size_t> all;
    for (const Piece& piece : training) all.push_back(piece.size());
    return all;
  }
};

/// What a model reaches on hidden tokens.
struct Score {
  double loss;
  std::size_t right, hidden;
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(hidden); }

  xgrad::detail::JsonTree json() const {
    return {{"loss", loss}, {"accuracy", accuracy()}, {"hidden_tokens", hidden}};
  }
};

struct Sums {
  double loss = 0;
  std::size_t right = 0, hidden = 0;
};

void add_batch(const Model& model, const MaskedBatch& batch, Sums& sums) {
  const xgrad::Variable<float> logits = model(batch.input);
  const std::size_t classes = logits.shape(2);
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    const std::int64_t label = batch.labels.data()[i];
    if (label == TokenMask::ignored) continue;
    const std::span<const float> row(logits.value().data() + i * classes, classes);
    const auto best = std::ranges::max_element(row);
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit - *best));
    sums.loss += std::log(sum) + static_cast<double>(*best - row[static_cast<std::size_t>(label)]);
    sums.right += best - row.begin() == label ? 1 : 0;
    ++sums.hidden;
  }
}

/// Ranks share the pieces.
Score score(const Model& model, const std::vector<MaskedPiece>& pieces, std::int64_t pad_id,
            const RunOptions& options) {
  const xgrad::NoGrad no_grad;
  const xgrad::EvalMode eval_mode(model);
  std::size_t right = 0, hidden = 0;
  const double loss = sum_over_parts(options, pieces, [&](std::span<const MaskedPiece> part) {
    Sums sums;
    for (std::size_t begin = 0; begin < part.size(); begin += options.batch) {
      const auto chosen = part.subspan(begin, std::min(options.batch, part.size() - begin));
      add_batch(model, batch_of(chosen, pad_id), sums);
    }
    right += sums.right;
    hidden += sums.hidden;
    return sums.loss;
  });
  const std::vector<std::size_t> counts = sum_of(options.ranks, {right, hidden});
  return {loss / static_cast<double>(counts[1]), counts[0], counts[1]};
}

std::vector<MaskedPiece> masked_parts(std::span<const Piece> pieces, std::size_t max_length,
                                      const TokenMask& mask) {
  std::vector<Piece> parts;
  for (const Piece& piece : pieces) append_parts(piece, max_length, parts);
  std::vector<MaskedPiece> masked;
  masked.reserve(parts.size());
  for (const Piece& part : parts) masked.push_back(mask(part));
  return masked;
}

/// Holds every 20th piece out; its hidden tokens are the same in every run.
Pieces split(std::vector<Piece> all, const Lengths& lengths, const TokenMask& mask) {
  xgrad::Generator generator(0);
  const xgrad::UseGenerator use(generator);
  Pieces pieces;
  std::vector<Piece> held_out;
  for (std::size_t i = 0; i < all.size(); ++i)
    (i % 20 == 0 ? held_out : pieces.training).push_back(std::move(all[i]));
  for (const std::size_t length : lengths.all())
    pieces.held_out[length] = masked_parts(held_out, length, mask);
  if (pieces.training.empty())
    throw std::invalid_argument("the text must be two pieces or more, one of them held out, got " +
                                std::to_string(all.size()));
  return pieces;
}

Lengths lengths_of(const PretrainOptions& options, const Model& model) {
  constexpr std::size_t usual = 128;
  const std::size_t most = *model.config().max_length();
  if (options.max_length.value_or(most) > most)
    throw std::invalid_argument("--max-length must be at most " + std::to_string(most) +
                                ", as the model's, got " + std::to_string(*options.max_length));
  const std::size_t last = options.max_length.value_or(std::min(usual, most));
  return {options.short_length, last, options.steps};
}

void print(const char* when, const Score& score) {
  std::printf("held out, %s: loss %.4f, %.2f %% of %zu hidden tokens right\n", when, score.loss,
              100 * score.accuracy(), score.hidden);
}

/// What is evaluated on the way.
class Evaluations {
 public:
  Evaluations(const Model& model, const Pieces& pieces, std::int64_t pad_id, const RunOptions& options)
      : model_(model), pieces_(pieces), pad_id_(pad_id), options_(options) {}

  /// On pieces of so many tokens.
  Score operator()(std::size_t length) const {
    return score(model_, pieces_.held_out.at(length), pad_id_, options_);
  }

  void show(std::size_t step, std::size_t length) {
    const Score now = (*this)(length);
    all_.push_back(now.json());
    all_.back().update({{"step", step}, {"max_length", length}});
    if (options_.leads())
      std::fprintf(stderr, "step %zu: held-out loss %.4f, accuracy %.2f %%, in pieces of %zu tokens\n", step,
                   now.loss, 100 * now.accuracy(), length);
  }

  const xgrad::detail::JsonTree& all() const { return all_; }

 private:
  const Model& model_;
  const Pieces& pieces_;
  std::int64_t pad_id_;
  const RunOptions& options_;
  xgrad::detail::JsonTree all_ = xgrad::detail::JsonTree::array();
};

void save(const Model& model, const tokenizers::Tokenizer& tokenizer, const std::string& folder) {
  save_with_tokenizer([&](const std::string& other) { save_folder(model, other); }, tokenizer, folder);
}

/// Shows a piece of text in the report, and guesses for what is hidden in it.
void show_in_report(TrainingRun& run, const Model& model, const tokenizers::Tokenizer& tokenizer,
                    const MaskedPiece& piece) {
  const MaskedBatch batch = batch_of({&piece, 1}, tokenizer.pad_id());
  std::vector<std::string> vocabulary;
  for (std::size_t id = 0; id < model.config().vocab_size; ++id)
    vocabulary.push_back(tokenizer.contains(static_cast<std::int64_t>(id))
                             ? tokenizer.token(static_cast<std::int64_t>(id))
                             : "");
  const auto predictions = [=](xgrad::ReportStep& step) {
    const xgrad::Variable<float> probabilities = softmax(model(batch.input));
    for (std::size_t place = 0; place < piece.ids.size(); ++place) {
      if (piece.labels[place] == TokenMask::ignored) continue;
      step.prediction(
          "token " + std::to_string(place),
          xgrad::most_probable(vocabulary, {&probabilities.value()(0, place, 0), vocabulary.size()}),
          tokenizer.token(piece.labels[place]));
    }
  };
  run.show(
      {"a piece of the held-out text", {tokens_of(tokenizer, piece.ids)}},
      [=] { return model.loss(batch.input, batch.labels); }, predictions);
}

int run(PretrainOptions options) {
  MetricsFile metrics(options.metrics);
  options.model = pretrained::find_model(options.model);
  xgrad::manual_seed(options.seed);
  const Model model = Model::from_folder(
      options.model, {.precision = pretrained::Precision::float32, .note = note_of(options)});
  const auto tokenizer = tokenizers::Tokenizer::from_folder(options.model);
  pretrained::check_vocabulary(tokenizer, model.config(), options.model);
  const Lengths lengths = lengths_of(options, model);
  check_save(tokenizer, options.save);
  const std::vector<std::string> texts = texts_of(options.text);
  const TokenMask mask(tokenizer);
  const Pieces pieces = split(pieces_of(tokenizer, texts, lengths.last()), lengths, mask);
  std::printf("%zu pieces to train on, %zu held out, %zu tokens, %zu parameters\n", pieces.training.size(),
              pieces.held_out.at(lengths.last()).size(), tokenizer.size(), model.parameter_count());
  Evaluations evaluations(model, pieces, tokenizer.pad_id(), options);
  const Score before = evaluations(lengths.last());
  print("before", before);
  std::fflush(stdout);

  model.train();
  model.encoder().skip_padding();
  TrainingRun training_run(options, model, hugging_face_recipe(options, model.trainable_parameters()),
                           {{"DIR", options.model},
                            {"--text", options.text},
                            {"--max-length", std::to_string(lengths.last())},
                            {"--short-length", std::to_string(lengths.all().front())}});
  xgrad::BatchSampler batches(pieces.lengths(), {.batch_size = options.batch});
  training_run.keep("batches", batches);
  if (options.ranks != nullptr) training_run.compare_words(texts);
  training_run.watch(options.evaluate_every,
                     [&](std::size_t step) { evaluations.show(step, lengths.at(step - 1)); });
  const auto loss = [&](std::span<const std::size_t> chosen) {
    std::vector<Piece> whole;
    for (const std::size_t i : chosen) whole.push_back(pieces.training[i]);
    const MaskedBatch batch =
        batch_of(masked_parts(whole, lengths.at(training_run.step()), mask), tokenizer.pad_id());
    return xgrad::WeightedLoss<float>{.sum = model.loss(batch.input, batch.labels, xgrad::Reduction::sum),
                                      .weight = static_cast<double>(batch.hidden),
                                      .tokens = batch.tokens};
  };
  show_in_report(training_run, model, tokenizer, pieces.held_out.at(lengths.last()).front());
  training_run.save_to(options.save, [&](const std::string& folder) { save(model, tokenizer, folder); });
  const xgrad::TrainingLog log = training_run.fit([&] { return training_run.update(batches.next(), loss); });
  training_run.save(log);

  const Score after = evaluations(lengths.last());
  std::printf("%s after %zu steps, %.0f s\n", outcome(log), log.steps, log.seconds);
  print("after", after);
  xgrad::detail::JsonTree report = training_run.metrics(log);
  report.update({{"before", before.json()}, {"after", after.json()}, {"evaluations", evaluations.all()}});
  metrics.write(report);
  return training_run.exit_code();
}

int run_command(int argc, char** argv) {
  PretrainOptions options;
  static_cast<RunOptions&>(options) = {.steps = 8000, .batch = 32, .lr = 1e-3};
  CommandLine app(
      "Trains a BERT to predict hidden tokens, as it was pretrained, on the Brown corpus or on a text of "
      "your own.");
  app.add_option("model", options.model,
                 "The folder of the model, such as tiny_bert's, or its name in the hub's cache")
      ->required()
      ->path(PathUse::input)
      ->found_by(pretrained::find_model);
  app.add_option("--text", options.text,
                 "Train on this file of texts separated by blank lines instead of the Brown corpus")
      ->path(PathUse::input);
  app.add_option("--save", options.save, "Save the model and its tokenizer to this folder")
      ->required()
      ->path(PathUse::output);
  app.add_option("--max-length", options.max_length,
                 "Maximum number of tokens of a piece of text; by default 128, or the maximum of the model "
                 "if that is less")
      ->check(in_range<std::size_t>(3, 4096));
  app.add_option("--short-length", options.short_length,
                 "Maximum number of tokens of a piece in the first half of the steps; then it doubles until "
                 "it is --max-length. For a model that is already pretrained, use the value of --max-length")
      ->check(in_range<std::size_t>(3, 4096))
      ->capture_default_str();
  app.add_option("--evaluate-every", options.evaluate_every, "Steps between evaluations")
      ->check(in_range<std::size_t>(1, 100000000))
      ->capture_default_str();
  add_options(app, options);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_training("pretrain", options, run);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("pretrain", [&] { return run_command(argc, argv); });
}
