// Answers for words, given or piped in, with a model that train_syllables saved
#include <optional>
#include <string>
#include <vector>

#include <xgrad/xgrad.hpp>

#include "common/command_line.hpp"
#include "common/program.hpp"
#include "models/word_classifier.hpp"

using namespace apps;

namespace {

int run_command(int argc, char** argv) {
  std::string path;
  std::vector<std::string> words;
  CommandLine app(
      "Answers for words, or for each word of its input, with a model that train_syllables --save wrote.");
  app.add_option("model", path, "The file of the model")->required()->path(PathUse::input);
  app.add_option("words", words, "Words; without any, those of the input");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  const WordClassifier classifier = WordClassifier::load(path);
  for (const std::string& word : words) print_answer(word, classifier.answer(word));
  if (!words.empty()) return 0;
  while (const std::optional<std::string> line = next_input_line())
    for (const std::string& word : xgrad::whitespace_tokens(*line))
      print_answer(word, classifier.answer(word));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("label_words", [&] { return run_command(argc, argv); });
}
