// Classifies texts, or each word of them, with a fine-tuned model
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "common/texts.hpp"
#include "common/words.hpp"

using namespace apps;
using namespace xgrad::pretrained;
using xgrad::Array;
using xgrad::tokenizers::Encoding, xgrad::tokenizers::Tokenizer;

namespace {

/// "good 0.93  bad 0.05  neither 0.02", the most probable first; a number for regression.
std::string verdict(const Config& config, const float* logits) {
  const std::size_t count = config.id2label.size();
  const bool one = count == 1;
  const ProblemType problem =
      config.problem_type.value_or(one ? ProblemType::regression : ProblemType::single_label_classification);
  std::vector<std::pair<double, std::size_t>> scores;
  double sum = 0;
  const double largest = *std::max_element(logits, logits + count);
  for (std::size_t i = 0; i < count; ++i) {
    const double logit = logits[i];
    double score = logit;
    if (problem == ProblemType::single_label_classification) score = std::exp(logit - largest);
    if (problem == ProblemType::multi_label_classification) score = 1 / (1 + std::exp(-logit));
    scores.emplace_back(score, i);
    sum += score;
  }
  if (problem != ProblemType::regression)
    std::ranges::stable_sort(scores, std::greater(), [](const auto& s) { return s.first; });
  std::string text;
  for (const auto& [score, i] : scores) {
    char number[32];
    std::snprintf(number, sizeof number, "%.4f",
                  problem == ProblemType::single_label_classification ? score / sum : score);
    text += (text.empty() ? "" : "  ") + config.id2label[i] + " " + number;
  }
  return text;
}

std::string labelled_text(const Config& config, const std::string& text, const Encoding&,
                          const Array<float>& logits, std::size_t row) {
  return verdict(config, &logits(row, 0)) + "\t" + text;
}

/// "The/DET old/ADJ house/NOUN": a word has the label of its first token, "?" if none is left of it.
std::string labelled_words(const Config& config, const std::string& text, const Encoding& encoding,
                           const Array<float>& logits, std::size_t row) {
  const std::vector<std::string> words = xgrad::whitespace_tokens(text);
  const auto tokens = first_tokens(encoding, word_begins(text));
  std::string line;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string label = "?";
    if (tokens[i]) {
      const float* const scores = &logits(row, *tokens[i], 0);
      label = config.id2label[static_cast<std::size_t>(
          std::max_element(scores, scores + config.id2label.size()) - scores)];
    }
    line += (i == 0 ? "" : " ") + words[i] + "/" + label;
  }
  return line;
}

/// Prints show(config, text, encoding, logits, row) for each text.
template <class Model, class Show>
void classify(const std::string& folder, const std::vector<std::string>& given, const Show& show) {
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const Model model = Model::from_folder(folder);
  model.encoder().skip_padding();
  for_each_text(given, texts_of_a_batch, [&](std::span<const std::string> texts) {
    for (std::size_t begin = 0; begin < texts.size(); begin += texts_of_a_batch) {
      const auto part = texts.subspan(begin, std::min(texts_of_a_batch, texts.size() - begin));
      const Batch batch = encode(tokenizer, part, {.max_length = model.config().max_length()});
      const Array<float> logits = model(batch).value();
      for (std::size_t i = 0; i < part.size(); ++i)
        std::puts(show(model.config(), part[i], batch.encodings[i], logits, i).c_str());
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  std::vector<std::string> texts;
  CommandLine app(
      "Prints the probabilities of the labels of each text, or of each line of the input; with a model whose "
      "head "
      "labels tokens, each word with its label.");
  app.add_option("DIR", folder, "The model's folder")->required();
  app.add_option("TEXT", texts, "Texts; without any, the lines of the input");
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run_program("classify", [&] {
    const xgrad::NoGrad guard;
    if (Config::from_folder(folder).architecture.ends_with("ForTokenClassification")) {
      classify<TokenClassifier<float>>(folder, texts, labelled_words);
    } else {
      classify<SequenceClassifier<float>>(folder, texts, labelled_text);
    }
    return 0;
  });
}
