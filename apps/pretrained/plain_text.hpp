#pragma once

// Text to learn a language from.

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../brown_corpus.hpp"

namespace apps {

/// The texts of a UTF-8 file, plain or compressed by gzip: blank lines separate them. Throws
/// std::runtime_error, `FILE:LINE: what must hold, got what`, for a line that is not UTF-8 or too long, and
/// for a file without any text.
inline std::vector<std::string> read_texts(const std::string& path) {
  detail::LineReader reader(path);
  std::vector<std::string> texts;
  bool continues = false;
  for (std::string line; reader.next(line);) {
    if (!decode_utf8(line)) reader.fail("a line must be valid UTF-8", line);
    const bool is_blank = line.find_first_not_of(" \t") == line.npos;
    if (!is_blank) {
      if (!continues) texts.emplace_back();
      texts.back() += line + '\n';
    }
    continues = !is_blank;
  }
  if (texts.empty()) throw std::runtime_error(path + ": must hold text, got blank lines or none");
  return texts;
}

/// The 500 texts of the Brown corpus, a sentence a line.
inline std::vector<std::string> brown_texts() {
  std::vector<std::string> texts;
  for (const TaggedFile& file : brown_corpus()) {
    std::string& text = texts.emplace_back();
    for (const TaggedSentence& sentence : file) {
      for (const std::string& word : sentence.words) text += word + ' ';
      text.back() = '\n';
    }
  }
  return texts;
}

/// The texts of a file, or for an empty path those of the Brown corpus.
inline std::vector<std::string> texts_of(const std::string& path) {
  return path.empty() ? brown_texts() : read_texts(path);
}

}  // namespace apps
