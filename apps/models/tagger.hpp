#pragma once

// An encoder that names the tag of every word of a sentence.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <xgrad/models/attention/positional_encoding.hpp>
#include <xgrad/models/layers/embedding.hpp>
#include <xgrad/models/transformer/encoder.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "../corpora/tagged_corpus.hpp"

namespace apps {

/// The model's input: ids of each word and of its parts, (batch, seq) each; 0 is padding.
struct WordFeatures {
  xgrad::Ids words, prefixes, suffixes, short_suffixes, shapes;
};

/// A number in [1, shape_count) for how a word is spelled: whether it begins with a capital, whether it has
/// small letters, digits, hyphens or other marks, and whether it is the first of its sentence.
inline constexpr std::size_t shape_count = 65;
std::int64_t shape_of(const std::string& word, bool first);

/// The last or the first characters of a word. A word that is not longer comes whole, with a mark.
std::string ending(const std::string& word, std::size_t count);
std::string beginning(const std::string& word, std::size_t count);

/// The ids of words, of their parts and of the tags.
class TaggerVocabulary {
 public:
  static constexpr std::size_t longest_sentence = 128;  // words; longer ones are cut into pieces
  static constexpr std::int64_t unknown = 1;

  explicit TaggerVocabulary(const std::vector<TaggedSentence>& sentences);

  TaggerVocabulary(xgrad::Vocabulary words, xgrad::Vocabulary prefixes, xgrad::Vocabulary suffixes,
                   xgrad::Vocabulary short_suffixes, xgrad::Vocabulary tags);

  const xgrad::Vocabulary& words() const { return words_; }
  const xgrad::Vocabulary& prefixes() const { return prefixes_; }
  const xgrad::Vocabulary& suffixes() const { return suffixes_; }
  const xgrad::Vocabulary& short_suffixes() const { return short_suffixes_; }
  const xgrad::Vocabulary& tags() const { return tags_; }

  /// The features of sentences of at most longest_sentence words.
  WordFeatures features(const std::vector<const std::vector<std::string>*>& sentences) const;

  bool knows(const std::string& word) const;

 private:
  xgrad::Vocabulary words_, prefixes_, suffixes_, short_suffixes_, tags_;
};

/// x moved by one position along the second axis, up (by 1) or down (by -1); zeros come in at the end.
xgrad::Variable<float> shifted(const xgrad::Variable<float>& x, int by);

/// Adds the embeddings of a word's features, its two neighbours' (each through a linear layer) and its
/// position's; an encoder and a linear layer make them the scores of all tags.
class TaggerModel : public xgrad::Module<float> {
 public:
  TaggerModel(const TaggerVocabulary& vocabulary, const xgrad::EncoderConfig& config);

  /// The scores, (batch, seq, tags).
  xgrad::Variable<float> operator()(const WordFeatures& features) const;

 private:
  xgrad::Embedding<float> words_, prefixes_, suffixes_, short_suffixes_, shapes_;
  xgrad::LearnedPositionalEncoding<float> positions_;
  xgrad::Linear<float> before_, after_;
  xgrad::LayerNorm<float> norm_;
  double dropout_;
  xgrad::TransformerEncoder<float> encoder_;
  xgrad::Linear<float> head_;
};

/// A vocabulary and its model.
class Tagger {
 public:
  static constexpr const char* task = "tags";

  Tagger(TaggerVocabulary vocabulary, const xgrad::EncoderConfig& config);

  /// Throws xgrad::FileError for a file that save() did not write.
  static Tagger load(const std::string& path);

  void save(const std::string& path) const;

  const TaggerVocabulary& vocabulary() const { return vocabulary_; }
  const TaggerModel& model() const { return model_; }

  void load_state_dict(const xgrad::StateDict<float>& state) const { model_.load_state_dict(state); }
  void eval() const { model_.eval(); }

  /// The tag of every word, sentence by sentence, in evaluation mode.
  std::vector<std::vector<std::string>> tags(const std::vector<std::vector<std::string>>& sentences) const;

 private:
  TaggerVocabulary vocabulary_;
  xgrad::EncoderConfig config_;
  TaggerModel model_;
};

}  // namespace apps
