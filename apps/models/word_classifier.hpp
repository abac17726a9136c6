#pragma once

// A small encoder that classifies words by their letters.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <xgrad/models/toy_encoder.hpp>

#include "../corpora/word_labels.hpp"

namespace apps {

inline constexpr std::size_t longest_word = 40;  // in letters; longer ones are cut off

/// Letters as ids. Every word starts with a class token, whose final state is what the classifier sees.
class Alphabet {
 public:
  static constexpr std::int64_t pad = 0, class_token = 1, unknown = 2;

  explicit Alphabet(const std::vector<LabelledWord>& words);

  /// The letters with ids from unknown + 1 on, in this order.
  Alphabet(const std::u32string& letters, std::size_t longest);

  std::size_t size() const { return ids_.size() + 3; }

  /// The largest number of positions that a word takes, with its class token.
  std::size_t positions() const { return longest_ + 1; }

  std::vector<std::int64_t> encode(const std::string& word) const;

  /// All letters, in the order of their ids.
  std::u32string letters() const;
  std::size_t longest() const { return longest_; }

 private:
  /// Capitals that did not occur in training are read as small letters.
  std::int64_t id(char32_t letter) const;

  std::map<char32_t, std::int64_t> ids_;
  std::size_t longest_ = 0;
};

/// The alphabet, the classes and the encoder.
class WordClassifier {
 public:
  using Model = xgrad::ToyEncoder<float>;
  static constexpr const char* task = "word classes";

  WordClassifier(Alphabet alphabet, std::vector<std::string> classes, const xgrad::EncoderConfig& encoder);

  /// Throws xgrad::FileError for a file that save() did not write.
  static WordClassifier load(const std::string& path);

  void save(const std::string& path) const;

  const Alphabet& alphabet() const { return alphabet_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const Model& model() const { return model_; }

  void load_state_dict(const xgrad::StateDict<float>& state) const { model_.load_state_dict(state); }
  void eval() const { model_.eval(); }

  xgrad::Ids ids(const std::string& word) const;

  struct Answer {
    std::string label;
    double probability;
  };

  Answer answer(const std::string& word) const;

 private:
  xgrad::ToyEncoderConfig config(const xgrad::EncoderConfig& encoder) const;

  Alphabet alphabet_;
  std::vector<std::string> classes_;
  Model model_;
};

void print_answer(const std::string& word, const WordClassifier::Answer& answer);

}  // namespace apps
