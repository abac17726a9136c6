#pragma once

// Words with labels: reading them, a fixed split, and baselines to compare with.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace apps {

struct LabelledWord {
  std::string word;   ///< UTF-8, as the file spells it
  std::string label;  ///< any text without blanks
  bool operator==(const LabelledWord&) const = default;
};

inline constexpr std::size_t max_classes = 1000;

/// The file of English words and their numbers of syllables, of which apps/data/NOTICE.md tells.
std::string syllables_file();

/// The distinct labels: in numerical order when all are integers, else in the order of their bytes.
std::vector<std::string> classes_of(const std::vector<LabelledWord>& words);

/// Reads a UTF-8 file, plain or compressed by gzip, of lines `word label`, separated by tabs or spaces.
///
/// Blank lines, CRLF, a byte order mark and a missing last newline are accepted; repeated rows count once.
/// Throws std::runtime_error, `FILE:LINE: what must hold, got what`, for: anything but a regular file; a line
/// without exactly a word and a label, of more than max_line_bytes, with control characters, or not UTF-8; a
/// word with two different labels; fewer than 2 or more than max_classes labels.
std::vector<LabelledWord> read_word_labels(const std::string& path);

// The split

/// The 64-bit FNV-1a hash of Fowler, Noll and Vo, the same on every machine.
std::uint64_t fnv1a(std::string_view text);

/// Whether a word is held out, as about one in ten is. It depends on the word alone, not on the case of A to
/// Z.
bool is_held_out(std::string_view word);

struct WordSplit {
  std::vector<LabelledWord> train;
  std::vector<LabelledWord> held_out;
};

/// Splits the words by is_held_out. Throws std::invalid_argument if a part is empty.
WordSplit split_words(const std::vector<LabelledWord>& words);

// Baselines

struct Baseline {
  std::string name;
  double accuracy;  ///< share of the held-out words that it labels correctly
};

/// Multinomial naive Bayes on the 1 to 4 letters in a row of a word with its boundaries marked, with Laplace
/// smoothing: argmax_c log P(c) + sum_g log((n(g, c) + 1) / (n(c) + V)), over the n-grams g seen in training,
/// V different ones.
class NgramBayes {
 public:
  explicit NgramBayes(const std::vector<LabelledWord>& train);

  /// log P(c) + sum_g log P(g | c) of every class, in the order of classes_of.
  std::vector<double> scores(const std::string& word) const;

  /// The label of the highest score; of several the first.
  const std::string& predict(const std::string& word) const;

 private:
  static constexpr std::size_t max_order = 4;
  using Ngram = std::array<char32_t, max_order>;  // shorter ones end in zeros
  struct Hash {
    std::size_t operator()(const Ngram& ngram) const;
  };

  template <class Visit>
  static void each_ngram(const std::string& word, Visit visit);

  void count(const std::string& word, std::size_t c);

  std::vector<std::string> classes_;
  std::vector<double> words_, ngrams_, log_prior_, log_total_;
  std::unordered_map<Ngram, std::vector<std::pair<std::size_t, double>>, Hash> counts_;
};

/// The label that most training words have; of several the first.
std::string majority_label(const std::vector<LabelledWord>& train);

/// The accuracies of `majority` and `letter_ngram_bayes`, learned from the training words.
std::vector<Baseline> baselines(const WordSplit& split);

/// The number of English syllables by a rule: groups of vowels, without a silent e at the end (that of
/// "table" is not), and at least 1.
int vowel_rule(std::string_view word);

/// The accuracy of vowel_rule on words labelled with their number of English syllables.
Baseline vowel_rule_baseline(const WordSplit& split);

}  // namespace apps
