#pragma once

// Texts with a label each, or with one for each word: reading and splitting them, and a baseline.

#include <string>
#include <vector>

namespace apps {

struct LabelledText {
  std::string text;
  std::vector<std::string> labels;  ///< one, or one for each word
};

/// Texts to train on, and others to try the model on.
struct LabelledSplit {
  std::vector<LabelledText> train, test;
  bool of_words = false;  ///< whether their words have the labels

  /// Those of the texts to train on, in alphabetical order.
  std::vector<std::string> labels() const;
};

/// Reads UTF-8 files, plain or compressed by gzip: lines of a text, a tab and a label; or, if there are blank
/// lines in a file, sentences with a blank line after each, lines of columns, of which the first is a word
/// and the last its label (CoNLL). Holds out the texts of the file `test`, or, if that is empty, a tenth of
/// those of `data`. Throws std::runtime_error, `FILE:LINE: what must hold, got what`, and for files that do
/// not fit, for too few texts and for too many labels.
LabelledSplit read_labelled(const std::string& data, const std::string& test);

/// The share of right answers if each is the label that is most frequent in the texts to train on.
double most_frequent_label_accuracy(const LabelledSplit& split);

}  // namespace apps
