// Guesses the words that a mask hides in a text, with a pretrained model
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <xgrad/pretrained.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/columns.hpp"
#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "../corpora/utf8.hpp"
#include "common/precision.hpp"
#include "common/texts.hpp"

using namespace apps;
using namespace xgrad::pretrained;
using xgrad::Array, xgrad::Variable;
using xgrad::tokenizers::Encoding, xgrad::tokenizers::Tokenizer;

namespace {

/// Prints the most probable tokens at a place of the text, and the text with each.
void print_guesses(const Tokenizer& tokenizer, const Array<float>& probabilities, std::size_t place,
                   std::vector<std::int64_t> ids, std::size_t top) {
  std::vector<std::size_t> order(probabilities.shape(2));
  std::iota(order.begin(), order.end(), std::size_t{0});
  top = std::min(top, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
      [&](std::size_t a, std::size_t b) { return probabilities(0, place, a) > probabilities(0, place, b); });
  for (std::size_t i = 0; i < top; ++i) {
    const auto id = static_cast<std::int64_t>(order[i]);
    ids[place] = id;
    const std::string token = tokenizer.decode(std::vector{id}, false);
    char share[32];
    std::snprintf(share, sizeof share, "  %6.2f %%  ", 100 * double{probabilities(0, place, order[i])});
    const std::string word = token.substr(std::min(token.find_first_not_of(' '), token.size()));
    print_line(share + on_the_left(word, 16) + " " + tokenizer.decode(ids));
  }
}

int run_command(int argc, char** argv) {
  std::string folder;
  std::vector<std::string> texts;
  std::size_t top = 5;
  PrecisionOption precision;
  CommandLine app(
      "Prints the most probable words for each mask in a text, or in each line of the input; the mask is the "
      "tokenizer's, [MASK] or <mask>.");
  app.add_option("DIR", folder, "The model's folder, or its name in the hub's cache")
      ->required()
      ->path(PathUse::input);
  app.add_option("TEXT", texts, "Texts; without any, the lines of the input");
  app.add_option("--top", top, "Guesses for each mask")
      ->check(in_range<std::size_t>(1, 1000))
      ->capture_default_str();
  precision.add_to(app);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  folder = find_model(folder);
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const auto model = MaskedLM<float>::from_folder(folder, precision.load_options({.complete = true}));
  check_vocabulary(tokenizer, model.config(), folder);
  const std::int64_t mask = tokenizer.mask_id();
  const xgrad::NoGrad guard;
  for_each_text(texts, [&](const std::string& text) {
    if (text.find_first_not_of(" \t") == text.npos) {  // between paragraphs
      std::printf("\n");
      return;
    }
    const Batch batch = encode(tokenizer, std::vector{text}, {.max_length = model.config().max_length()});
    const Encoding& encoding = batch.encodings.front();
    if (std::ranges::find(encoding.ids, mask) == encoding.ids.end())
      throw std::invalid_argument("a text must have the mask " + tokenizer.token(mask) + " among the " +
                                  std::to_string(*model.config().max_length()) +
                                  " tokens that the model takes, got " + printable(text));
    const Variable<float> probabilities = softmax(model(batch), 2);
    if (std::ranges::any_of(probabilities.value(), [](float number) { return std::isnan(number); }))
      throw std::runtime_error(folder + ": probabilities must be numbers, got nan");
    print_line(text);
    for (std::size_t place = 0; place < encoding.size(); ++place) {
      if (encoding.ids[place] == mask)
        print_guesses(tokenizer, probabilities.value(), place, encoding.ids, top);
    }
    std::fflush(stdout);
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("fill_mask", [&] { return run_command(argc, argv); });
}
