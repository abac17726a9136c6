#include "language_model.hpp"

#include <algorithm>

#include <xgrad/generation.hpp>
#include <xgrad/xgrad.hpp>

#include "../../models/text_model.hpp"

namespace apps {
namespace {

using xgrad::generation::GenerationOptions;

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

  void write(const std::vector<std::int64_t>& ids, const GenerationOptions& options,
             const std::function<bool(std::string_view)>& show) const override {
    if (ids.empty()) throw xgrad::ValueError("a text must have a character, got none");
    const TextTokens::Stream stream = model_.tokens().stream();
    std::string written;
    std::size_t fresh = 0;  // bytes of its last token
    const auto next = [&](std::span<const std::int64_t> tokens,
                          std::span<float> logits) -> std::optional<std::int64_t> {
      if (tokens.size() >= options.length_limit(ids.size()) || has_stop(written, fresh, options))
        return std::nullopt;
      process_logits(options, tokens, ids.size(), logits);
      const std::int64_t token = xgrad::generation::next_token<float>(options, logits);
      const std::string text = stream(token);
      written += text;
      fresh = text.size();
      return show(text) ? std::optional(token) : std::nullopt;
    };
    model_.continued(ids, options.length_limit(ids.size()), next);
  }

 private:
  /// Whether the last bytes complete a stop string.
  static bool has_stop(std::string_view written, std::size_t fresh, const GenerationOptions& options) {
    return std::any_of(options.stop_strings.begin(), options.stop_strings.end(),
                       [&](const std::string& stop) {
                         const std::size_t looked_at = std::min(written.size(), fresh + stop.size() - 1);
                         return written.substr(written.size() - looked_at).find(stop) != written.npos;
                       });
  }

  TextModel model_;
};

}  // namespace

std::unique_ptr<LanguageModel> LanguageModel::load(const std::string& path) {
  return std::make_unique<SavedText>(path);
}

}  // namespace apps
