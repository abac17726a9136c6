#pragma once

// The task of train_toy_encoder: a word of a sentence is hidden, and has to be guessed.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/xgrad.hpp>

#include "toy_language.hpp"

namespace apps {

struct Question {
  const Sentence* sentence;
  Cloze cloze;
};

/// Sentences with one word of each hidden, padded to one length.
struct ClozeBatch {
  xgrad::Ids ids;      // (batch, longest_sentence)
  xgrad::Ids answers;  // the same; -100 but for the hidden words
};

inline ClozeBatch make_batch(const xgrad::Vocabulary& vocabulary, const std::vector<Question>& questions) {
  ClozeBatch batch{xgrad::Ids::from_shape({questions.size(), longest_sentence}),
                   xgrad::Ids::from_shape({questions.size(), longest_sentence})};
  batch.ids.fill(pad_id);
  batch.answers.fill(-100);
  for (std::size_t row = 0; row < questions.size(); ++row) {
    const auto& [sentence, cloze] = questions[row];
    for (std::size_t i = 0; i < sentence->words.size(); ++i)
      batch.ids(row, i) = vocabulary.id(sentence->words[i]);
    batch.answers(row, cloze.hidden) = std::exchange(batch.ids(row, cloze.hidden), mask_id);
  }
  return batch;
}

/// A question for every word of the sentences that can be hidden.
inline std::vector<Question> all_questions(const std::vector<const Sentence*>& sentences) {
  std::vector<Question> questions;
  for (const Sentence* sentence : sentences) {
    for (const Cloze& cloze : sentence->clozes) questions.push_back({sentence, cloze});
  }
  return questions;
}

struct SplitLanguage {
  std::vector<const Sentence*> training, held_out;
  const Sentence* notebook = nullptr;  // held out, too
};

/// A fifth of the sentences, the same for every seed, and the notebook's own are never trained on.
inline SplitLanguage split(const std::vector<Sentence>& language) {
  SplitLanguage parts;
  xgrad::Generator generator(0);
  const xgrad::Ids order = xgrad::randperm(static_cast<std::int64_t>(language.size()), generator);
  for (std::size_t i = 0; i < language.size(); ++i) {
    const Sentence& sentence = language[i];
    if (sentence.words == notebook_sentence()) parts.notebook = &sentence;
    const bool out = order(i) % 5 == 0 || &sentence == parts.notebook;
    (out ? parts.held_out : parts.training).push_back(&sentence);
  }
  return parts;
}

/// Minus the logarithms of the probabilities that the model gives the hidden words, added up.
template <class Model>
xgrad::WeightedLoss<float> cloze_loss(const Model& model, const xgrad::Vocabulary& vocabulary,
                                      const std::vector<Question>& questions) {
  const ClozeBatch batch = make_batch(vocabulary, questions);
  const xgrad::Variable<float> logits = reshape(model.token_logits(batch.ids), {-1, vocabulary.size()});
  xgrad::Ids answers = batch.answers;
  answers.reshape({answers.size()});
  return {.sum = cross_entropy(logits, answers, {.reduction = xgrad::Reduction::sum}),
          .weight = static_cast<double>(questions.size()),
          .tokens = batch.ids.size()};
}

/// The sentence with a hidden word.
inline std::vector<std::string> with_mask(const Question& question) {
  std::vector<std::string> words = question.sentence->words;
  words[question.cloze.hidden] = "[MASK]";
  return words;
}

}  // namespace apps
