#include "word_classifier.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/columns.hpp"
#include "../common/program.hpp"
#include "../corpora/utf8.hpp"
#include "saved_model.hpp"

namespace apps {

Alphabet::Alphabet(const std::vector<LabelledWord>& words) {
  for (const LabelledWord& word : words) {
    const std::u32string letters = characters(word.word);
    for (const char32_t letter : letters) ids_.emplace(letter, 0);
    longest_ = std::max(longest_, std::min(letters.size(), longest_word));
  }
  std::int64_t next = unknown;
  for (auto& [letter, id] : ids_) id = ++next;
}

Alphabet::Alphabet(const std::u32string& letters, std::size_t longest) : longest_(longest) {
  for (const char32_t letter : letters)
    ids_.emplace(letter, static_cast<std::int64_t>(ids_.size()) + unknown + 1);
}

std::vector<std::int64_t> Alphabet::encode(const std::string& word) const {
  std::vector<std::int64_t> ids{class_token};
  for (const char32_t letter : characters(word).substr(0, longest_)) ids.push_back(id(letter));
  return ids;
}

std::u32string Alphabet::letters() const {
  std::u32string result;
  for (const auto& [letter, id] : ids_) result += letter;
  return result;
}

std::int64_t Alphabet::id(char32_t letter) const {
  const char32_t small = letter >= U'A' && letter <= U'Z' ? letter - U'A' + U'a' : letter;
  for (const char32_t wanted : {letter, small}) {
    if (const auto found = ids_.find(wanted); found != ids_.end()) return found->second;
  }
  return unknown;
}

WordClassifier::WordClassifier(Alphabet alphabet, std::vector<std::string> classes,
                               const xgrad::EncoderConfig& encoder)
    : alphabet_(std::move(alphabet)), classes_(std::move(classes)), model_(config(encoder)) {}

WordClassifier WordClassifier::load(const std::string& path) {
  const SavedModel saved(path, task);
  std::u32string letters;
  for (const std::string& letter : saved.lines("letters")) {
    const auto points = decode_utf8(letter);
    if (!points || points->size() != 1)
      throw xgrad::FileError(path + ": the metadata \"letters\" must hold a letter a line");
    letters += *points;
  }
  return saved.model([&] {
    return WordClassifier(Alphabet(letters, saved.number("longest", longest_word)), saved.lines("classes"),
                          saved.encoder());
  });
}

void WordClassifier::save(const std::string& path) const {
  xgrad::Metadata metadata = sizes_of(model_.config().encoder);
  metadata["task"] = task;
  metadata["classes"] = joined_lines(classes_);
  metadata["longest"] = std::to_string(alphabet_.longest());
  for (const char32_t letter : alphabet_.letters()) metadata["letters"] += encode_utf8(letter) + "\n";
  save_safetensors(model_.state_dict(), path, metadata);
}

xgrad::Ids WordClassifier::ids(const std::string& word) const {
  return xgrad::pad_sequence({alphabet_.encode(word)}, Alphabet::pad);
}

WordClassifier::Answer WordClassifier::answer(const std::string& word) const {
  const xgrad::NoGrad guard;
  const xgrad::Variable<float> probabilities = softmax(model_.class_logits(ids(word)));
  const float* first = probabilities.value().data();
  const float* best = std::max_element(first, first + classes_.size());
  return {classes_[static_cast<std::size_t>(best - first)], static_cast<double>(*best)};
}

xgrad::ToyEncoderConfig WordClassifier::config(const xgrad::EncoderConfig& encoder) const {
  return {.vocab_size = alphabet_.size(),
          .max_len = alphabet_.positions(),
          .classes = classes_.size(),
          .encoder = encoder,
          .pad_id = Alphabet::pad,
          .pooling = xgrad::Pooling::first};
}

void print_answer(const std::string& word, const WordClassifier::Answer& answer) {
  char share[32];
  std::snprintf(share, sizeof share, "  (%.1f %%)", 100 * answer.probability);
  print_line("  " + on_the_left(word, 20) + " " + answer.label + share);
}

}  // namespace apps
