// Prints how well a language model predicts a text
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include <xgrad/pretrained.hpp>

#include "../common/command_line.hpp"
#include "../common/interruption.hpp"
#include "../common/program.hpp"
#include "../common/progress.hpp"
#include "../corpora/plain_text.hpp"
#include "../pretrained/common/precision.hpp"
#include "common/language_model.hpp"

using namespace apps;

namespace {

struct Score {
  double loss = 0;  // the sum
  std::size_t tokens = 0;
  double mean() const { return loss / static_cast<double>(tokens); }
};

/// The loss of the tokens in windows of `length`, each of which begins `stride` behind the one before and
/// counts the tokens that were not in that one, as Hugging Face's page on perplexity does: it weighs the mean
/// of a window by one token less than it counts. https://huggingface.co/docs/transformers/perplexity
Score score(const LanguageModel& model, std::span<const std::int64_t> ids, std::size_t length,
            std::size_t stride) {
  const InterruptibleOps interruptible;
  Progress progress("tokens");
  Score score;
  std::size_t before = 0;
  for (std::size_t begin = 0; before < ids.size(); begin += stride) {
    const auto window = ids.subspan(begin, std::min(length, ids.size() - begin));
    const std::size_t fresh = begin + window.size() - before;
    const std::size_t predicted = std::min(fresh, window.size() - 1);  // nothing is before the first one
    if (fresh > 1) score.loss += model.loss(window, predicted) * static_cast<double>(fresh - 1);
    score.tokens += fresh - 1;
    before = begin + window.size();
    progress.update(before, ids.size());
  }
  return score;
}

int run_command(int argc, char** argv) {
  std::string path, text;
  std::optional<std::size_t> max_length, stride;
  PrecisionOption precision;
  CommandLine app(
      "Prints the perplexity of a text, e to the mean loss of its tokens, with a pretrained decoder or a "
      "model that train_gpt saved.");
  app.add_option("MODEL", path,
                 "The model's folder, its name in the hub's cache, a GGUF file, or a model or a checkpoint "
                 "of train_gpt")
      ->required()
      ->path(PathUse::input);
  app.add_option("TEXT", text, "A file in UTF-8, plain or compressed by gzip")
      ->required()
      ->path(PathUse::input);
  app.add_option("--max-length", max_length,
                 "Tokens of a window; by default 1024, or the maximum of the model if that is less")
      ->check(in_range<std::size_t>(2, 1000000));
  app.add_option(
         "--stride", stride,
         "Tokens from a window's begin to the next one's; by default half a window. Less takes longer "
         "and gives tokens more context")
      ->check(in_range<std::size_t>(2, 1000000));
  precision.add_to(app);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  const std::string all = exact_text_of(text);
  const auto model = LanguageModel::load(path, precision.load_options());
  constexpr std::size_t usual = 1024;
  const std::size_t most = model->max_length().value_or(max_length.value_or(usual));
  const std::size_t length = max_length.value_or(std::min(usual, most));
  if (length > most)
    throw std::invalid_argument("--max-length must be at most " + std::to_string(most) +
                                ", as the model's, got " + std::to_string(length));
  const std::size_t step = stride.value_or(std::max<std::size_t>(length / 2, 2));
  if (step > length)
    throw std::invalid_argument("--stride must be at most the " + std::to_string(length) +
                                " tokens of a window, got " + std::to_string(step));
  const std::vector<std::int64_t> ids = model->ids(all);
  if (ids.size() < 2) throw std::runtime_error(text + ": must have at least 2 tokens");
  const NotedSignals signals;
  const Score reached = score(*model, ids, length, step);
  if (std::isnan(reached.mean()))
    throw std::runtime_error(path + ": the loss of the text must be a number, got nan");
  std::printf("perplexity %.4f, loss %.4f, %zu tokens\n", std::exp(reached.mean()), reached.mean(),
              ids.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("perplexity", [&] { return run_command(argc, argv); });
}
