#include "language_model.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <xgrad/files.hpp>
#include <xgrad/generation.hpp>
#include <xgrad/pretrained.hpp>
#include <xgrad/tokenizers/decode_stream.hpp>
#include <xgrad/xgrad.hpp>

#include "../../models/text_model.hpp"

namespace apps {
namespace {

using xgrad::generation::ContextEnd, xgrad::generation::GenerationOptions;
using Show = std::function<void(std::string_view)>;

/// What train_gpt saved.
class SavedText : public LanguageModel {
 public:
  explicit SavedText(const std::string& path) : model_(TextModel::load(path)) {}

  std::vector<std::int64_t> ids(const std::string& text) const override {
    std::string read;  // as train_gpt reads a text: lines end with LF
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text.compare(i, 2, "\r\n") != 0) read += text[i];
    return model_.tokens().ids(read);
  }

  std::optional<std::size_t> max_length() const override { return model_.model().config().max_len; }

  double loss(std::span<const std::int64_t> ids, std::size_t count) const override {
    const xgrad::NoGrad no_grad;
    const xgrad::Ids window = xgrad::pad_sequence({{ids.begin(), ids.end()}});
    return static_cast<double>(model_.loss(window, ids.size() - count).item()) / static_cast<double>(count);
  }

  void write(const std::vector<std::int64_t>& ids, const GenerationOptions& options, bool /*slides*/,
             const Show& show) const override {
    const TextTokens::Stream stream = model_.tokens().stream();
    const xgrad::generation::StopStrings stop_strings(
        options.stop_strings, [&](std::int64_t id) { return model_.tokens().bytes(id); });
    GenerationOptions others = options;
    others.stop_strings.clear();
    std::vector<std::int64_t> tokens = ids;
    const auto on_token = [&](std::size_t, std::int64_t token) {
      show(stream(token));
      tokens.push_back(token);
      return !stop_strings.end(tokens);
    };
    generate(model_.model(), {ids}, others, on_token, ContextEnd::slide);
  }

 private:
  TextModel model_;
};

/// A pretrained decoder.
class PretrainedText : public LanguageModel {
 public:
  PretrainedText(const std::string& folder, const xgrad::pretrained::LoadOptions& options)
      : tokenizer_(xgrad::pretrained::load_tokenizer(folder)),
        model_(xgrad::pretrained::CausalLM<float>::from_folder(folder, options)),
        options_(GenerationOptions::from_folder(folder)) {
    const std::size_t ids = model_.config().vocab_size;
    if (tokenizer_.size() > 0 && static_cast<std::size_t>(tokenizer_.largest_id()) >= ids)
      throw xgrad::FileError(folder + ": the tokenizer's ids must be below vocab_size in config.json, " +
                             std::to_string(ids) + ", got " + std::to_string(tokenizer_.largest_id()));
  }

  std::vector<std::int64_t> ids(const std::string& text) const override {
    return tokenizer_.encode(text).ids;
  }

  std::optional<std::size_t> max_length() const override { return model_.config().max_length(); }

  std::optional<std::size_t> trained_length() const override {
    if (max_length()) return std::nullopt;
    return model_.config().max_position_embeddings;
  }

  double loss(std::span<const std::int64_t> ids, std::size_t count) const override {
    const xgrad::NoGrad no_grad;
    const xgrad::Ids input = xgrad::pad_sequence({{ids.begin(), ids.end()}});
    xgrad::Ids labels = input;
    std::fill(labels.begin(), labels.end() - static_cast<std::ptrdiff_t>(count), -100);
    return static_cast<double>(model_.loss({input}, labels).item());
  }

  GenerationOptions options() const override { return options_; }

  void write(const std::vector<std::int64_t>& ids, const GenerationOptions& options, bool slides,
             const Show& show) const override {
    xgrad::tokenizers::DecodeStream stream(tokenizer_);
    const auto on_token = [&](std::size_t, std::int64_t token) {
      show(stream.step(token));
      return true;
    };
    generate(model_, tokenizer_, {ids}, options, on_token, slides ? ContextEnd::slide : ContextEnd::error);
    show(stream.finish());
  }

 private:
  xgrad::tokenizers::Tokenizer tokenizer_;
  xgrad::pretrained::CausalLM<float> model_;
  GenerationOptions options_;
};

}  // namespace

std::unique_ptr<LanguageModel> LanguageModel::load(const std::string& path,
                                                   const xgrad::pretrained::LoadOptions& options) {
  if (std::filesystem::is_regular_file(path) && !xgrad::is_gguf(path)) {
    if (options.precision || options.dtype)
      throw xgrad::ValueError(path +
                              ": --precision and --bfloat16-weights are for pretrained models; a model "
                              "of train_gpt has float32 alone");
    try {
      return std::make_unique<SavedText>(path);
    } catch (const xgrad::FileError& error) {
      throw xgrad::FileError(
          std::string(error.what()) +
          " (a model is a folder, a GGUF file, or what train_gpt writes with --save or --checkpoint)");
    }
  }
  return std::make_unique<PretrainedText>(xgrad::pretrained::find_model(path), options);
}

}  // namespace apps
