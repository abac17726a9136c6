// Makes a small BERT with random weights and a WordPiece vocabulary of its own, for pretrain
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include <xgrad/pretrained.hpp>
#include <xgrad/tokenizers.hpp>
#include <xgrad/xgrad.hpp>

#include "../common/command_line.hpp"
#include "../common/program.hpp"
#include "../corpora/plain_text.hpp"

using namespace apps;
namespace pretrained = xgrad::pretrained;
namespace tokenizers = xgrad::tokenizers;

namespace {

struct TinyBertOptions {
  std::string folder, text;
  std::size_t vocab_size = 2000, hidden_size = 64, layers = 2, heads = 4, intermediate_size = 128;
  std::size_t max_length = 128;
  std::uint64_t seed = 0;
  bool cased = false;
};

pretrained::Config config_of(const TinyBertOptions& options, std::size_t vocab_size) {
  pretrained::Config config;
  config.vocab_size = vocab_size;
  config.hidden_size = config.embedding_size = options.hidden_size;
  config.num_hidden_layers = options.layers;
  config.num_attention_heads = options.heads;
  config.intermediate_size = options.intermediate_size;
  config.max_position_embeddings = options.max_length;
  return config;
}

int run(const TinyBertOptions& options) {
  if (options.hidden_size % options.heads != 0)
    throw std::invalid_argument("--heads must divide --hidden-size, got " + std::to_string(options.heads) +
                                " and " + std::to_string(options.hidden_size));
  pretrained::check_save(options.folder);
  const std::vector<std::string> texts = texts_of(options.text);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> vocabulary =
      tokenizers::train_word_piece(texts, {.vocab_size = options.vocab_size, .lowercase = !options.cased});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  xgrad::manual_seed(options.seed);
  const pretrained::MaskedLM<float> model(config_of(options, vocabulary.size()));
  xgrad::write_folder(options.folder, [&](const std::string& folder) {
    tokenizers::write_word_piece(folder, vocabulary,
                                 {.lowercase = !options.cased, .max_length = options.max_length});
    tokenizers::Tokenizer::from_folder(folder).check_save(options.folder);  // refuses other tokenizers' files
    save_folder(model, folder);
  });
  std::printf("%zu tokens from %zu texts in %.1f s, %zu parameters\n", vocabulary.size(), texts.size(),
              seconds.count(), model.parameter_count());
  return 0;
}

void add_options(CommandLine& app, TinyBertOptions& options) {
  const Check sizes = in_range<std::size_t>(1, 4096);
  app.add_option("folder", options.folder, "The folder to write")->required()->path(PathUse::output);
  app.add_option("--text", options.text,
                 "Take the vocabulary from this file of texts separated by blank lines instead of the Brown "
                 "corpus")
      ->path(PathUse::input);
  app.add_option("--vocab-size", options.vocab_size,
                 "Number of tokens; at least the characters and special tokens, even if they are more")
      ->check(in_range<std::size_t>(1, 1000000))
      ->capture_default_str();
  app.add_option("--hidden-size", options.hidden_size, "Width of the encoder")
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--layers", options.layers, "Encoder layers")
      ->check(in_range<std::size_t>(1, 64))
      ->capture_default_str();
  app.add_option("--heads", options.heads, "Attention heads; they divide the width")
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--intermediate-size", options.intermediate_size, "Width of the feed-forward layers")
      ->check(sizes)
      ->capture_default_str();
  app.add_option("--max-length", options.max_length,
                 "Maximum number of tokens of a text, including [CLS] and [SEP]")
      ->check(in_range<std::size_t>(3, 4096))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the weights")
      ->check(in_range<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_flag("--cased", options.cased, "Distinguish upper and lower case, and keep accents");
}

int run_command(int argc, char** argv) {
  TinyBertOptions options;
  CommandLine app(
      "Makes a folder with a small BERT, as Hugging Face's libraries read it: random weights, and a "
      "WordPiece "
      "vocabulary of the Brown corpus or of a text of your own.");
  add_options(app, options);
  if (const std::optional<int> exit_code = app.parse(argc, argv)) return *exit_code;
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("tiny_bert", [&] { return run_command(argc, argv); });
}
