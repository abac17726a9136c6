// Classifies texts, or each word of them, with a fine-tuned model
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../program.hpp"
#include "texts.hpp"

using namespace apps;
using namespace xgrad::pretrained;
using xgrad::Array;

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

void classify_sequences(const std::string& folder, const std::vector<std::string>& given) {
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const auto model = SequenceClassifier<float>::from_folder(folder);
  model.encoder().skip_padding();
  for_each_text(given, texts_of_a_batch, [&](std::span<const std::string> texts) {
    for (std::size_t begin = 0; begin < texts.size(); begin += texts_of_a_batch) {
      const auto part = texts.subspan(begin, std::min(texts_of_a_batch, texts.size() - begin));
      const Array<float> logits =
          model(tokenizer.encode(part, {.max_length = model.config().max_length()})).value();
      for (std::size_t i = 0; i < part.size(); ++i)
        std::printf("%s\t%s\n", verdict(model.config(), &logits(i, 0)).c_str(), part[i].c_str());
    }
  });
}

/// The bytes of a text that some of its characters take.
std::string characters_of(const std::string& text, std::size_t begin, std::size_t end) {
  std::size_t character = 0, first = text.size(), last = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) == 0x80) continue;
    if (character == begin) first = i;
    if (character == end) last = i;
    ++character;
  }
  return text.substr(first, last - first);
}

/// "The/DET old/ADJ house/NOUN": a word has the label of its first token.
std::string labelled_words(const Config& config, const std::string& text, const Encoding& encoding,
                           const Array<float>& logits, std::size_t row) {
  std::string line;
  for (std::size_t i = 0; i < encoding.size();) {
    std::size_t next = i + 1;
    if (!encoding.words[i]) {
      i = next;
      continue;
    }
    while (next < encoding.size() && encoding.words[next] == encoding.words[i]) ++next;
    const float* const scores = &logits(row, i, 0);
    const auto label =
        static_cast<std::size_t>(std::max_element(scores, scores + config.id2label.size()) - scores);
    line += (line.empty() ? "" : " ") +
            characters_of(text, encoding.offsets[i].first, encoding.offsets[next - 1].second) + "/" +
            config.id2label[label];
    i = next;
  }
  return line;
}

void classify_tokens(const std::string& folder, const std::vector<std::string>& given) {
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const auto model = TokenClassifier<float>::from_folder(folder);
  model.encoder().skip_padding();
  for_each_text(given, texts_of_a_batch, [&](std::span<const std::string> texts) {
    for (std::size_t begin = 0; begin < texts.size(); begin += texts_of_a_batch) {
      const auto part = texts.subspan(begin, std::min(texts_of_a_batch, texts.size() - begin));
      const Batch batch = tokenizer.encode(part, {.max_length = model.config().max_length()});
      const Array<float> logits = model(batch).value();
      for (std::size_t i = 0; i < part.size(); ++i)
        std::puts(labelled_words(model.config(), part[i], batch.encodings[i], logits, i).c_str());
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  std::vector<std::string> texts;
  CLI::App app(
      "Prints the probabilities of the labels of each text, or of each line of the input; with a model whose "
      "head "
      "labels tokens, each word with its label.");
  app.add_option("DIR", folder, "The model's folder")->required();
  app.add_option("TEXT", texts, "Texts; without any, the lines of the input");
  if (const std::optional<int> exit_code = parse(app, argc, argv)) return *exit_code;
  return run_program("classify", [&] {
    const xgrad::NoGrad guard;
    if (Config::from_folder(folder).architecture.ends_with("ForTokenClassification")) {
      classify_tokens(folder, texts);
    } else {
      classify_sequences(folder, texts);
    }
    return 0;
  });
}
