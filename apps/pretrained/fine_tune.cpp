// Fine-tunes a pretrained encoder to classify texts or words, on files of your own
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "../corpora/labelled_texts.hpp"
#include "../ranks/run_training.hpp"
#include "../training/training_run.hpp"
#include "common/recipe.hpp"
#include "common/words.hpp"

using namespace apps;
namespace pretrained = xgrad::pretrained;
namespace tokenizers = xgrad::tokenizers;
using xgrad::Ids;

namespace {

struct FineTuneOptions : RunOptions {
  std::string model, data, test, save;
  LabelledForm form;
  std::size_t epochs = 3, freeze = 0, patience = 3;
  std::optional<std::size_t> max_length;
};

/// A text as the model takes it, with a label, or with one for each token, -100 where there is none.
struct Example {
  tokenizers::Encoding encoding;
  std::vector<std::int64_t> labels;
  std::size_t asked;    ///< labels to predict, those of words that were cut off among them
  bool is_cut = false;  ///< whether the text has more tokens
};

struct Batch {
  pretrained::Input input;
  Ids labels;
  std::size_t labelled = 0, tokens = 0;
};

/// How often the answers were right.
struct Score {
  std::size_t right = 0, asked = 0;
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(asked); }
};

/// Makes examples of texts, and batches of examples.
class Reader {
 public:
  Reader(const tokenizers::Tokenizer& tokenizer, const std::vector<std::string>& labels,
         std::size_t max_length, bool of_words)
      : tokenizer_(tokenizer), max_length_(max_length), of_words_(of_words) {
    for (const std::string& label : labels) ids_.emplace(label, static_cast<std::int64_t>(ids_.size()));
  }

  Example operator()(const LabelledText& text) const {
    Example example{encoded(text, max_length_ + 1), {}, text.labels.size()};
    example.is_cut = example.encoding.size() > max_length_;
    if (example.is_cut) example.encoding = encoded(text, max_length_);
    if (!of_words_) {
      example.labels = {ids_.at(text.labels.front())};
      return example;
    }
    example.labels.assign(example.encoding.size(), -100);
    const auto tokens = first_tokens(example.encoding, word_begins(text.text));
    for (std::size_t word = 0; word < tokens.size(); ++word) {
      if (tokens[word]) example.labels[*tokens[word]] = ids_.at(text.labels[word]);
    }
    return example;
  }

  Batch batch(std::span<const Example> examples, std::span<const std::size_t> chosen) const {
    std::vector<tokenizers::Encoding> encodings;
    std::vector<std::vector<std::int64_t>> labels;
    Batch batch;
    for (const std::size_t i : chosen) {
      const Example& example = examples[i];
      encodings.push_back(example.encoding);
      labels.push_back(example.labels);
      batch.tokens += example.encoding.size();
      batch.labelled += static_cast<std::size_t>(
          std::ranges::count_if(example.labels, [](std::int64_t label) { return label >= 0; }));
    }
    pretrained::Batch padded = pretrained::pad(tokenizer_, std::move(encodings));
    batch.input = {std::move(padded.input_ids), std::move(padded.attention_mask),
                   std::move(padded.token_type_ids)};
    batch.labels = xgrad::pad_sequence(labels, -100);
    return batch;
  }

 private:
  tokenizers::Encoding encoded(const LabelledText& text, std::size_t max_length) const {
    const tokenizers::EncodeOptions limit{.max_length = max_length};
    return text.second ? tokenizer_.encode(text.text, *text.second, limit)
                       : tokenizer_.encode(text.text, limit);
  }

  const tokenizers::Tokenizer& tokenizer_;
  std::size_t max_length_;
  bool of_words_;
  std::map<std::string, std::int64_t> ids_;
};

using Classifier = std::variant<pretrained::SequenceClassifier<float>, pretrained::TokenClassifier<float>>;

/// Either head, seen alike.
class Model {
 public:
  Model(const FineTuneOptions& options, bool of_words, const std::vector<std::string>& labels)
      : classifier_(of_words ? Classifier(load<pretrained::TokenClassifier<float>>(options, labels))
                             : Classifier(load<pretrained::SequenceClassifier<float>>(options, labels))) {}

  template <class F>
  auto visit(const F& f) const {
    return std::visit(f, classifier_);
  }

  xgrad::Module<float> module() const {
    return visit([](const xgrad::Module<float>& model) { return model; });
  }
  const pretrained::Config& config() const {
    return std::visit([](const auto& model) -> const pretrained::Config& { return model.config(); },
                      classifier_);
  }

  std::vector<xgrad::NamedParameter<float>> trainable_parameters() const {
    return visit([](const auto& model) { return model.trainable_parameters(); });
  }

  xgrad::WeightedLoss<float> loss(const Batch& batch) const {
    return visit([&](const auto& model) {
      const Ids labels = batch.labels.shape(1) == 1 ? flat(batch.labels) : batch.labels;
      return xgrad::WeightedLoss<float>{.sum = model.loss(batch.input, labels, xgrad::Reduction::sum),
                                        .weight = static_cast<double>(batch.labelled),
                                        .tokens = batch.tokens};
    });
  }

  xgrad::Array<float> probabilities(const Batch& batch) const {
    return visit([&](const auto& model) { return softmax(model(batch.input)).value(); });
  }

  /// How many labels of the batch are the most probable ones.
  std::size_t right(const Batch& batch) const {
    const xgrad::Array<float> logits = visit([&](const auto& model) { return model(batch.input).value(); });
    const std::size_t classes = logits.shape(logits.dimension() - 1);
    std::size_t right = 0;
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      const float* const row = logits.data() + i * classes;
      if (std::max_element(row, row + classes) - row == batch.labels.data()[i]) ++right;
    }
    return right;
  }

 private:
  template <class M>
  static M load(const FineTuneOptions& options, const std::vector<std::string>& labels) {
    const M model = M::from_folder(
        options.model, {.labels = labels,
                        .problem_type = pretrained::ProblemType::single_label_classification,
                        .precision = pretrained::Precision::float32,  // the others' weights have no gradients
                        .note = note_of(options)});
    if (options.freeze > 0) model.encoder().freeze(options.freeze);
    model.encoder().skip_padding();
    return model;
  }

  static Ids flat(const Ids& column) {
    Ids row = column;
    row.reshape({column.size()});
    return row;
  }

  Classifier classifier_;
};

/// Ranks share the examples.
Score score(const Model& model, const Reader& reader, const std::vector<Example>& examples,
            const RunOptions& options) {
  const xgrad::NoGrad no_grad;
  const xgrad::EvalMode eval_mode(model.module());
  std::vector<std::size_t> by_length(examples.size());
  std::iota(by_length.begin(), by_length.end(), std::size_t{0});
  std::ranges::stable_sort(by_length, {}, [&](std::size_t i) { return examples[i].encoding.size(); });
  std::size_t right = 0, asked = 0;
  for_each_part(options, by_length, [&](std::span<const std::size_t> part) {
    for (std::size_t begin = 0; begin < part.size(); begin += options.batch) {
      const auto chosen = part.subspan(begin, std::min(options.batch, part.size() - begin));
      right += model.right(reader.batch(examples, chosen));
      for (const std::size_t i : chosen) asked += examples[i].asked;
    }
  });
  const std::vector<std::size_t> counts = sum_of(options.ranks, {right, asked});
  return {counts[0], counts[1]};
}

/// The labels of a folder's head if the texts have no other ones, else those of the texts in alphabetical
/// order.
std::vector<std::string> labels_for(const std::vector<std::string>& found, const pretrained::Config& config) {
  std::vector<std::string> known = config.id2label;
  std::ranges::sort(known);
  return std::ranges::includes(known, found) ? config.id2label : found;
}

/// Of all texts and labels, which must be the same in a resumed run and on all ranks.
std::uint64_t checksum_of(const LabelledSplit& split) {
  std::uint64_t sum = 0;
  for (const std::vector<LabelledText>* texts : {&split.train, &split.test}) {
    for (const LabelledText& text : *texts) {
      sum = apps::checksum_of(text.labels, apps::checksum_of({&text.text, 1}, sum));
      if (text.second) sum = apps::checksum_of({&*text.second, 1}, sum);
    }
  }
  return sum;
}

std::vector<Example> examples_of(const Reader& reader, const std::vector<LabelledText>& texts) {
  std::vector<Example> examples;
  examples.reserve(texts.size());
  for (const LabelledText& text : texts) examples.push_back(reader(text));
  return examples;
}

void save(const Model& model, const tokenizers::Tokenizer& tokenizer, const std::string& folder) {
  model.visit([&](const auto& m) {
    save_with_tokenizer([&](const std::string& other) { save_folder(m, other); }, tokenizer, folder);
  });
}

/// A text in the report.
std::string shown(const LabelledText& text) {
  return text.second ? text.text + " / " + *text.second : text.text;
}

/// Shows the first text in the report that is short enough to be read there; there may be none.
void show_in_report(TrainingRun& run, const Model& model, const Reader& reader,
                    const tokenizers::Tokenizer& tokenizer, const std::vector<Example>& examples,
                    const std::vector<LabelledText>& texts, const std::vector<std::string>& labels) {
  constexpr std::size_t longest = 64;
  const auto example = std::ranges::find_if(examples, [](const Example& one) {
    return one.encoding.size() <= longest && std::ranges::max(one.labels) >= 0;
  });
  if (example == examples.end()) return;
  const auto place = static_cast<std::size_t>(example - examples.begin());
  const std::size_t chosen[] = {place};
  const Batch batch = reader.batch(examples, chosen);
  const auto loss = [model, batch] {
    const xgrad::WeightedLoss<float> all = model.loss(batch);
    return all.sum / static_cast<float>(all.weight);
  };
  const std::vector<std::string> tokens = tokens_of(tokenizer, example->encoding.ids);
  const std::string text = shown(texts[place]);
  const auto predictions = [=](xgrad::ReportStep& step) {
    const xgrad::Array<float> probabilities = model.probabilities(batch);
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      const std::int64_t label = batch.labels.data()[i];
      if (label < 0) continue;
      step.prediction(batch.labels.size() == 1 ? text : tokens[i] + " in: " + text,
                      xgrad::most_probable(labels, {probabilities.data() + i * labels.size(), labels.size()}),
                      labels[static_cast<std::size_t>(label)]);
    }
  };
  run.show({text, {tokens}}, loss, predictions);
}

int run(FineTuneOptions options) {
  MetricsFile metrics(options.metrics);
  options.model = pretrained::find_model(options.model);
  const pretrained::Config config = pretrained::Config::from_folder(options.model, false);
  const auto tokenizer = tokenizers::Tokenizer::from_folder(options.model);
  pretrained::check_vocabulary(tokenizer, config, options.model);
  const std::size_t most = *config.max_length(), max_length = options.max_length.value_or(most);
  if (max_length > most)
    throw std::invalid_argument("--max-length must be at most " + std::to_string(most) +
                                ", as the model's, got " + std::to_string(max_length));
  check_save(tokenizer, options.save);
  std::error_code error;
  if (std::filesystem::equivalent(options.data, options.test, error))
    throw std::invalid_argument("--test must be another file than DATA, got " + options.test);
  const LabelledSplit split = read_labelled(options.data, options.test, options.form);
  const auto note = note_of(options);
  for (const std::string& left_out : split.notes) note(left_out);
  for (const std::string& form : split.forms) note(form);
  xgrad::manual_seed(options.seed);
  const std::vector<std::string> labels = labels_for(split.labels(), config);
  const Model model(options, split.of_words, labels);
  const Reader reader(tokenizer, labels, max_length, split.of_words);
  std::vector<Example> training = examples_of(reader, split.train);
  // A sentence of which the tokenizer leaves nothing has nothing to learn.
  const std::size_t empty =
      std::erase_if(training, [](const Example& example) { return std::ranges::max(example.labels) < 0; });
  if (empty > 0)
    note(std::to_string(empty) + " sentences are left out, as the tokenizer leaves no word of them");
  const std::vector<Example> held_out = examples_of(reader, split.test);
  const auto cut = std::ranges::count_if(training, &Example::is_cut);
  if (cut > 0) note(std::to_string(cut) + " texts are cut to " + std::to_string(max_length) + " tokens");
  std::vector<std::size_t> lengths;
  lengths.reserve(training.size());
  for (const Example& example : training) lengths.push_back(example.encoding.size());
  xgrad::BatchSampler batches(lengths, {.batch_size = options.batch});
  if (options.steps == 0) options.steps = options.epochs * batches.batches_per_epoch();
  std::printf("%zu texts to train on, %zu held out, %zu labels, %zu parameters, %zu steps\n", training.size(),
              held_out.size(), labels.size(), model.module().parameter_count(), options.steps);
  std::fflush(stdout);

  model.module().train();
  TrainingRun training_run(options, model.module(),
                           hugging_face_recipe(options, model.trainable_parameters()),
                           {{"DIR", options.model},
                            {"DATA", options.data},
                            {"--test", options.test},
                            {"the checksum of the texts", std::to_string(checksum_of(split))},
                            {"--freeze", std::to_string(options.freeze)},
                            {"--max-length", std::to_string(max_length)}});
  training_run.keep("batches", batches);
  training_run.evaluate(batches.batches_per_epoch(), options.patience,
                        [&] { return score(model, reader, held_out, options).accuracy(); });
  show_in_report(training_run, model, reader, tokenizer, held_out, split.test, labels);
  training_run.save_to(options.save, [&](const std::string& folder) { save(model, tokenizer, folder); });
  const xgrad::TrainingLog log = training_run.fit([&] {
    return training_run.update(batches.next(), [&](std::span<const std::size_t> chosen) {
      return model.loss(reader.batch(training, chosen));
    });
  });
  training_run.save(log);

  const Score after = score(model, reader, held_out, options);
  const double baseline = most_frequent_label_accuracy(split);
  std::printf("%s after %zu steps, %.0f s\n", outcome(log), log.steps, log.seconds);
  std::printf("held out: %.2f %% of %zu right; with the most frequent label: %.2f %%\n",
              100 * after.accuracy(), after.asked, 100 * baseline);
  note(std::string("the texts ") + (options.test.empty() ? "held out" : "of --test") +
       " chose the weights, those after the epoch with the best score: their share is that of a validation, "
       "and a test needs other texts");
  xgrad::detail::JsonTree report = training_run.metrics(log);
  report.update({{"accuracy", after.accuracy()},
                 {"labels", labels},
                 {"baselines", {{"most_frequent_label", baseline}}}});
  metrics.write(report);
  return training_run.exit_code();
}

int run_command(int argc, char** argv) {
  FineTuneOptions options;
  static_cast<RunOptions&>(options) = {.steps = 0, .batch = 32, .lr = 5e-5};
  CommandLine app(
      "Fine-tunes a pretrained encoder to classify texts, in lines `text<TAB>label`, CSV or JSONL, or words, "
      "in lines of columns with the word first and its label last and a blank line after each sentence.");
  app.add_option("DIR", options.model, "The folder of the model, or its name in the hub's cache")
      ->required()
      ->path(PathUse::input)
      ->found_by(pretrained::find_model);
  app.add_option("DATA", options.data, "The file of texts and labels")->required()->path(PathUse::input);
  app.add_option("--save", options.save, "Save the model and its tokenizer to this folder")
      ->required()
      ->path(PathUse::output);
  app.add_option("--test", options.test, "Hold out the texts of this file instead of a tenth of DATA")
      ->path(PathUse::input);
  app.add_option(
         "--format", options.form.format,
         "Format of the files: lines, words, csv, tsv or jsonl; by default that of their names or lines")
      ->check(one_of({"lines", "words", "csv", "tsv", "jsonl"}));
  app.add_option("--text", options.form.text,
                 "Name of the column of texts; by default 'text', or the only one");
  app.add_option("--label", options.form.label, "Name of the column of labels; by default 'label'");
  Option* const second =
      app.add_option("--second", options.form.second, "Classify pairs: name of the column of second texts");
  app.add_flag("--pairs", options.form.pairs, "Classify pairs in lines `text<TAB>second text<TAB>label`")
      ->excludes(second);
  app.add_option("--epochs", options.epochs, "Passes over the texts; ignored with --steps")
      ->check(in_range<std::size_t>(1, 10'000))
      ->capture_default_str();
  app.add_option("--freeze", options.freeze,
                 "Freeze the embeddings and the first layers, as many as this; 0: train all")
      ->check(in_range<std::size_t>(0, 1000))
      ->capture_default_str();
  app.add_option("--max-length", options.max_length,
                 "Maximum number of tokens of a text; by default that of the model")
      ->check(in_range<std::size_t>(3, 100'000));
  app.add_option("--patience", options.patience, "Epochs without progress before it stops")
      ->check(in_range<std::size_t>(1, 1'000'000))
      ->capture_default_str();
  add_options(app, options);
  app.get_option("--steps")->default_str("epochs");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_training("fine_tune", options, run);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("fine_tune", [&] { return run_command(argc, argv); });
}
