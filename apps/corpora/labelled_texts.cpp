#include "labelled_texts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include <xgrad/train/data.hpp>
#include <xgrad/train/vocabulary.hpp>

#include "line_reader.hpp"
#include "utf8.hpp"
#include "word_labels.hpp"

namespace apps {
namespace {

/// The texts of a file, and whether their words have the labels.
struct LabelledTexts {
  std::vector<LabelledText> texts;
  bool of_words = false;
};

/// "text<TAB>label".
LabelledText labelled_line(const LineReader& reader, const std::string& line) {
  const std::size_t tab = line.rfind('\t');
  if (tab == line.npos || tab == 0 || tab + 1 == line.size())
    reader.fail("a line must be a text, a tab and a label", line);
  return {line.substr(0, tab), {line.substr(tab + 1)}};
}

/// Adds the word of a line "word ... label" to the sentence.
void add_word(const LineReader& reader, const std::string& line, LabelledText& sentence) {
  const std::vector<std::string> columns = xgrad::whitespace_tokens(line);
  if (columns.size() < 2)
    reader.fail("a line must have a word and a label, as others of a sentence do", line);
  if (columns.front() == "-DOCSTART-") return;
  if (!sentence.text.empty()) sentence.text += ' ';
  sentence.text += columns.front();
  sentence.labels.push_back(columns.back());
}

LabelledTexts read_labelled_texts(const std::string& path) {
  LabelledTexts all;
  {
    LineReader reader(path);
    for (std::string line; reader.next(line);) {
      if (!decode_utf8(line)) reader.fail("a line must be valid UTF-8", line);
      all.of_words = all.of_words || line.find_first_not_of(" \t") == line.npos;
    }
  }
  LineReader reader(path);
  LabelledText sentence;
  const auto end_sentence = [&] {
    if (!sentence.labels.empty()) all.texts.push_back(std::exchange(sentence, {}));
  };
  for (std::string line; reader.next(line);) {
    if (!all.of_words) {
      all.texts.push_back(labelled_line(reader, line));
    } else if (line.find_first_not_of(" \t") == line.npos) {
      end_sentence();
    } else {
      add_word(reader, line, sentence);
    }
  }
  end_sentence();
  if (all.texts.empty()) throw std::runtime_error(path + ": must hold texts with labels, got none");
  return all;
}

}  // namespace

std::vector<std::string> LabelledSplit::labels() const {
  std::set<std::string> found;
  for (const LabelledText& text : train) found.insert(text.labels.begin(), text.labels.end());
  return {found.begin(), found.end()};
}

LabelledSplit read_labelled(const std::string& data, const std::string& test) {
  LabelledTexts all = read_labelled_texts(data);
  LabelledSplit split{.train = {}, .test = {}, .of_words = all.of_words};
  if (!test.empty()) {
    LabelledTexts held_out = read_labelled_texts(test);
    if (held_out.of_words != all.of_words)
      throw std::runtime_error(test + ": must label " + (all.of_words ? "words" : "texts") + ", as " + data +
                               " does");
    split.train = std::move(all.texts);
    split.test = std::move(held_out.texts);
  } else {
    const std::size_t held_out = all.texts.size() / 10;
    if (held_out == 0)
      throw std::runtime_error(data + ": must hold 10 texts or more, one of them held out, got " +
                               std::to_string(all.texts.size()));
    xgrad::Generator generator(0);  // the same texts in every run
    const auto parts =
        xgrad::random_split(all.texts.size(), {held_out, all.texts.size() - held_out}, generator);
    for (const std::size_t i : parts[0]) split.test.push_back(std::move(all.texts[i]));
    for (const std::size_t i : parts[1]) split.train.push_back(std::move(all.texts[i]));
  }
  const std::size_t labels = split.labels().size();
  if (labels < 2 || labels > max_classes)
    throw std::runtime_error(data + ": must have 2 to " + std::to_string(max_classes) + " labels, got " +
                             std::to_string(labels));
  return split;
}

double most_frequent_label_accuracy(const LabelledSplit& split) {
  std::map<std::string, std::size_t> counts;
  for (const LabelledText& text : split.train)
    for (const std::string& label : text.labels) ++counts[label];
  const auto best = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  std::size_t right = 0, all = 0;
  for (const LabelledText& text : split.test) {
    right += static_cast<std::size_t>(std::ranges::count(text.labels, best->first));
    all += text.labels.size();
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace apps
