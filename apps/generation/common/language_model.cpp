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

using xgrad::generation::GenerationOptions;
using Show = std::function<void(std::string_view)>;

/// Shows a text as it is written, and looks for the strings that end it.
class Written {
 public:
  Written(const std::vector<std::string>& stop_strings, const Show& show)
      : stop_strings_(stop_strings), show_(show) {}

  /// False behind a stop string.
  bool add(const std::string& more) {
    if (!more.empty()) show_(more);
    text_ += more;
    return std::none_of(stop_strings_.begin(), stop_strings_.end(), [&](const std::string& stop) {
      const std::size_t looked_at = std::min(text_.size(), more.size() + stop.size() - 1);
      return text_.find(stop, text_.size() - looked_at) != text_.npos;
    });
  }

 private:
  const std::vector<std::string>& stop_strings_;
  const Show& show_;
  std::string text_;
};

/// What train_gpt saved.
class SavedText : public LanguageModel {
 public:
  explicit SavedText(const std::string& path) : model_(TextModel::load(path)) {}

  std::vector<std::int64_t> ids(const std::string& text) const override { return model_.tokens().ids(text); }

  std::optional<std::size_t> max_length() const override { return model_.model().config().max_len; }

  double loss(std::span<const std::int64_t> ids, std::size_t count) const override {
    const xgrad::NoGrad no_grad;
    const xgrad::Ids window = xgrad::pad_sequence({{ids.begin(), ids.end()}});
    return static_cast<double>(model_.loss(window, ids.size() - count).item()) / static_cast<double>(count);
  }

  void write(const std::vector<std::int64_t>& ids, const GenerationOptions& options, bool /*slides*/,
             const Show& show) const override {
    if (ids.empty()) throw xgrad::ValueError("a text must have a character, got none");
    const TextTokens::Stream stream = model_.tokens().stream();
    Written written(options.stop_strings, show);
    bool continues = true;
    const auto next = [&](std::span<const std::int64_t> tokens,
                          std::span<float> logits) -> std::optional<std::int64_t> {
      if (!continues || tokens.size() >= options.length_limit(ids.size())) return std::nullopt;
      process_logits(options, tokens, ids.size(), logits);
      const std::int64_t token = xgrad::generation::next_token<float>(options, logits);
      continues = written.add(stream(token));
      return token;
    };
    model_.continued(ids, options.length_limit(ids.size()), next);
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
    using xgrad::generation::ContextEnd;
    GenerationOptions without_strings = options;
    without_strings.stop_strings.clear();
    xgrad::tokenizers::DecodeStream stream(tokenizer_);
    Written written(options.stop_strings, show);
    const auto on_token = [&](std::size_t, std::int64_t token) { return written.add(stream.step(token)); };
    generate(model_, {ids}, without_strings, on_token, slides ? ContextEnd::slide : ContextEnd::error);
    written.add(stream.finish());
  }

 private:
  xgrad::tokenizers::Tokenizer tokenizer_;
  xgrad::pretrained::CausalLM<float> model_;
  GenerationOptions options_;
};

}  // namespace

std::unique_ptr<LanguageModel> LanguageModel::load(const std::string& path,
                                                   const xgrad::pretrained::LoadOptions& options) {
  if (std::filesystem::is_regular_file(path) && !xgrad::is_gguf(path))
    return std::make_unique<SavedText>(path);
  return std::make_unique<PretrainedText>(xgrad::pretrained::find_model(path), options);
}

}  // namespace apps
