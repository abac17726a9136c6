#pragma once

// Sentences whose words have tags: reading them, splitting them, and a baseline to compare with.

#include <string>
#include <string_view>
#include <vector>

namespace apps {

struct TaggedSentence {
  std::vector<std::string> words;
  std::vector<std::string> tags;  ///< one for each word
};

/// The sentences of one file.
using TaggedFile = std::vector<TaggedSentence>;

/// The universal tag of a tag of the Brown corpus. The marks of titles (-tl), headlines (-hl) and cited words
/// (-nc) are ignored, foreign words (fw-) are X, and tags joined by + that the table lacks, such as that of
/// "it's" (pps+bez), are particles. Throws std::invalid_argument for a tag that is not in the corpus.
std::string universal_tag(std::string_view brown);

/// Reads a text file with a sentence a line. Words are separated by blanks and followed by a slash and their
/// tag: The/at. A slash before the last one belongs to the word. Throws std::runtime_error, `FILE:LINE: what
/// must hold, got what`.
TaggedFile read_tagged_file(const std::string& path);

/// All files of a folder, by their names. Throws std::runtime_error for a folder without any.
std::vector<TaggedFile> read_tagged_folder(const std::string& folder);

struct TaggedSplit {
  std::vector<TaggedSentence> train, validation, test;
};

/// One file in 20 is for validation and two are for the test; this takes at least 10 files. Throws
/// std::invalid_argument if a part is empty.
TaggedSplit split_files(const std::vector<TaggedFile>& files);

/// The accuracy on `test` of giving each word the tag that it has most often in `train`. Words that are not
/// in `train` get the tag that is most frequent among words that occur there once.
double most_frequent_tag_accuracy(const std::vector<TaggedSentence>& train,
                                  const std::vector<TaggedSentence>& test);

}  // namespace apps
