#pragma once

// Texts with a label each, or with one for each word: reading and splitting them, and a baseline.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace apps {

struct LabelledText {
  std::string text;
  std::optional<std::string> second;  ///< of a pair
  std::vector<std::string> labels;    ///< one, or one for each word
  std::vector<std::size_t> lines;     ///< of the file, in which the labels are
};

/// How files hold texts and labels.
struct LabelledForm {
  /// "lines", "words", "csv", "tsv" or "jsonl"; empty: as the ending of the file's name or its lines tell.
  std::string format = {};
  /// Names of columns, which the first line has then, or of members of objects.
  std::optional<std::string> text = {}, second = {}, label = {};
  bool pairs = false;  ///< lines without names: a text, a second text and a label
};

/// Texts to train on, and others to try the model on.
struct LabelledSplit {
  std::vector<LabelledText> train, test;
  bool of_words = false;           ///< whether their words have the labels
  std::vector<std::string> notes;  ///< what was left out of the files
  std::vector<std::string> forms;  ///< how each file was read, with the numbers of its texts and labels

  /// Those of the texts to train on, in alphabetical order.
  std::vector<std::string> labels() const;
};

/// Reads UTF-8 files, plain or compressed by gzip, of one of these formats:
/// - lines: a text, a tab and a label, with tabs between more columns if the first line names them, and
///   quotes as any character;
/// - words: sentences with a blank line after each, lines of columns, of which the first is a word and the
///   last its label (CoNLL);
/// - csv: comma-separated values (RFC 4180), of which the first record names the columns; tsv: with tabs;
/// - jsonl: an object in each line.
///
/// The default names are `label`, and `text` or that of the only other column. Blanks around labels are
/// ignored, and so are blank lines. Holds out the texts of the file `test`, or, if that is empty, a tenth of
/// those of `data`, but none whose labels no other text has. Throws std::runtime_error, `FILE:LINE: what must
/// hold, got what`, also for a label of `test` that `data` does not have, for a first line that seems to name
/// columns, and for files that do not fit, too few texts and too many labels.
LabelledSplit read_labelled(const std::string& data, const std::string& test, const LabelledForm& form = {});

/// The share of right answers if each is the label that is most frequent in the texts to train on.
double most_frequent_label_accuracy(const LabelledSplit& split);

}  // namespace apps
