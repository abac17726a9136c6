#pragma once

// A small encoder that classifies words by their letters.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <xgrad/files.hpp>
#include <xgrad/xgrad.hpp>

#include "columns.hpp"
#include "saved_model.hpp"
#include "word_labels.hpp"

namespace apps {

inline constexpr std::size_t longest_word = 40;  // in letters; longer ones are cut off

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

  /// The letters with ids from unknown + 1 on, in this order.
  Alphabet(const std::u32string& letters, std::size_t longest) : longest_(longest) {
    for (const char32_t letter : letters)
      ids_.emplace(letter, static_cast<std::int64_t>(ids_.size()) + unknown + 1);
  }

  std::size_t size() const { return ids_.size() + 3; }

  /// The largest number of positions that a word takes, with its class token.
  std::size_t positions() const { return longest_ + 1; }

  std::vector<std::int64_t> encode(const std::string& word) const {
    std::vector<std::int64_t> ids{class_token};
    for (const char32_t letter : characters(word).substr(0, longest_)) ids.push_back(id(letter));
    return ids;
  }

  /// All letters, in the order of their ids.
  std::u32string letters() const {
    std::u32string result;
    for (const auto& [letter, id] : ids_) result += letter;
    return result;
  }
  std::size_t longest() const { return longest_; }

 private:
  /// Capitals that did not occur in training are read as small letters.
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

/// The alphabet, the classes and the encoder.
class WordClassifier {
 public:
  using Model = xgrad::ToyEncoder<float>;
  static constexpr const char* task = "word classes";

  WordClassifier(Alphabet alphabet, std::vector<std::string> classes, const xgrad::EncoderConfig& encoder)
      : alphabet_(std::move(alphabet)), classes_(std::move(classes)), model_(config(encoder)) {}

  /// Throws xgrad::FileError for a file that save() did not write.
  static WordClassifier load(const std::string& path) {
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

  void save(const std::string& path) const {
    xgrad::Metadata metadata = sizes_of(model_.config().encoder);
    metadata["task"] = task;
    metadata["classes"] = joined_lines(classes_);
    metadata["longest"] = std::to_string(alphabet_.longest());
    for (const char32_t letter : alphabet_.letters()) metadata["letters"] += encode_utf8(letter) + "\n";
    save_safetensors(model_.state_dict(), path, metadata);
  }

  const Alphabet& alphabet() const { return alphabet_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const Model& model() const { return model_; }

  void load_state_dict(const xgrad::StateDict<float>& state) const { model_.load_state_dict(state); }
  void eval() const { model_.eval(); }

  xgrad::Ids ids(const std::string& word) const {
    return xgrad::pad_sequence({alphabet_.encode(word)}, Alphabet::pad);
  }

  struct Answer {
    std::string label;
    double probability;
  };

  Answer answer(const std::string& word) const {
    const xgrad::NoGrad guard;
    const xgrad::Variable<float> probabilities = softmax(model_.class_logits(ids(word)));
    const float* first = probabilities.value().data();
    const float* best = std::max_element(first, first + classes_.size());
    return {classes_[static_cast<std::size_t>(best - first)], static_cast<double>(*best)};
  }

 private:
  xgrad::ToyEncoderConfig config(const xgrad::EncoderConfig& encoder) const {
    return {.vocab_size = alphabet_.size(),
            .max_len = alphabet_.positions(),
            .classes = classes_.size(),
            .encoder = encoder,
            .pad_id = Alphabet::pad,
            .pooling = xgrad::Pooling::first};
  }

  Alphabet alphabet_;
  std::vector<std::string> classes_;
  Model model_;
};

inline void print_answer(const std::string& word, const WordClassifier::Answer& answer) {
  std::printf("  %s %s  (%.1f %%)\n", on_the_left(word, 20).c_str(), answer.label.c_str(),
              100 * answer.probability);
}

}  // namespace apps
