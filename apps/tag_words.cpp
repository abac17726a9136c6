// Tags the words of sentences, given or piped in, with a model that train_tagger saved
#include <iostream>
#include <optional>

#include <xgrad/xgrad.hpp>

#include "common/command_line.hpp"
#include "common/program.hpp"
#include "corpora/utf8.hpp"
#include "models/tagger.hpp"

using namespace apps;

namespace {

/// Splits punctuation off the ends of words, as in the Brown corpus.
std::vector<std::string> words_and_marks(const std::string& line) {
  static_cast<void>(characters(line));  // throws for what is not UTF-8
  constexpr std::string_view marks = ".,;:!?()\"";
  std::vector<std::string> words;
  for (std::string word : xgrad::whitespace_tokens(line)) {
    std::vector<std::string> after;
    while (word.size() > 1 && marks.find(word.front()) != marks.npos) {
      words.emplace_back(1, word.front());
      word.erase(0, 1);
    }
    while (word.size() > 1 && marks.find(word.back()) != marks.npos) {
      after.emplace_back(1, word.back());
      word.pop_back();
    }
    words.push_back(word);
    words.insert(words.end(), after.rbegin(), after.rend());
  }
  return words;
}

void print_tagged(const Tagger& tagger, const std::string& line) {
  const std::vector<std::string> words = words_and_marks(line);
  const std::vector<std::string> tags = tagger.tags({words})[0];
  for (std::size_t i = 0; i < words.size(); ++i)
    std::cout << (i > 0 ? " " : "") << words[i] << '/' << tags[i];
  std::cout << std::endl;
}

int run_command(int argc, char** argv) {
  std::string path;
  std::vector<std::string> sentences;
  CommandLine app(
      "Tags the words of sentences, or of each line of its input, with a model that train_tagger --save "
      "wrote.");
  app.add_option("model", path, "The file of the model")->required()->path(PathUse::input);
  app.add_option("sentences", sentences, "Sentences; without any, the lines of the input");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  const Tagger tagger = Tagger::load(path);
  for (const std::string& sentence : sentences) print_tagged(tagger, sentence);
  if (!sentences.empty()) return 0;
  while (const std::optional<std::string> line = next_input_line()) print_tagged(tagger, *line);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("tag_words", [&] { return run_command(argc, argv); });
}
