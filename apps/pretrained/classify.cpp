// Classifies texts, or each word of them, with a fine-tuned model
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "../corpora/utf8.hpp"
#include "common/precision.hpp"
#include "common/texts.hpp"
#include "common/words.hpp"

using namespace apps;
using namespace xgrad::pretrained;
using xgrad::Array;
using xgrad::tokenizers::EncodeOptions, xgrad::tokenizers::Encoding, xgrad::tokenizers::Tokenizer;

namespace {

/// What the logits of a model mean. One label that is no number has a probability of its own, of which the
/// others are not the rest: as in transformers' pipeline.
ProblemType problem_of(const Config& config) {
  using enum ProblemType;
  const bool one = config.id2label.size() == 1;
  const ProblemType problem = config.problem_type.value_or(single_label_classification);
  return one && problem == single_label_classification ? multi_label_classification : problem;
}

/// "good 0.93  bad 0.05  neither 0.02", the most probable first; a number for regression.
std::string verdict(const Config& config, const float* logits) {
  const std::size_t count = config.id2label.size();
  const ProblemType problem = problem_of(config);
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

struct Options {
  std::string folder;
  std::vector<std::string> texts;
  std::optional<std::string> second;
  bool pairs = false;
  PrecisionOption precision;
};

/// The texts as tokens; pairs if the options ask for them.
Batch encoded(const Tokenizer& tokenizer, const Options& options, std::span<const std::string> texts,
              std::size_t max_length) {
  const EncodeOptions limit{.max_length = max_length};
  if (options.second) {
    const std::vector<std::string> seconds(texts.size(), *options.second);
    return encode(tokenizer, texts, seconds, limit);
  }
  if (!options.pairs) return encode(tokenizer, texts, limit);
  std::vector<std::string> firsts, seconds;
  for (const std::string& text : texts) {
    const std::size_t tab = text.find('\t');
    if (tab == text.npos || text.find('\t', tab + 1) != text.npos)
      throw std::runtime_error("a pair must be a text, a tab and a text, got " + printable(text));
    firsts.push_back(text.substr(0, tab));
    seconds.push_back(text.substr(tab + 1));
  }
  return encode(tokenizer, firsts, seconds, limit);
}

/// Prints show(config, text, encoding, logits, row) for each text.
template <class Model, class Show>
void classify(const Options& options, const Show& show) {
  const Tokenizer tokenizer = Tokenizer::from_folder(options.folder);
  const Model model = Model::from_folder(options.folder, options.precision.load_options({.complete = true}));
  check_vocabulary(tokenizer, model.config(), options.folder);
  model.encoder().skip_padding();
  for_each_batch(options.texts, [&](std::span<const std::string> texts) {
    const Batch batch = encoded(tokenizer, options, texts, *model.config().max_length());
    const Array<float> logits = model(batch).value();
    if (std::ranges::any_of(logits, [](float logit) { return std::isnan(logit); }))
      throw std::runtime_error(options.folder + ": logits must be numbers, got nan");
    for (std::size_t i = 0; i < texts.size(); ++i)
      print_line(show(model.config(), texts[i], batch.encodings[i], logits, i));
  });
}

int run_command(int argc, char** argv) {
  Options options;
  CommandLine app(
      "Prints the probabilities of the labels of each text, or of each line of the input; with a model whose "
      "head labels tokens, each word with its label.");
  app.add_option("DIR", options.folder, "The model's folder, or its name in the hub's cache")
      ->required()
      ->path(PathUse::input);
  app.add_option("TEXT", options.texts, "Texts; without any, the lines of the input");
  Option* const second =
      app.add_option("--second", options.second, "Classify each text with this second one");
  app.add_flag("--pairs", options.pairs, "Each text is a pair: a text, a tab and a second text")
      ->excludes(second);
  options.precision.add_to(app);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  const xgrad::NoGrad guard;
  options.folder = find_model(options.folder);
  if (!Config::from_folder(options.folder, false).architecture.ends_with("ForTokenClassification")) {
    classify<SequenceClassifier<float>>(options, labelled_text);
  } else if (options.second || options.pairs) {
    throw std::runtime_error(options.folder + ": labels words, not pairs of texts");
  } else {
    classify<TokenClassifier<float>>(options, labelled_words);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("classify", [&] { return run_command(argc, argv); });
}
