#include "plain_text.hpp"

#include <stdexcept>

#include "brown_corpus.hpp"
#include "line_reader.hpp"
#include "utf8.hpp"

namespace apps {
namespace {

std::vector<std::string> read_texts(const std::string& path) {
  LineReader reader(path);
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

std::vector<std::string> brown_texts() {
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

}  // namespace

std::vector<std::string> texts_of(const std::string& path) {
  return path.empty() ? brown_texts() : read_texts(path);
}

}  // namespace apps
