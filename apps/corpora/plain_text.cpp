#include "plain_text.hpp"

#include <stdexcept>
#include <string_view>

#include "brown_corpus.hpp"
#include "line_reader.hpp"
#include "utf8.hpp"

namespace apps {
namespace {

/// Calls f(line, is_blank, line_end) for each line of the file, of which one must not be blank.
template <class F>
void for_each_line(const std::string& path, const F& f) {
  LineReader reader(path);
  bool any = false;
  for (std::string line; reader.next(line);) {
    if (!decode_utf8(line)) reader.fail("a line must be valid UTF-8", line);
    const bool is_blank = line.find_first_not_of(" \t") == line.npos;
    any = any || !is_blank;
    f(line, is_blank, reader.line_end());
  }
  if (!any) throw std::runtime_error(path + ": must hold text, got blank lines or none");
}

std::vector<std::string> read_texts(const std::string& path) {
  std::vector<std::string> texts;
  bool continues = false;
  for_each_line(path, [&](const std::string& line, bool is_blank, std::string_view) {
    if (!is_blank) {
      if (!continues) texts.emplace_back();
      texts.back() += line + '\n';
    }
    continues = !is_blank;
  });
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

std::string whole_text_of(const std::string& path) {
  std::string all;
  if (path.empty()) {
    for (const std::string& text : brown_texts()) all += (all.empty() ? "" : "\n") + text;
  } else {
    for_each_line(path, [&](const std::string& line, bool, std::string_view) { all += line + '\n'; });
  }
  return all;
}

std::string exact_text_of(const std::string& path) {
  std::string all;
  for_each_line(path,
                [&](const std::string& line, bool, std::string_view line_end) { (all += line) += line_end; });
  return all;
}

}  // namespace apps
