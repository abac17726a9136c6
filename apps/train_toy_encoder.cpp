// Trains the toy encoder to fill in hidden words, and shows which word each head looks at
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <span>
#include <utility>

#include <xgrad/base/detail/text/json_tree.hpp>
#include <xgrad/xgrad.hpp>

#include "cloze_task.hpp"
#include "common/command_line.hpp"
#include "common/program.hpp"
#include "ranks/run_training.hpp"
#include "training/heat_map.hpp"
#include "training/training_run.hpp"

using namespace apps;
using xgrad::Ids, xgrad::Variable, xgrad::Vocabulary;

namespace {

/// The word that the model finds most probable, and its probability.
struct Guess {
  std::int64_t id;
  float probability;
};

std::vector<Guess> guesses(const xgrad::ToyEncoder<float>& model, const ClozeBatch& batch) {
  const xgrad::NoGrad guard;
  const Variable<float> probabilities = softmax(model.token_logits(batch.ids));
  std::vector<Guess> result;
  for (std::size_t row = 0; row < batch.ids.shape(0); ++row) {
    for (std::size_t i = 0; i < longest_sentence; ++i) {
      if (batch.answers(row, i) < 0) continue;
      const float* first = &probabilities.value()(row, i, 0);
      const float* best = std::max_element(first, first + probabilities.shape(2));
      result.push_back({best - first, *best});
    }
  }
  return result;
}

double accuracy(const xgrad::ToyEncoder<float>& model, const Vocabulary& vocabulary,
                const std::vector<Question>& questions) {
  const std::vector<Guess> found = guesses(model, make_batch(vocabulary, questions));
  std::size_t right = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto& [sentence, cloze] = questions[i];
    right += vocabulary.token(found[i].id) == sentence->words[cloze.hidden] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(questions.size());
}

/// A head, and its mean attention weight from hidden words to their clues.
struct Head {
  std::size_t layer, head;
  double weight;
};

/// The mean attention weights from hidden words of one kind to their clues, for each head.
std::vector<Head> attention_on_clues(const xgrad::ToyEncoder<float>& model, const Vocabulary& vocabulary,
                                     const std::vector<Question>& questions, Hidden kind) {
  const xgrad::NoGrad guard;
  std::vector<Question> chosen;
  std::copy_if(questions.begin(), questions.end(), std::back_inserter(chosen),
               [kind](const Question& question) { return question.cloze.kind == kind; });
  const std::vector<Variable<float>> weights = model.with_weights(make_batch(vocabulary, chosen).ids).weights;
  std::vector<Head> heads;
  for (std::size_t layer = 0; layer < weights.size(); ++layer) {
    for (std::size_t head = 0; head < weights[layer].shape(1); ++head) {
      double total = 0;
      for (std::size_t row = 0; row < chosen.size(); ++row) {
        total += static_cast<double>(
            weights[layer].value()(row, head, chosen[row].cloze.hidden, chosen[row].cloze.clue));
      }
      heads.push_back({layer, head, total / static_cast<double>(chosen.size())});
    }
  }
  return heads;
}

/// For each kind of hidden word: the head that found the clue best in training, with its weight on held-out
/// sentences.
std::vector<Head> finding_heads(const xgrad::ToyEncoder<float>& model, const Vocabulary& vocabulary,
                                const std::vector<Question>& training,
                                const std::vector<Question>& held_out) {
  std::vector<Head> best;
  for (const Hidden kind : {Hidden::noun, Hidden::adjective, Hidden::owner}) {
    const std::vector<Head> seen = attention_on_clues(model, vocabulary, training, kind);
    const auto chosen = std::max_element(seen.begin(), seen.end(),
                                         [](const Head& a, const Head& b) { return a.weight < b.weight; });
    best.push_back(attention_on_clues(model, vocabulary, held_out,
                                      kind)[static_cast<std::size_t>(chosen - seen.begin())]);
  }
  return best;
}

/// Prints the notebook's sentence with one word hidden, and the attention of that word.
void show_attention(const xgrad::ToyEncoder<float>& model, const Vocabulary& vocabulary,
                    const Sentence& sentence) {
  const xgrad::NoGrad guard;
  const ClozeBatch batch = make_batch(vocabulary, {{&sentence, sentence.clozes[0]}});
  print_attention_from(std::cout, model.with_weights(batch.ids).weights, sentence.clozes[0].hidden,
                       with_mask({&sentence, sentence.clozes[0]}));
}

void show_guesses(const xgrad::ToyEncoder<float>& model, const Vocabulary& vocabulary,
                  const Sentence& sentence) {
  for (const Cloze& cloze : sentence.clozes) {
    const Guess guess = guesses(model, make_batch(vocabulary, {{&sentence, cloze}}))[0];
    for (std::size_t i = 0; i < sentence.words.size(); ++i) {
      std::printf("%s%s",
                  i == 4  ? ", "
                  : i > 0 ? " "
                          : "  ",
                  i == cloze.hidden ? "____" : sentence.words[i].c_str());
    }
    std::printf("  ->  %s (%.1f %%)\n", vocabulary.token(guess.id).c_str(),
                100 * static_cast<double>(guess.probability));
  }
}

/// Shows the notebook's sentence in the report: attention and graph with its first word hidden, and guesses
/// for each word that can be.
void show_in_report(TrainingRun& run, const xgrad::ToyEncoder<float>& model, const Vocabulary& vocabulary,
                    const Sentence& sentence) {
  const std::vector<Question> questions = all_questions({&sentence});
  const std::vector<std::string> words = with_mask(questions[0]);
  const ClozeBatch batch = make_batch(vocabulary, {questions[0]});
  Ids answers = batch.answers;
  answers.reshape({answers.size()});
  const auto loss = [=] {
    return cross_entropy(reshape(model.token_logits(batch.ids), {answers.size(), -1}), answers);
  };
  const auto predictions = [=, all = make_batch(vocabulary, questions)](xgrad::ReportStep& step) {
    const Variable<float> probabilities = softmax(model.token_logits(all.ids));
    for (std::size_t row = 0; row < questions.size(); ++row) {
      const std::size_t hidden = questions[row].cloze.hidden;
      const float* const first = &probabilities.value()(row, hidden, 0);
      step.prediction(joined(with_mask(questions[row])),
                      xgrad::most_probable(vocabulary.tokens(), {first, vocabulary.size()}),
                      questions[row].sentence->words[hidden]);
    }
  };
  run.show({joined(words), {words}}, loss, predictions);
}

int run(const TrainingOptions& options) {
  MetricsFile metrics(options.metrics);
  const Vocabulary vocabulary = vocabulary_of_language();
  const std::vector<Sentence> language = all_sentences();

  const SplitLanguage parts = split(language);
  const Sentence& notebook = *parts.notebook;
  const std::vector<Question> questions = all_questions(parts.training),
                              unseen = all_questions(parts.held_out);

  xgrad::manual_seed(options.seed);
  const xgrad::ToyEncoderConfig config{.vocab_size = vocabulary.size(),
                                       .max_len = longest_sentence,
                                       .classes = 0,
                                       .encoder = {.d_model = options.d_model,
                                                   .heads = options.heads,
                                                   .d_ff = options.d_ff,
                                                   .layers = options.layers},
                                       .pad_id = pad_id};
  const xgrad::ToyEncoder<float> model(config);
  std::printf("%zu sentences to train on, %zu held out, %zu words, %zu parameters\n\n", parts.training.size(),
              parts.held_out.size(), vocabulary.size(), model.parameter_count());
  std::printf("before training, from the hidden word of the notebook's sentence (held out):\n");
  show_attention(model, vocabulary, notebook);
  std::printf("\n");

  TrainingRun training_run(options, model, options.steps / 20);
  const auto loss = [&](std::span<const std::size_t> chosen) {
    std::vector<Question> picked;
    for (const std::size_t i : chosen) picked.push_back(questions[i]);
    return cloze_loss(model, vocabulary, picked);
  };
  show_in_report(training_run, model, vocabulary, notebook);
  const xgrad::TrainingLog log = training_run.fit([&] {
    const Ids chosen = xgrad::randint(0, static_cast<std::int64_t>(questions.size()), {options.batch});
    return training_run.update({chosen.begin(), chosen.end()}, loss);
  });

  const double reached = accuracy(model, vocabulary, unseen);
  const std::vector<Head> heads = finding_heads(model, vocabulary, questions, unseen);
  double attention = 0;
  for (const Head& head : heads) attention += head.weight / static_cast<double>(heads.size());

  const std::size_t stride = std::max<std::size_t>(log.losses.size() / 10, 1);
  std::printf("%s after %zu steps, %.1f s; loss every %zu steps:", outcome(log), log.steps, log.seconds,
              stride);
  for (std::size_t i = 0; i < log.losses.size(); i += stride) std::printf(" %.3f", log.losses[i]);
  std::printf("\nheld-out accuracy: %.2f %% of %zu hidden words\n\n", 100 * reached, unseen.size());
  std::printf("the notebook's sentence (held out), a word hidden at a time:\n");
  show_guesses(model, vocabulary, notebook);
  std::printf("\nafter training, from the hidden word of the notebook's sentence (held out):\n");
  show_attention(model, vocabulary, notebook);
  std::printf("\nthe heads that found the right word, and their mean weight on it in held-out sentences:\n");
  for (std::size_t kind = 0; kind < heads.size(); ++kind) {
    std::printf("  hidden %-9s  layer %zu head %zu  %.2f\n", hidden_names[kind], heads[kind].layer,
                heads[kind].head, heads[kind].weight);
  }
  xgrad::detail::JsonTree report = training_run.metrics(log);
  report.update({{"held_out_accuracy", reached}, {"attention_on_target", attention}});
  metrics.write(report);
  return training_run.exit_code();
}

int run_command(int argc, char** argv) {
  TrainingOptions options{{.steps = 4000, .batch = 64, .lr = 3e-3},
                          {.d_model = 32, .heads = 4, .d_ff = 64, .layers = 1}};
  CommandLine app(
      "Trains a small encoder to fill in hidden words of sentences such as \"my shoes are small, my feet are "
      "big\", and shows which word each attention head looks at.");
  add_options(app, options);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_training("train_toy_encoder", options, run);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("train_toy_encoder", [&] { return run_command(argc, argv); });
}
