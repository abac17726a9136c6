// Trains the toy encoder to count the syllables of English words from their spelling
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <span>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/xgrad.hpp>

#include "common/columns.hpp"
#include "common/command_line.hpp"
#include "common/program.hpp"
#include "corpora/utf8.hpp"
#include "models/word_classifier.hpp"
#include "ranks/run_training.hpp"
#include "training/heat_map.hpp"
#include "training/training_run.hpp"

using namespace apps;
using xgrad::Ids, xgrad::Variable;

namespace {

struct Example {
  std::vector<std::int64_t> ids;
  std::int64_t label;
};

std::vector<Example> encode(const Alphabet& alphabet, const std::vector<std::string>& classes,
                            const std::vector<LabelledWord>& words) {
  std::vector<Example> examples;
  examples.reserve(words.size());
  for (const LabelledWord& word : words) {
    const auto label = std::find(classes.begin(), classes.end(), word.label) - classes.begin();
    examples.push_back({alphabet.encode(word.word), label});
  }
  return examples;
}

/// Words padded to the longest of them.
struct Batch {
  Ids ids, labels;
};

Batch make_batch(std::span<const Example> examples, std::span<const std::size_t> chosen) {
  std::vector<std::vector<std::int64_t>> words;
  Ids labels = Ids::from_shape({chosen.size()});
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    words.push_back(examples[chosen[row]].ids);
    labels(row) = examples[chosen[row]].label;
  }
  return {xgrad::pad_sequence(words, Alphabet::pad), labels};
}

std::vector<Example> chosen(const std::vector<Example>& examples, const std::vector<std::size_t>& indices) {
  std::vector<Example> result;
  result.reserve(indices.size());
  for (const std::size_t i : indices) result.push_back(examples[i]);
  return result;
}

std::vector<std::size_t> lengths(std::span<const Example> examples) {
  std::vector<std::size_t> result;
  result.reserve(examples.size());
  for (const Example& example : examples) result.push_back(example.ids.size());
  return result;
}

using Model = WordClassifier::Model;

/// The share of right answers.
double accuracy(const Model& model, const std::vector<Example>& all, const TrainingOptions& options) {
  const xgrad::NoGrad no_grad;
  const xgrad::EvalMode eval_mode(model);
  std::size_t right = 0;
  for_each_part(options, all, [&](std::span<const Example> examples) {
    xgrad::BatchSampler batches(lengths(examples), {.batch_size = 256, .shuffle = false});
    for (std::size_t i = 0; i < batches.batches_per_epoch(); ++i) {
      const Batch batch = make_batch(examples, batches.next());
      const Variable<float> logits = model.class_logits(batch.ids);
      for (std::size_t row = 0; row < batch.labels.size(); ++row) {
        const float* scores = &logits.value()(row, 0);
        right += std::max_element(scores, scores + logits.shape(1)) - scores == batch.labels(row) ? 1 : 0;
      }
    }
  });
  return static_cast<double>(sum_of(options.ranks, {right})[0]) / static_cast<double>(all.size());
}

/// The attention of the class token in "compute", whose e is silent, and in "recipe", whose e is a syllable.
void show_silent_e(const WordClassifier& classifier) {
  const xgrad::NoGrad guard;
  const Model& model = classifier.model();
  for (const std::string word : {"compute", "recipe"}) {
    std::vector<std::string> letters{"[class]"};
    for (const char letter : word) letters.emplace_back(1, letter);
    std::printf("attention from the class token over \"%s\":\n", word.c_str());
    print_attention_from(std::cout, model.with_weights(classifier.ids(word)).weights, 0, letters);
  }
  const auto on_final_e = [&](const std::string& word, std::size_t query) {
    std::vector<double> result;
    for (const Variable<float>& layer : model.with_weights(classifier.ids(word)).weights) {
      for (std::size_t head = 0; head < layer.shape(1); ++head) {
        result.push_back(static_cast<double>(layer.value()(0, head, query, word.size())));
      }
    }
    return result;
  };
  const std::vector<double> silent = on_final_e("compute", 0), sounded = on_final_e("recipe", 0);
  std::size_t best = 0;
  for (std::size_t i = 0; i < silent.size(); ++i) {
    if (std::abs(silent[i] - sounded[i]) > std::abs(silent[best] - sounded[best])) best = i;
  }
  const std::size_t heads = silent.size() / model.config().encoder.layers;
  std::printf(
      "layer %zu head %zu tells them apart: weight on the silent e of \"compute\" %.2f, "
      "on the sounded one of \"recipe\" %.2f\n\n",
      best / heads, best % heads, silent[best], sounded[best]);
}

/// Shows a word in the report.
void show_in_report(TrainingRun& run, const WordClassifier& classifier, const LabelledWord& word) {
  const Model& model = classifier.model();
  const std::vector<std::string>& classes = classifier.classes();
  const Ids ids = classifier.ids(word.word), label{std::ranges::find(classes, word.label) - classes.begin()};
  std::vector<std::string> tokens{"[class]"};
  for (std::string_view rest = word.word; !rest.empty(); rest.remove_prefix(tokens.back().size()))
    tokens.emplace_back(first_characters(rest, 1));
  const auto predictions = [=](xgrad::ReportStep& step) {
    const Variable<float> probabilities = softmax(model.class_logits(ids));
    step.prediction(word.word, xgrad::most_probable(classes, {probabilities.value().data(), classes.size()}),
                    word.label);
  };
  run.show(
      {word.word, {tokens}}, [=] { return cross_entropy(model.class_logits(ids), label); }, predictions);
}

struct SyllableOptions : TrainingOptions {
  std::string data, save;
  std::size_t patience = 10;
  std::vector<std::string> words;
};

int run(const SyllableOptions& options) {
  for (const std::string& word : options.words)
    characters(word);  // throws for what is not UTF-8, before the training
  MetricsFile metrics(options.metrics);
  check_writable(options.save);
  const bool english = options.data.empty();
  const std::vector<LabelledWord> words = read_word_labels(english ? syllables_file() : options.data);
  const std::vector<std::string> classes = classes_of(words);
  const WordSplit split = split_words(words);
  const Alphabet alphabet(split.train);
  const std::vector<Example> known = encode(alphabet, classes, split.train);
  const std::vector<Example> held_out = encode(alphabet, classes, split.held_out);

  std::vector<Baseline> compared = baselines(split);
  if (english) compared.push_back(vowel_rule_baseline(split));

  // A twentieth of the words that are not held out is for early stopping.
  xgrad::Generator generator(0);
  const std::size_t validating = std::max<std::size_t>(known.size() / 20, 1);
  const auto parts = xgrad::random_split(known.size(), {known.size() - validating, validating}, generator);
  const std::vector<Example> training = chosen(known, parts[0]), validation = chosen(known, parts[1]);
  if (training.empty()) throw std::invalid_argument("there must be at least 2 words to train on");

  xgrad::manual_seed(options.seed);
  const WordClassifier classifier(
      alphabet, classes,
      {.d_model = options.d_model, .heads = options.heads, .d_ff = options.d_ff, .layers = options.layers});
  const Model& model = classifier.model();
  std::printf("%zu words to train on, %zu to validate, %zu held out, %zu classes, %zu parameters\n",
              training.size(), validation.size(), held_out.size(), classes.size(), model.parameter_count());

  TrainingRun training_run(options, model, options.steps / 50, {{"--data", options.data}});
  xgrad::BatchSampler batches(lengths(training), {.batch_size = options.batch});
  training_run.keep("batches", batches);
  if (options.ranks != nullptr) {
    for (const LabelledWord& word : words) training_run.compare_words({word.word, word.label});
  }
  training_run.evaluate(1000, options.patience, [&] { return accuracy(model, validation, options); });
  const auto loss = [&](std::span<const std::size_t> chosen) {
    const Batch batch = make_batch(training, chosen);
    return xgrad::WeightedLoss<float>{.sum = cross_entropy(model.class_logits(batch.ids), batch.labels,
                                                           {.reduction = xgrad::Reduction::sum}),
                                      .weight = static_cast<double>(chosen.size()),
                                      .tokens = batch.ids.size()};
  };
  show_in_report(training_run, classifier, split.held_out.front());
  training_run.save_to(options.save, [&](const std::string& path) { classifier.save(path); });
  const xgrad::TrainingLog log = training_run.fit([&] { return training_run.update(batches.next(), loss); });
  training_run.save(log);
  const double reached = accuracy(model, held_out, options);

  std::printf("%s after %zu steps\n\nheld-out accuracy, %zu words:\n", outcome(log), log.steps,
              held_out.size());
  std::printf("  %-20s %5.2f %%\n", "encoder", 100 * reached);
  xgrad::detail::JsonTree report = training_run.metrics(log);
  report["held_out_accuracy"] = reached;
  report["baselines"] = xgrad::detail::JsonTree::object();
  for (const Baseline& baseline : compared) {
    std::printf("  %-20s %5.2f %%\n", baseline.name.c_str(), 100 * baseline.accuracy);
    report["baselines"][baseline.name] = baseline.accuracy;
  }
  std::printf("\n");
  if (english) show_silent_e(classifier);
  std::vector<std::string> asked = options.words;
  if (asked.empty() && english) asked = {"compute", "recipe", "attention", "encoder", "shoes", "xylophone"};
  for (const std::string& word : asked) print_answer(word, classifier.answer(word));
  metrics.write(report);
  return training_run.exit_code();
}

int run_command(int argc, char** argv) {
  SyllableOptions options;
  static_cast<TrainingOptions&>(options) = {{.steps = 16000, .batch = 128, .lr = 3e-3},
                                            {.d_model = 32, .heads = 4, .d_ff = 64, .layers = 2}};
  CommandLine app(
      "Trains a small encoder to tell the number of syllables of a word from its letters, on the CMU "
      "Pronouncing Dictionary or on words of your own.");
  add_options(app, options);
  app.add_option("--data", options.data, "Train on this file instead: a word and a label a line")
      ->path(PathUse::input);
  app.add_option("--patience", options.patience,
                 "Evaluations (one every 1000 steps) without progress before it stops")
      ->check(in_range<std::size_t>(1, 1000000))
      ->capture_default_str();
  app.add_option("--save", options.save, "Save the model to this file, for label_words")
      ->path(PathUse::output);
  app.add_option("words", options.words, "Words to answer for after the training");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_training("train_syllables", options, run);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("train_syllables", [&] { return run_command(argc, argv); });
}
