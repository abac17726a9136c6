// Trains an encoder to name the part of speech of every word, on the Brown corpus
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <span>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/xgrad.hpp>

#include "common/columns.hpp"
#include "common/command_line.hpp"
#include "common/program.hpp"
#include "corpora/brown_corpus.hpp"
#include "models/tagger.hpp"
#include "ranks/run_training.hpp"
#include "training/training_run.hpp"

using namespace apps;
using xgrad::Ids, xgrad::Variable;

namespace {

struct TaggerOptions : TrainingOptions {
  std::string data, save;
  std::size_t patience = 4, evaluate_every = 500;
  double dropout = 0.1, word_dropout = 0.1;
};

/// Pieces of at most longest_sentence words.
std::vector<TaggedSentence> pieces_of(const std::vector<TaggedSentence>& sentences) {
  constexpr std::size_t longest = TaggerVocabulary::longest_sentence;
  std::vector<TaggedSentence> pieces;
  for (const TaggedSentence& sentence : sentences) {
    for (std::size_t begin = 0; begin < sentence.words.size(); begin += longest) {
      const auto first = static_cast<std::ptrdiff_t>(begin);
      const auto last = static_cast<std::ptrdiff_t>(std::min(begin + longest, sentence.words.size()));
      pieces.push_back({{sentence.words.begin() + first, sentence.words.begin() + last},
                        {sentence.tags.begin() + first, sentence.tags.begin() + last}});
    }
  }
  return pieces;
}

std::vector<std::vector<std::string>> words_of(std::span<const TaggedSentence> sentences) {
  std::vector<std::vector<std::string>> words;
  words.reserve(sentences.size());
  for (const TaggedSentence& sentence : sentences) words.push_back(sentence.words);
  return words;
}

std::size_t word_count(const std::vector<TaggedSentence>& sentences) {
  std::size_t count = 0;
  for (const TaggedSentence& sentence : sentences) count += sentence.words.size();
  return count;
}

/// How often words with each true tag (row) were given each tag (column); how many words the vocabulary
/// knows, and how many of those were right.
struct Confusion {
  std::vector<std::string> tags;
  std::vector<std::vector<std::size_t>> counts;
  std::size_t known = 0, known_right = 0;

  std::size_t row_total(std::size_t row) const {
    std::size_t total = 0;
    for (const std::size_t count : counts[row]) total += count;
    return total;
  }
  std::size_t all() const {
    std::size_t total = 0;
    for (std::size_t row = 0; row < counts.size(); ++row) total += row_total(row);
    return total;
  }
  std::size_t right() const {
    std::size_t total = 0;
    for (std::size_t tag = 0; tag < counts.size(); ++tag) total += counts[tag][tag];
    return total;
  }
  double accuracy() const { return static_cast<double>(right()) / static_cast<double>(all()); }
};

double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Tags that did not occur in training are counted, too: in rows of their own, where no answer is right.
Confusion confusion(const Tagger& tagger, const std::vector<TaggedSentence>& sentences,
                    const TrainingOptions& options) {
  Confusion result;
  result.tags = tagger.vocabulary().tags().tokens();
  std::set<std::string> more;
  for (const TaggedSentence& sentence : sentences)
    for (const std::string& tag : sentence.tags)
      if (!tagger.vocabulary().tags().contains(tag)) more.insert(tag);
  result.tags.insert(result.tags.end(), more.begin(), more.end());
  std::map<std::string, std::size_t> number;
  for (std::size_t i = 0; i < result.tags.size(); ++i) number[result.tags[i]] = i;
  result.counts.assign(result.tags.size(), std::vector<std::size_t>(result.tags.size()));
  for_each_part(options, sentences, [&](std::span<const TaggedSentence> part) {
    const std::vector<std::vector<std::string>> given = tagger.tags(words_of(part));
    for (std::size_t s = 0; s < part.size(); ++s) {
      for (std::size_t i = 0; i < given[s].size(); ++i) {
        ++result.counts[number.at(part[s].tags[i])][number.at(given[s][i])];
        if (!tagger.vocabulary().knows(part[s].words[i])) continue;
        ++result.known;
        result.known_right += part[s].tags[i] == given[s][i] ? 1 : 0;
      }
    }
  });
  for (std::vector<std::size_t>& row : result.counts) row = sum_of(options.ranks, row);
  const std::vector<std::size_t> known = sum_of(options.ranks, {result.known, result.known_right});
  result.known = known[0];
  result.known_right = known[1];
  return result;
}

void print(const Confusion& confusion) {
  std::printf("accuracy of each tag, and its confusions, in words:\n  %-6s %8s ", "", "right");
  for (const std::string& tag : confusion.tags)
    std::printf(" %s", on_the_right(first_characters(tag, 6), 6).c_str());
  std::printf("\n");
  for (std::size_t row = 0; row < confusion.tags.size(); ++row) {
    std::printf("  %s %6.2f %% ", on_the_left(first_characters(confusion.tags[row], 6), 6).c_str(),
                100 * share(confusion.counts[row][row], confusion.row_total(row)));
    for (const std::size_t count : confusion.counts[row]) std::printf(" %6zu", count);
    std::printf("\n");
  }
}

/// Shows the first sentence in the report whose tags occur in the training; there may be none.
void show_in_report(TrainingRun& run, const Tagger& tagger, const std::vector<TaggedSentence>& sentences) {
  const xgrad::Vocabulary& tags = tagger.vocabulary().tags();
  const auto sentence = std::ranges::find_if(sentences, [&](const TaggedSentence& one) {
    return std::ranges::all_of(one.tags, [&](const std::string& tag) { return tags.contains(tag); });
  });
  if (sentence == sentences.end()) return;
  const TaggerModel& model = tagger.model();
  const WordFeatures features = tagger.vocabulary().features({&sentence->words});
  const std::vector<std::int64_t> ids = tags.ids(sentence->tags);
  const auto scores = [=] { return reshape(model(features), {ids.size(), -1}); };
  const auto loss = [=] {
    return cross_entropy(scores(), xgrad::detail::array_of<std::int64_t>(std::span(ids)));
  };
  const auto predictions = [=, one = *sentence, labels = tags.tokens()](xgrad::ReportStep& step) {
    const Variable<float> probabilities = softmax(scores());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      step.prediction(one.words[i] + " (word " + std::to_string(i + 1) + ")",
                      xgrad::most_probable(labels, {&probabilities.value()(i, 0), labels.size()}),
                      one.tags[i]);
    }
  };
  run.show({joined(sentence->words), {sentence->words}}, loss, predictions);
}

int run(const TaggerOptions& options) {
  MetricsFile metrics(options.metrics);
  check_writable(options.save);
  const TaggedSplit split =
      split_files(options.data.empty() ? brown_corpus() : read_tagged_folder(options.data));
  const std::vector<TaggedSentence> training = pieces_of(split.train);
  const double baseline = most_frequent_tag_accuracy(split.train, split.test);

  xgrad::manual_seed(options.seed);
  const Tagger tagger(TaggerVocabulary(split.train), {.d_model = options.d_model,
                                                      .heads = options.heads,
                                                      .d_ff = options.d_ff,
                                                      .layers = options.layers,
                                                      .dropout = options.dropout});
  const TaggerModel& model = tagger.model();
  std::printf("%zu words to train on, %zu to validate, %zu to test, %zu tags, %zu parameters\n",
              word_count(split.train), word_count(split.validation), word_count(split.test),
              tagger.vocabulary().tags().size(), model.parameter_count());
  std::fflush(stdout);

  TrainingRun training_run(options, model, options.steps / 20,
                           {{"--data", options.data},
                            {"--dropout", xgrad::detail::number_text(options.dropout)},
                            {"--word-dropout", xgrad::detail::number_text(options.word_dropout)}});
  std::vector<std::size_t> lengths;
  lengths.reserve(training.size());
  for (const TaggedSentence& sentence : training) lengths.push_back(sentence.words.size());
  xgrad::BatchSampler batches(lengths, {.batch_size = options.batch});
  training_run.keep("batches", batches);
  if (options.ranks != nullptr) {
    for (const TaggedSentence& sentence : training) {
      training_run.compare_words(sentence.words);
      training_run.compare_words(sentence.tags);
    }
  }
  training_run.evaluate(options.evaluate_every, options.patience,
                        [&] { return confusion(tagger, split.validation, options).accuracy(); });
  const auto loss = [&](std::span<const std::size_t> chosen) {
    std::vector<const std::vector<std::string>*> words;
    std::vector<std::vector<std::int64_t>> tags;
    for (const std::size_t i : chosen) {
      words.push_back(&training[i].words);
      tags.push_back(tagger.vocabulary().tags().ids(training[i].tags));
    }
    WordFeatures features = tagger.vocabulary().features(words);
    // Making some words unknown teaches the model to use their parts.
    const xgrad::Array<float> forgotten =
        xgrad::bernoulli<float>({features.words.size()}, options.word_dropout);
    std::size_t real = 0;
    for (std::size_t i = 0; i < features.words.size(); ++i) {
      std::int64_t& word = features.words.data()[i];
      real += word != 0 ? 1 : 0;
      if (word != 0 && forgotten(i) != 0) word = TaggerVocabulary::unknown;
    }
    Ids target = xgrad::pad_sequence(tags, -100);
    target.reshape({target.size()});
    const Variable<float> scores = model(features);
    return xgrad::WeightedLoss<float>{.sum = cross_entropy(reshape(scores, {-1, scores.shape(2)}), target,
                                                           {.reduction = xgrad::Reduction::sum}),
                                      .weight = static_cast<double>(real),
                                      .tokens = real};
  };
  show_in_report(training_run, tagger, split.validation);
  training_run.save_to(options.save, [&](const std::string& path) { tagger.save(path); });
  const xgrad::TrainingLog log = training_run.fit([&] { return training_run.update(batches.next(), loss); });
  training_run.save(log);

  const Confusion test = confusion(tagger, split.test, options);
  const std::size_t unknown = test.all() - test.known;
  std::printf("%s after %zu steps, %.0f s; best on the validation set: %.2f %%\n\n", outcome(log), log.steps,
              log.seconds, 100 * training_run.best_score());
  std::printf("accuracy on the test set, %zu words:\n", test.all());
  std::printf("  %-24s %5.2f %%\n", "encoder", 100 * test.accuracy());
  std::printf("  %-24s %5.2f %%\n", "  known words", 100 * share(test.known_right, test.known));
  std::printf("  %-24s %5.2f %%  (%zu)\n", "  unknown words",
              100 * share(test.right() - test.known_right, unknown), unknown);
  std::printf("  %-24s %5.2f %%\n\n", "most frequent tag", 100 * baseline);
  print(test);

  xgrad::detail::JsonTree report = training_run.metrics(log);
  report.update({{"test_accuracy", test.accuracy()},
                 {"validation_accuracy", training_run.best_score()},
                 {"known_accuracy", share(test.known_right, test.known)},
                 {"unknown_accuracy", share(test.right() - test.known_right, unknown)},
                 {"baselines", {{"most_frequent_tag", baseline}}},
                 {"tags", test.tags},
                 {"confusion", test.counts}});
  report["tag_accuracy"] = xgrad::detail::JsonTree::object();
  for (std::size_t i = 0; i < test.tags.size(); ++i)
    report["tag_accuracy"][test.tags[i]] = share(test.counts[i][i], test.row_total(i));
  metrics.write(report);
  return training_run.exit_code();
}

int run_command(int argc, char** argv) {
  TaggerOptions options;
  static_cast<TrainingOptions&>(options) = {{.steps = 4000, .batch = 48, .lr = 3e-3},
                                            {.d_model = 64, .heads = 4, .d_ff = 128, .layers = 3}};
  CommandLine app(
      "Trains an encoder to name the part of speech of every word, on the Brown corpus or on files of "
      "your own.");
  add_options(app, options);
  app.add_option("--data", options.data,
                 "Train on the files of this folder instead: a sentence a line, of words such as house/NOUN")
      ->path(PathUse::input_folder);
  app.add_option("--dropout", options.dropout, "Dropout of the encoder")
      ->check(in_range<double>(0, 0.9))
      ->capture_default_str();
  app.add_option("--word-dropout", options.word_dropout,
                 "Share of the words that are made unknown in training")
      ->check(in_range<double>(0, 0.9))
      ->capture_default_str();
  app.add_option("--evaluate-every", options.evaluate_every, "Steps between evaluations")
      ->check(in_range<std::size_t>(1, 100000000))
      ->capture_default_str();
  app.add_option("--patience", options.patience, "Evaluations without progress before it stops")
      ->check(in_range<std::size_t>(1, 1000000))
      ->capture_default_str();
  app.add_option("--save", options.save, "Save the model to this file, for tag_words")->path(PathUse::output);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_training("train_tagger", options, run);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("train_tagger", [&] { return run_command(argc, argv); });
}
