// Trains the toy encoder to count the syllables of English words from their spelling
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>

#include <xgrad/xgrad.hpp>

#include "heat_map.hpp"
#include "training_options.hpp"
#include "word_labels.hpp"

using namespace examples;
using xgrad::Ids, xgrad::Variable;

namespace {

constexpr std::size_t longest_word = 40;  // letters; what follows is cut off

/// Letters as ids. Every word starts with a class token, whose final state is what the classifier sees.
class Alphabet {
 public:
  static constexpr std::int64_t pad = 0, class_token = 1, unknown = 2;

  explicit Alphabet(const std::vector<LabelledWord>& words) {
    for (const LabelledWord& word : words) {
      const std::u32string letters = characters(word.word);
      for (const char32_t letter : letters) ids_.emplace(letter, 0);
      longest_ = std::max(longest_, std::min(letters.size(), longest_word));
    }
    std::int64_t next = unknown;
    for (auto& [letter, id] : ids_) id = ++next;
  }

  std::size_t size() const { return ids_.size() + 3; }

  /// Positions that a word takes at most, the class token included.
  std::size_t positions() const { return longest_ + 1; }

  std::vector<std::int64_t> encode(const std::string& word) const {
    std::vector<std::int64_t> ids{class_token};
    for (const char32_t letter : characters(word).substr(0, longest_)) ids.push_back(id(letter));
    return ids;
  }

 private:
  /// A capital that the training words do not have stands for its small letter.
  std::int64_t id(char32_t letter) const {
    const char32_t small = letter >= U'A' && letter <= U'Z' ? letter - U'A' + U'a' : letter;
    for (const char32_t wanted : {letter, small}) {
      if (const auto found = ids_.find(wanted); found != ids_.end()) return found->second;
    }
    return unknown;
  }

  std::map<char32_t, std::int64_t> ids_;
  std::size_t longest_ = 0;
};

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

Batch make_batch(const std::vector<Example>& examples, const std::vector<std::size_t>& chosen) {
  std::vector<std::vector<std::int64_t>> words;
  Ids labels = Ids::from_shape({chosen.size()});
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    words.push_back(examples[chosen[row]].ids);
    labels(row) = examples[chosen[row]].label;
  }
  return {xgrad::pad_sequence(words, Alphabet::pad), labels};
}

std::vector<std::size_t> lengths(const std::vector<Example>& examples) {
  std::vector<std::size_t> result;
  for (const Example& example : examples) result.push_back(example.ids.size());
  return result;
}

using Model = xgrad::ToyEncoder<float>;

double accuracy(const Model& model, const std::vector<Example>& examples) {
  const xgrad::NoGrad guard;
  xgrad::BatchSampler batches(lengths(examples), {.batch_size = 256, .shuffle = false});
  std::size_t right = 0;
  for (std::size_t i = 0; i < batches.batches_per_epoch(); ++i) {
    const Batch batch = make_batch(examples, batches.next());
    const Variable<float> logits = model.class_logits(batch.ids);
    for (std::size_t row = 0; row < batch.labels.size(); ++row) {
      const float* scores = &logits.value()(row, 0);
      right += std::max_element(scores, scores + logits.shape(1)) - scores == batch.labels(row) ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(examples.size());
}

Ids one_word(const Alphabet& alphabet, const std::string& word) {
  return xgrad::pad_sequence({alphabet.encode(word)}, Alphabet::pad);
}

void answer(const Model& model, const Alphabet& alphabet, const std::vector<std::string>& classes,
            const std::string& word) {
  const xgrad::NoGrad guard;
  const Variable<float> probabilities = softmax(model.class_logits(one_word(alphabet, word)));
  const float* first = probabilities.value().data();
  const float* best = std::max_element(first, first + classes.size());
  std::printf("  %-20s %s  (%.1f %%)\n", word.c_str(),
              classes[static_cast<std::size_t>(best - first)].c_str(), 100 * static_cast<double>(*best));
}

/// The attention of the class token in "compute", whose e is silent, and in "recipe", whose e is a syllable.
void show_silent_e(const Model& model, const Alphabet& alphabet) {
  const xgrad::NoGrad guard;
  for (const std::string word : {"compute", "recipe"}) {
    std::vector<std::string> letters{"[class]"};
    for (const char letter : word) letters.emplace_back(1, letter);
    std::printf("attention from the class token over \"%s\":\n", word.c_str());
    print_attention_from(std::cout, model.with_weights(one_word(alphabet, word)).weights, 0, letters);
  }
  const auto on_final_e = [&](const std::string& word, std::size_t query) {
    std::vector<double> result;
    for (const Variable<float>& layer : model.with_weights(one_word(alphabet, word)).weights) {
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
      "layer %zu head %zu tells them apart: weight on the silent e of \"compute\" %.2f, on the sounded one "
      "of "
      "\"recipe\" %.2f\n\n",
      best / heads + 1, best % heads + 1, silent[best], sounded[best]);
}

struct SyllableOptions : TrainingOptions {
  std::string data;
  std::vector<std::string> words;
};

int run(const SyllableOptions& options) {
  MetricsFile metrics(options.metrics);
  const bool english = options.data.empty();
  const std::vector<LabelledWord> words =
      read_word_labels(english ? XGRAD_EXAMPLE_DATA_DIR "/cmudict_syllables.tsv.gz" : options.data);
  const std::vector<std::string> classes = classes_of(words);
  const WordSplit split = split_words(words);
  const Alphabet alphabet(split.train);
  const std::vector<Example> training = encode(alphabet, classes, split.train);
  const std::vector<Example> held_out = encode(alphabet, classes, split.held_out);

  std::vector<Baseline> compared = baselines(split);
  if (english) compared.push_back(vowel_rule_baseline(split));

  xgrad::manual_seed(options.seed);
  const Model model({.vocab_size = alphabet.size(),
                     .max_len = alphabet.positions(),
                     .classes = classes.size(),
                     .encoder = {.d_model = options.d_model,
                                 .heads = options.heads,
                                 .d_ff = options.d_ff,
                                 .layers = options.layers},
                     .pad_id = Alphabet::pad,
                     .pooling = xgrad::Pooling::first});
  std::printf("%zu words to train on, %zu held out, %zu classes, %zu parameters\n", training.size(),
              held_out.size(), classes.size(), model.parameter_count());

  xgrad::AdamW<float> optimizer(model.parameters(), {.lr = options.lr});
  auto scheduler = warmup_and_cosine(optimizer, options.steps / 50, options.steps);
  xgrad::BatchSampler batches(lengths(training), {.batch_size = options.batch});
  const auto step = [&](std::size_t) {
    const Batch batch = make_batch(training, batches.next());
    return update(optimizer, scheduler, cross_entropy(model.class_logits(batch.ids), batch.labels),
                  batch.ids.size());
  };
  const xgrad::TrainingLog log = xgrad::fit(options.steps, step);
  const double reached = accuracy(model, held_out);

  std::printf("%s after %zu steps\n\nheld-out accuracy, %zu words:\n",
              log.interrupted ? "interrupted" : "trained", log.losses.size(), held_out.size());
  std::printf("  %-20s %5.2f %%\n", "encoder", 100 * reached);
  nlohmann::json report{{"held_out_accuracy", reached},   {"steps", log.losses.size()},
                        {"seconds", log.seconds},         {"seed", options.seed},
                        {"interrupted", log.interrupted}, {"loss", log.losses}};
  for (const Baseline& baseline : compared) {
    std::printf("  %-20s %5.2f %%\n", baseline.name.c_str(), 100 * baseline.accuracy);
    report["baselines"][baseline.name] = baseline.accuracy;
  }
  std::printf("\n");
  if (english) show_silent_e(model, alphabet);
  std::vector<std::string> asked = options.words;
  if (asked.empty() && english) asked = {"compute", "recipe", "attention", "encoder", "shoes", "xylophone"};
  for (const std::string& word : asked) answer(model, alphabet, classes, word);
  metrics.write(report);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  SyllableOptions options;
  static_cast<TrainingOptions&>(options) = {
      .steps = 16000, .batch = 128, .d_model = 32, .heads = 4, .d_ff = 64, .layers = 2, .lr = 3e-3};
  CLI::App app(
      "Trains a small encoder to tell the number of syllables of a word from its letters, on the CMU "
      "Pronouncing Dictionary or on words of your own.");
  add_options(app, options);
  app.add_option("--data", options.data, "Train on this file instead: a word and a label a line");
  app.add_option("words", options.words, "Words to answer for after the training");
  CLI11_PARSE(app, argc, argv);
  return run_program("train_syllables", [&] { return run(options); });
}
