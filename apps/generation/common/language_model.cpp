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
    std::string written;
    const auto next = [&](std::span<const std::int64_t> tokens,
                          std::span<float> logits) -> std::optional<std::int64_t> {
      if (tokens.size() >= options.length_limit(ids.size()) || ends(written, options)) return std::nullopt;
      process_logits(options, tokens, ids.size(), logits);
      const std::int64_t token = xgrad::generation::next_token<float>(options, logits);
      const std::string text = model_.tokens().text({token});
      written += text;
      return show(text) ? std::optional(token) : std::nullopt;
    };
    model_.continued(ids, options.length_limit(ids.size()), next);
  }

 private:
  static bool ends(std::string_view written, const GenerationOptions& options) {
    return std::any_of(options.stop_strings.begin(), options.stop_strings.end(),
                       [&](const std::string& stop) { return written.ends_with(stop); });
  }

  TextModel model_;
};

}  // namespace

std::unique_ptr<LanguageModel> LanguageModel::load(const std::string& path) {
  return std::make_unique<SavedText>(path);
}

}  // namespace apps
