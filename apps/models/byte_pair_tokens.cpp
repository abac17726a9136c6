// Tokens of byte-level byte pair encoding.
#include "text_tokens.hpp"

#include <span>
#include <utility>

#include <xgrad/tokenizers/byte_level_bpe_trainer.hpp>
#include <xgrad/tokenizers/decode_stream.hpp>
#include <xgrad/tokenizers/tokenizer.hpp>
#include <xgrad/tokenizers/tokenizer_files.hpp>

#include "../common/temporary_folder.hpp"

namespace apps {
namespace {

using xgrad::tokenizers::ByteLevelBpe, xgrad::tokenizers::Tokenizer;

/// Tokenizers are read from folders.
Tokenizer tokenizer_of(const ByteLevelBpe& trained) {
  const TemporaryFolder folder;
  write_byte_level_bpe(folder.path(), trained);
  return Tokenizer::from_folder(folder.path());
}

/// The token with GPT-2's characters for a blank and a line break as signs.
std::string label_of(std::string token) {
  for (const auto& [sign, shown] : {std::pair{"Ġ", "␣"}, {"Ċ", "↵"}}) {
    for (std::size_t at = token.find(sign); at != token.npos; at = token.find(sign, at))
      token.replace(at, std::string_view(sign).size(), shown);
  }
  return token;
}

}  // namespace

class TextTokens::BytePairs : public Kind {
 public:
  /// Throws xgrad::ValueError for what is no vocabulary.
  explicit BytePairs(ByteLevelBpe trained)
      : trained_(std::move(trained)), tokenizer_(tokenizer_of(trained_)) {}

  void save_to(xgrad::Metadata& metadata) const override {
    metadata["vocabulary"] = joined_lines(trained_.vocabulary);
    std::vector<std::string> merges;
    merges.reserve(trained_.merges.size());
    for (const auto& [left, right] : trained_.merges) merges.push_back(left + ' ' + right);
    metadata["merges"] = joined_lines(merges);
  }

  const char* name() const override { return "tokens"; }

  std::size_t size() const override { return trained_.vocabulary.size(); }

  std::vector<std::int64_t> ids(std::string_view text) const override { return tokenizer_.encode(text).ids; }

  Stream stream() const override {
    return [stream = xgrad::tokenizers::DecodeStream(tokenizer_)](std::int64_t id) mutable {
      return stream.step(id);
    };
  }

  std::string bytes(std::int64_t id) const override { return tokenizer_.token_bytes(id); }

  std::vector<std::string> labels() const override {
    std::vector<std::string> labels;
    labels.reserve(size());
    for (const std::string& token : trained_.vocabulary) labels.push_back(label_of(token));
    return labels;
  }

 private:
  ByteLevelBpe trained_;
  Tokenizer tokenizer_;
};

TextTokens TextTokens::of_byte_pairs(const std::string& text, std::size_t size) {
  return TextTokens(std::make_shared<BytePairs>(
      xgrad::tokenizers::train_byte_level_bpe(std::span(&text, 1), {.vocab_size = size})));
}

TextTokens TextTokens::saved_byte_pairs(const SavedModel& saved) {
  ByteLevelBpe trained{.vocabulary = saved.lines("vocabulary"), .merges = {}};
  for (const std::string& line : saved.lines("merges")) {
    const std::size_t blank = line.find(' ');
    if (blank == line.npos) saved.fail("merges", "two tokens a line");
    trained.merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  try {
    return TextTokens(std::make_shared<BytePairs>(std::move(trained)));
  } catch (const xgrad::ValueError& error) {
    saved.fail("vocabulary", std::string("of byte pair encoding: ") + error.what());
  }
}

}  // namespace apps
